/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRAINER_REPORT_H
#define TRAINER_REPORT_H 1

/* What a trainer process tells the world.
 *
 * JSON lines on standard output, for whoever started it, and, from rank 0 of
 * a job that was told its name, datagrams for the host's agent.  The agent may
 * be away or slow: a datagram that does not go at once is dropped.
 *
 * Both have at most REPORT_MAX_HZ lines of progress a second, except that
 * 'force' always goes.  One a process; one thread. */

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define REPORT_MAX_HZ 20

struct report;

/* The state of a job after an iteration.  Numbers that are not known, or not
 * finite, are null in JSON. */
struct report_progress {
    uint64_t iteration;         /* Updates made. */
    int stage;                  /* Targets reached before. */
    double loss, accuracy;      /* Of the held-out samples, NAN if unknown. */
    double batch_loss;          /* Of the last iteration's samples, before
                                 * its update; NAN if unknown. */
    double step_s;              /* Of this process's last iteration, to
                                 * compute and to transfer, without waiting
                                 * for others; NAN if unknown. */
};

/* An epoch of a task whose parameters are keys (tasks/node-task.h). */
struct report_epoch {
    uint64_t epoch, updates;    /* Epochs made, and samples of the last. */
    double seconds, cpu_s;      /* It took, at all nodes. */
    double loss;                /* Mean of its samples. */
    const char *names[2];       /* Of what held-out samples say, or NULL. */
    double qualities[2];
};

/* 'datagrams': STAGECOACH_COJOB, _JOB and _RUNDIR say what to send where. */
struct report *report_create(bool datagrams);
void report_destroy(struct report *);

void report_listening(const char *address, uint16_t port);
void report_backend(const char *name);
void report_progress(struct report *, const struct report_progress *,
                     bool force);
void report_epoch(const struct report_epoch *);
/* Of a node, at its end: what became of accesses of keys. */
void report_keys(uint64_t local, uint64_t remote, uint64_t moved);
void report_paused(uint64_t iteration);

/* Which links between peers a new policy avoids. */
void report_policy(double lambda2, const int avoided[][2], int n);
void report_done(const struct report_progress *, uint64_t bytes_sent,
                 uint64_t bytes_received);

/* Old name. */
#define report_monotonic_us clock_monotonic_us

#endif /* trainer/process/report.h */
