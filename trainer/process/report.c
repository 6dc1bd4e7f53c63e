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
#include "base/memory.h"

struct report {
    int64_t last_us;            /* When progress went out last. */
    int fd;                     /* Of datagrams, -1 for none. */
    struct sockaddr_un agent;
    const char *cojob, *job;    /* Names without a character to escape. */
};

static bool
is_name(const char *s)
{
    size_t n = s ? strlen(s) : 0;

    return n >= 1 && n <= 31
           && strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                     "0123456789._-") == n;
}

struct report *
report_create(bool datagrams)
{
    struct report *report = allocate(1, sizeof *report);
    const char *rundir = getenv("STAGECOACH_RUNDIR");
    size_t length;

    report->last_us = INT64_MIN / 2;
    report->fd = -1;
    report->cojob = getenv("STAGECOACH_COJOB");
    report->job = getenv("STAGECOACH_JOB");
    report->agent.sun_family = AF_UNIX;
    length = snprintf(report->agent.sun_path, sizeof report->agent.sun_path,
                      "%s/progress.sock", rundir ? rundir
                                                 : "/run/stagecoach");
    if (datagrams && is_name(report->cojob) && is_name(report->job)
        && length < sizeof report->agent.sun_path) {
        report->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    }
    return report;
}

void
report_destroy(struct report *report)
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

void
report_listening(const char *address, uint16_t port)
{
    printf("{\"event\": \"listening\", \"time\": %"PRId64", "
           "\"address\": \"%s\", \"port\": %u}\n", clock_wall_ms(), address, port);
    fflush(stdout);
}

void
report_backend(const char *name)
{
    printf("{\"event\": \"backend\", \"time\": %"PRId64", "
           "\"name\": \"%s\"}\n", clock_wall_ms(), name);
    fflush(stdout);
}

static void
send_datagram(const struct report *report, const struct report_progress *p)
{
    char text[512];
    int length;

    length = snprintf(text, sizeof text,
                      "{\"cojob\": \"%s\", \"job\": \"%s\", \"stage\": %d, "
                      "\"iteration\": %"PRIu64", \"metric\": \"loss\", "
                      "\"value\": %s, \"time\": %"PRId64"}",
                      report->cojob, report->job, p->stage, p->iteration,
                      number(p->loss).text, clock_wall_ms());
    sendto(report->fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL,
           (const struct sockaddr *) &report->agent, sizeof report->agent);
}

void
report_progress(struct report *report, const struct report_progress *p,
                bool force)
{
    int64_t now = clock_monotonic_us();

    if (!force && now - report->last_us < 1000000 / REPORT_MAX_HZ) {
        return;
    }
    report->last_us = now;
    printf("{\"event\": \"progress\", \"time\": %"PRId64", "
           "\"iteration\": %"PRIu64", \"loss\": %s, \"accuracy\": %s, "
           "\"batch_loss\": %s, \"step_s\": %s}\n", clock_wall_ms(), p->iteration,
           number(p->loss).text, number(p->accuracy).text,
           number(p->batch_loss).text, number(p->step_s).text);
    fflush(stdout);
    if (report->fd >= 0) {
        send_datagram(report, p);
    }
}

void
report_policy(double lambda2, const int avoided[][2], int n)
{
    printf("{\"event\": \"policy\", \"time\": %"PRId64", \"lambda2\": %s, "
           "\"avoided\": [", clock_wall_ms(), number(lambda2).text);
    for (int i = 0; i < n; i++) {
        printf("%s[%d, %d]", i ? ", " : "", avoided[i][0], avoided[i][1]);
    }
    puts("]}");
    fflush(stdout);
}

void
report_epoch(const struct report_epoch *e)
{
    printf("{\"event\": \"epoch\", \"time\": %"PRId64", "
           "\"epoch\": %"PRIu64", \"updates\": %"PRIu64", "
           "\"seconds\": %s, \"cpu_s\": %s, \"loss\": %s", clock_wall_ms(),
           e->epoch, e->updates, number(e->seconds).text,
           number(e->cpu_s).text, number(e->loss).text);
    for (int i = 0; i < 2; i++) {
        if (e->names[i]) {
            printf(", \"%s\": %s", e->names[i], number(e->qualities[i]).text);
        }
    }
    puts("}");
    fflush(stdout);
}

void
report_keys(uint64_t local, uint64_t remote, uint64_t moved)
{
    printf("{\"event\": \"keys\", \"time\": %"PRId64", \"local\": %"PRIu64", "
           "\"remote\": %"PRIu64", \"moved\": %"PRIu64"}\n", clock_wall_ms(), local,
           remote, moved);
    fflush(stdout);
}

void
report_paused(uint64_t iteration)
{
    printf("{\"event\": \"paused\", \"time\": %"PRId64", "
           "\"iteration\": %"PRIu64"}\n", clock_wall_ms(), iteration);
    fflush(stdout);
}

void
report_done(const struct report_progress *p, uint64_t bytes_sent,
            uint64_t bytes_received)
{
    printf("{\"event\": \"done\", \"time\": %"PRId64", "
           "\"iteration\": %"PRIu64", \"loss\": %s, \"accuracy\": %s, "
           "\"bytes_sent\": %"PRIu64", \"bytes_received\": %"PRIu64"}\n",
           clock_wall_ms(), p->iteration, number(p->loss).text,
           number(p->accuracy).text, bytes_sent, bytes_received);
    fflush(stdout);
}
