/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/process/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compare.h"
#include "base/memory.h"
#include "base/name.h"

#define WEIGHTS_US 1000000      /* Between two lines about first weights. */

struct reporter {
    int64_t last_us;            /* Time of the last line of progress. */
    int64_t load_us;            /* Time of the last line about the load. */
    int64_t weights_us;         /* Time of the last line about first weights,
                                 * or of the first call; 0 before. */
    int fd;                     /* Socket for datagrams, or -1. */
    struct sockaddr_un agent;
    const char *cojob, *job;    /* Names that need no escaping. */
};

struct reporter *
reporter_create(bool datagrams)
{
    struct reporter *report = allocate(1, sizeof *report);
    const char *rundir = getenv("STAGECOACH_RUNDIR");
    size_t length;

    report->last_us = report->load_us = INT64_MIN / 2;
    report->fd = -1;
    report->cojob = getenv("STAGECOACH_COJOB");
    report->job = getenv("STAGECOACH_JOB");
    report->agent.sun_family = AF_UNIX;
    length = snprintf(report->agent.sun_path, sizeof report->agent.sun_path,
                      "%s/progress.sock", rundir ? rundir : "/run/stagecoach");
    if (datagrams && report->cojob && name_is_valid(report->cojob)
        && report->job && name_is_valid(report->job)
        && length < sizeof report->agent.sun_path) {
        report->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    }
    return report;
}

void
reporter_destroy(struct reporter *report)
{
    if (report) {
        if (report->fd >= 0) {
            close(report->fd);
        }
        free(report);
    }
}

struct number {
    char text[32];
};

/* JSON has no NaN and no infinity. */
static struct number
number(double x)
{
    struct number n;

    if (isfinite(x)) {
        snprintf(n.text, sizeof n.text, "%.6g", x);
    } else {
        strcpy(n.text, "null");
    }
    return n;
}

/* Starts a line of JSON; end_event() ends it. */
static void
begin_event(const char *name)
{
    printf("{\"event\": \"%s\", \"time\": %"PRId64, name, clock_wall_ms());
}

static void
end_event(void)
{
    puts("}");
    fflush(stdout);
}

static void
put_number(const char *name, double value)
{
    printf(", \"%s\": %s", name, number(value).text);
}

static void
put_count(const char *name, uint64_t value)
{
    printf(", \"%s\": %"PRIu64, name, value);
}

void
report_listening(const char *address, uint16_t port)
{
    begin_event("listening");
    printf(", \"address\": \"%s\"", address);
    put_count("port", port);
    end_event();
}

void
report_resumed(uint64_t iteration)
{
    begin_event("resumed");
    put_count("iteration", iteration);
    end_event();
}

void
report_backend(const char *name)
{
    begin_event("backend");
    printf(", \"name\": \"%s\"", name);
    end_event();
}

void
report_weights(struct reporter *report, uint64_t made, uint64_t n_parameters)
{
    int64_t now = clock_monotonic_us();

    if (report->weights_us && now - report->weights_us >= WEIGHTS_US) {
        begin_event("weights");
        put_count("made", made);
        put_count("parameters", n_parameters);
        end_event();
    }
    if (!report->weights_us || now - report->weights_us >= WEIGHTS_US) {
        report->weights_us = now;
    }
}

static void
send_text(const struct reporter *report, const char *text, int length)
{
    sendto(report->fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL,
           (const struct sockaddr *) &report->agent, sizeof report->agent);
}

void
report_control_port(uint16_t port)
{
    struct reporter *report = reporter_create(true);
    char text[256 + NAME_PAIR_SIZE];

    if (report->fd >= 0) {
        send_text(report, text,
                  snprintf(text, sizeof text, "{\"cojob\": \"%s\", "
                           "\"job\": \"%s\", \"control_port\": %u}",
                           report->cojob, report->job, port));
    }
    reporter_destroy(report);
}

/* Returns true, and sets '*last_us' to now, if a line that was last printed at
 * '*last_us' may be printed again. */
static bool
take_turn(int64_t *last_us)
{
    int64_t now = clock_monotonic_us();
    bool due = now - *last_us >= 1000000 / REPORT_MAX_HZ;

    if (due) {
        *last_us = now;
    }
    return due;
}

/* The metric is the accuracy, if the model has one: early phases end at a
 * share of it.  Of the loss's fall, 90 % takes several times as long. */
static void
send_datagram(const struct reporter *report, const struct report_progress *p)
{
    bool accuracy = isfinite(p->accuracy);
    char text[512 + NAME_PAIR_SIZE];
    int length;

    length = snprintf(text, sizeof text,
                      "{\"cojob\": \"%s\", \"job\": \"%s\", \"stage\": %d, "
                      "\"iteration\": %" PRIu64 ", \"metric\": \"%s\", "
                      "\"value\": %s, \"time\": %" PRId64 "}",
                      report->cojob, report->job, p->stage, p->iteration,
                      accuracy ? "accuracy" : "loss",
                      number(accuracy ? p->accuracy : p->loss).text,
                      clock_wall_ms());
    send_text(report, text, length);
}

void
reporter_progress(struct reporter *report, const struct report_progress *p,
                  bool force)
{
    if (force) {
        report->last_us = clock_monotonic_us();
    } else if (!take_turn(&report->last_us)) {
        return;
    }
    begin_event("progress");
    put_count("iteration", p->iteration);
    put_number("loss", p->loss);
    put_number("accuracy", p->accuracy);
    put_number("batch_loss", p->batch_loss);
    put_number("step_s", p->step_s);
    end_event();
    if (report->fd >= 0) {
        send_datagram(report, p);
    }
}

void
report_load(struct reporter *report, const struct report_load *load)
{
    if (!take_turn(&report->load_us)) {
        return;
    }
    begin_event("load");
    put_count("iteration", load->iteration);
    put_count("samples", load->samples);
    put_number("seconds", load->seconds);
    put_number("cpu", load->cpu);
    put_number("memory", load->memory);
    end_event();
}

void
report_policy(double lambda2, const int avoided[][2], int n)
{
    begin_event("policy");
    put_number("lambda2", lambda2);
    printf(", \"avoided\": [");
    for (int i = 0; i < n; i++) {
        printf("%s[%d, %d]", i ? ", " : "", avoided[i][0], avoided[i][1]);
    }
    putchar(']');
    end_event();
}

void
report_epoch(const struct report_epoch *e)
{
    begin_event("epoch");
    put_count("epoch", e->epoch);
    put_count("updates", e->updates);
    put_number("seconds", e->seconds);
    put_number("cpu_s", e->cpu_s);
    put_number("loss", e->loss);
    for (int i = 0; i < 2; i++) {
        if (e->names[i]) {
            put_number(e->names[i], e->qualities[i]);
        }
    }
    end_event();
}

void
report_keys(uint64_t local, uint64_t remote, uint64_t moved)
{
    begin_event("keys");
    put_count("local", local);
    put_count("remote", remote);
    put_count("moved", moved);
    end_event();
}

void
report_paused(uint64_t iteration)
{
    begin_event("paused");
    put_count("iteration", iteration);
    end_event();
}

void
report_heartbeats(uint32_t *trips, size_t n, uint64_t n_lost)
{
    qsort(trips, n, sizeof *trips, compare_u32);
    begin_event("heartbeats");
    put_count("answered", n);
    put_count("lost", n_lost);
    put_number("p50_s", n ? trips[n / 2] * 1e-6 : NAN);
    put_number("p99_s", n ? trips[n * 99 / 100] * 1e-6 : NAN);
    put_number("max_s", n ? trips[n - 1] * 1e-6 : NAN);
    end_event();
}

void
report_done(const struct report_progress *p, uint64_t bytes_sent,
            uint64_t bytes_received, double exchange_s)
{
    begin_event("done");
    put_count("iteration", p->iteration);
    put_number("loss", p->loss);
    put_number("accuracy", p->accuracy);
    put_count("bytes_sent", bytes_sent);
    put_count("bytes_received", bytes_received);
    put_number("exchange_s", exchange_s);
    end_event();
}
