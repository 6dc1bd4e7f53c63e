/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WORKLOAD_H
#define WORKLOAD_H 1

/* Workload of a simulation: transfers between hosts and their dependencies.
 *
 * One simulation serves training searches and coflows of traces.  A cojob has
 * rungs; in each, its jobs repeat an iteration: compute, then exchange.
 * Shards and phases define the dependencies inside an exchange: a transfer of
 * a phase begins when all transfers of the previous phase of the same shard
 * have arrived.  A parameter server is a shard of two phases, push and pull.
 * A coflow is a cojob of one rung with one job that exchanges once, in one
 * phase, and does not compute.
 *
 *    struct workload *w = workload_create("stage", fabric);
 *    struct workload_cojob *cojob = workload_add_cojob(w, "asha", 1, 0.0);
 *    struct workload_job *job = workload_add_job(cojob, "t0", 0.002);
 *    workload_add_transfer(job, src, dst, bytes, shard, phase);
 *    workload_add_rung(w, cojob, iterations, n_jobs);
 *
 * A search judges all jobs of a rung together at its end, or its jobs, the
 * trials, one by one (order/problem/trials.h).  The second kind is
 * asynchronous: it has workload_add_trials() in place of the rungs, and is one
 * stage that all of its jobs are in.
 *
 * workload-coflow.h, workload-jobs.h, workload-recording.h,
 * workload-scenario.h and workload-training.h do this from files,
 * workload-generate.h at random.
 *
 * A workload owns everything in it, its fabric too.  Pointers that the "add"
 * functions return are valid until the next "add" of the same kind.  A
 * simulation only reads it, so several may run on one workload. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/fabric/fabric.h"

struct workload_transfer {
    int src, dst;               /* Hosts. */
    double bytes;               /* > 0. */
    int shard;                  /* From 0. */
    int phase;                  /* From 0. */
};

/* Metric of a job after 'k' iterations: final - span (k + 1)^-exponent, or
 * 'recorded' unless that is null, plus 'final'. */
struct workload_curve {
    double final, span, exponent;
    int64_t every; /* Iterations between two reports of the metric; 0 means
                    * never. */
    const struct trial_curve *recorded;
    double stretch; /* Recorded iterations in one; 0 is 1. */
};

struct workload_job {
    char *name;
    double compute;             /* Seconds before each exchange. */
    double devices;             /* Number of computing devices, for
                                 * ORDER_INTENSITY. */
    struct workload_curve curve;
    int n_shards;
    int n_phases;               /* Maximum over all shards. */
    size_t n_transfers, allocated_transfers;
    struct workload_transfer *transfers;
};

struct workload_rung {
    int64_t iterations;         /* Iteration of each job at the rung's end. */
    size_t n_jobs;              /* Number of jobs that take part, the first
                                 * ones. */
};

/* How an asynchronous search judges: successive halving in its stopping
 * form. */
struct workload_trials {
    size_t places; /* Jobs that run at the same time, in their order; 0: the
                    * search is synchronous. */
    double eta;    /* A rung keeps the best 1 / eta; > 1. */
    size_t n_brackets; /* Hyperband: job i is judged from rung i modulo this
                        * on, among those of its bracket; 1 to 'n_rungs'. */
    size_t n_rungs;
    int64_t *rungs; /* Iterations of a job at each, ascending; it ends at
                     * the last. */
};

struct workload_cojob {
    char *name;
    char *user;                 /* Owner; NULL if unknown. */
    double weight;              /* > 0. */
    double arrival;             /* Seconds. */
    bool follows;               /* It arrives when the cojob before it has
                                 * ended. */
    double hidden;              /* Share of its later rungs that it does not
                                 * announce to orders, 0 to 1.  An asynchronous
                                 * one with 1 does not announce either that it
                                 * is. */
    double understated;         /* The same of its bytes: orders count the rest
                                 * until a job's iterations are counted. */
    size_t n_jobs, allocated_jobs;
    struct workload_job *jobs;
    size_t n_rungs, allocated_rungs;
    struct workload_rung *rungs;
    struct workload_trials trials;
};

struct workload {
    const char *noun;           /* Measured entity: "stage" or "coflow". */
    struct sim_fabric *fabric;
    size_t n_cojobs, allocated_cojobs;
    struct workload_cojob *cojobs;
    size_t n_stages;            /* Rungs of all cojobs. */
    size_t n_left_out;          /* Jobs of a trace without workers or times. */
};

/* Takes ownership of 'fabric'. */
struct workload *workload_create(const char *noun, struct sim_fabric *fabric);
void workload_destroy(struct workload *);

struct workload_cojob *workload_add_cojob(struct workload *, const char *name,
                                          double weight, double arrival);
struct workload_job *workload_add_job(struct workload_cojob *,
                                      const char *name, double compute);
void workload_add_transfer(struct workload_job *, int src, int dst,
                           double bytes, int shard, int phase);
void workload_add_rung(struct workload *, struct workload_cojob *,
                       int64_t iterations, size_t n_jobs);

/* Makes a cojob that has all its jobs asynchronous.  'rungs' are copied. */
void workload_add_trials(struct workload *, struct workload_cojob *,
                         const struct workload_trials *);

/* Returns the sum of the iterations that the jobs do in rung 'i'; of an
 * asynchronous cojob, if none is stopped. */
double workload_rung_iterations(const struct workload_cojob *, size_t i);

/* Takes ownership of 'fabric', which must have the hosts that 'w' uses. */
void workload_set_fabric(struct workload *w, struct sim_fabric *fabric);

/* Returns true if a job exchanges more than once. */
bool workload_iterates(const struct workload *);

/* Lets all cojobs arrive at time 0. */
void workload_make_offline(struct workload *);

/* Returns a lower bound of the duration of an exchange of 'job', seconds. */
double workload_exchange_time(const struct workload_job *,
                              const struct sim_fabric *);

#endif /* sim/workload/workload.h */
