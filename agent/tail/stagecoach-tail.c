/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach-tail: reads the log of one job and reports its progress.
 *
 * The agent starts it; see tail-protocol.h.  It takes the rights of the job
 * before it looks at anything of the tenant, sends each progress to the
 * progress socket as the job itself could, and exits with the agent.  It uses
 * at most a tenth of a core: after each round it pauses nine times as long as
 * the round has computed. */

#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/tail/enter.h"
#include "agent/tail/log-job.h"
#include "agent/tail/tail-protocol.h"
#include "util.h"

#define PAUSE_SHARE 9
#define RETRY_MS 50             /* Time until a datagram for which there was
                                 * no space is sent again. */

struct tail {
    struct log_job log;
    struct progress progress;   /* Last one. */
    bool pending;               /* 'progress' has not been sent. */
    long long next_report;
};

static long long
clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static long long
clock_ms(void)
{
    return clock_ns(CLOCK_MONOTONIC) / 1000000;
}

static void
report(enum tail_state state, const struct log_job *log, const char *words)
{
    struct tail_report r = { .state = state };

    if (log) {
        log_job_report(log, &r);
    }
    if (words) {
        ovs_strlcpy(r.words, words, sizeof r.words);
    }
    send(TAIL_CONTROL, &r, sizeof r, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void OVS_NO_RETURN
leave(enum tail_state state, const struct log_job *log, const char *words)
{
    report(state, log, words);
    exit(state == TAIL_READING ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void
on_progress(const struct progress *progress, void *t_)
{
    struct tail *t = t_;

    t->progress = *progress;
    t->pending = true;
}

/* Sends the last progress, which stays pending if the agent's queue is full.
 */
static void
send_progress(struct tail *t)
{
    const struct progress *p = &t->progress;
    char text[PROGRESS_MAX_BYTES];
    size_t n_cojob = strcspn(t->log.job, "/");
    int n;

    if (!t->pending) {
        return;
    }
    n = snprintf(text, sizeof text,
                 "{\"cojob\":\"%.*s\",\"job\":\"%s\",\"iteration\":%"PRId64,
                 (int) n_cojob, t->log.job, t->log.job + n_cojob + 1,
                 p->iteration);
    if (p->stage >= 0) {
        n += snprintf(text + n, sizeof text - n, ",\"stage\":%"PRId64,
                      p->stage);
    }
    if (p->has_value) {
        n += snprintf(text + n, sizeof text - n,
                      ",\"metric\":\"%s\",\"value\":%.17g", p->metric,
                      p->value);
    }
    n += snprintf(text + n, sizeof text - n, "}");
    t->pending = send(TAIL_PROGRESS, text, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0
                 && (errno == EAGAIN || errno == ENOBUFS || errno == EINTR);
}

/* Sends a report if one is due. */
static void
beat(struct tail *t)
{
    long long now = clock_ms();

    if (now >= t->next_report) {
        report(TAIL_READING, &t->log, NULL);
        t->next_report = now + TAIL_REPORT_MS;
    }
}

/* Waits until 'until', or until a directory has changed unless 'pause'.  Exits
 * if the agent has. */
static void
wait_until(struct tail *t, long long until, bool pause)
{
    struct pollfd fds[] = {
        { .fd = TAIL_CONTROL, .events = POLLIN },
        { .fd = pause ? -1 : t->log.watch.fd, .events = POLLIN },
    };
    long long now;

    while ((now = clock_ms()) < until && !fds[1].revents) {
        beat(t);
        poll(fds, ARRAY_SIZE(fds), MIN(until, t->next_report) - now);
        if (fds[0].revents) {
            exit(EXIT_SUCCESS);
        }
    }
}

static void OVS_NO_RETURN
run(struct tail *t)
{
    for (;;) {
        long long began = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        const char *words = log_job_run(&t->log, clock_ms(), on_progress, t);
        long long pause, pause_until, next;

        send_progress(t);
        if (words) {
            leave(TAIL_REFUSED, &t->log, words);
        }
        beat(t);
        pause = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began) * PAUSE_SHARE
                / 1000000;
        pause_until = MAX(clock_ms() + pause, t->log.watch.next_drain);
        wait_until(t, pause_until, true);
        next = log_job_next(&t->log);
        wait_until(t, t->pending ? MIN(next, clock_ms() + RETRY_MS) : next,
                   false);
    }
}

/* Receives the message with which the agent starts this process. */
static void
receive_start(struct tail_start *start)
{
    if (recv(TAIL_CONTROL, start, sizeof *start, 0) != sizeof *start) {
        fprintf(stderr, "%s: only stagecoach-agent starts this program\n",
                program_name);
        exit(EXIT_FAILURE);
    }
    start->job[sizeof start->job - 1] = '\0';
    start->spec[sizeof start->spec - 1] = '\0';
}

int
main(int argc OVS_UNUSED, char *argv[])
{
    struct tail_start start;
    struct tail t = { .pending = false };
    struct log_spec spec;
    const char *failed;
    char *error;

    set_program_name(argv[0]);
    prctl(PR_SET_NAME, TAIL_PROGRAM, 0, 0, 0); /* It was executed by number. */
    close(TAIL_SELF);
    receive_start(&start);
    failed = tail_enter(&start);
    if (failed) {
        leave(TAIL_FAILED, NULL, failed);
    }
    error = log_spec_parse("specification", start.spec, &spec);
    if (error) {
        leave(TAIL_REFUSED, NULL, error);
    }
    log_job_init(&t.log, start.job, &spec);
    run(&t);
}
