/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRAINER_REPORT_H
#define TRAINER_REPORT_H 1

/* Output of a trainer process.
 *
 * JSON lines on standard output, for the program that started the process, and
 * from rank 0 of a job with a name, datagrams for the host's agent.  If a
 * datagram cannot be sent at once, it is dropped.
 *
 * Both have at most REPORT_MAX_HZ lines of progress a second, plus those with
 * 'force'.  One per process; one thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPORT_MAX_HZ 20

struct reporter;

/* The state of a job after an iteration.  A number that is unknown is NAN,
 * and null in JSON. */
struct report_progress {
    uint64_t iteration;         /* Updates made. */
    int stage;                  /* Targets reached before. */
    double loss, accuracy;      /* Of the validation samples. */
    double batch_loss;          /* Of the last iteration's samples, before
                                 * its update. */
    double step_s;              /* Seconds of this process's last iteration:
                                 * computing and transfers, without waiting
                                 * for other processes. */
};

/* A worker's last iteration, as its scheme gets it to divide batches. */
struct report_load {
    uint64_t iteration;
    uint32_t samples;           /* That this worker computed, */
    double seconds;             /* and how long that took. */
    double cpu, memory;         /* Fractions of the machine that others
                                 * use. */
};

/* An epoch of a task with parameters in keys (tasks/node-task.h). */
struct report_epoch {
    uint64_t epoch;             /* Epochs made. */
    uint64_t updates;           /* Samples of the epoch. */
    double seconds, cpu_s;      /* Time of the epoch, processors of all
                                 * nodes. */
    double loss;                /* Mean loss of its samples. */
    const char *names[2];       /* Of metrics of validation samples, or
                                 * NULL. */
    double qualities[2];        /* Values of these metrics. */
};

/* Registers a port at this host's agent: flows that have it at either end are
 * in the job's control class.  To be repeated from time to time, because an
 * agent that was restarted does not know it. */
void report_control_port(uint16_t port);

/* 'datagrams': send them if STAGECOACH_COJOB and STAGECOACH_JOB are set. */
struct reporter *reporter_create(bool datagrams);
void reporter_destroy(struct reporter *);

void report_listening(const char *address, uint16_t port);
void report_backend(const char *name);

/* A server continues from the checkpoint after 'iteration'. */
void report_resumed(uint64_t iteration);

/* First weights that were made, of a model of 'n_parameters'.  Rank 0 reports
 * them once a second, if it takes longer. */
void report_weights(struct reporter *, uint64_t made, uint64_t n_parameters);
void reporter_progress(struct reporter *, const struct report_progress *,
                       bool force);
void report_load(struct reporter *, const struct report_load *);
void report_epoch(const struct report_epoch *);

/* At a node's end: accesses to keys, and keys that moved to the node. */
void report_keys(uint64_t local, uint64_t remote, uint64_t moved);
void report_paused(uint64_t iteration);

/* At a worker's end: the round trips of its heartbeats, in microseconds, which
 * are sorted, and how many had no answer when their connection ended. */
void report_heartbeats(uint32_t *trips, size_t n, uint64_t n_lost);

/* A new policy, and the links between peers that it avoids. */
void report_policy(double lambda2, const int avoided[][2], int n);

/* At the end: the bytes of all connections, and the seconds that the process
 * spent exchanging gradients or weights without computing, NAN if unknown. */
void report_done(const struct report_progress *, uint64_t bytes_sent,
                 uint64_t bytes_received, double exchange_s);

#endif /* trainer/process/report.h */
