/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WORKLOAD_H
#define WORKLOAD_H 1

/* What is to be simulated: who sends how much to whom, and after what.
 *
 *
 * Motivation
 * ==========
 *
 * A training search and a coflow of a trace are the same thing to the network,
 * so that one simulation does both.  A cojob has rungs; in each, its jobs
 * repeat an iteration: compute, then exchange.  What an exchange waits for
 * inside is said by shards and phases: a transfer of a phase begins when all
 * those of the phase before it, in the same shard, have arrived.  A parameter
 * server is a shard of two phases, push and pull.  A coflow is a cojob of one
 * rung with one job that exchanges once, in one phase, and does not compute.
 *
 *
 * Usage
 * =====
 *
 *    struct workload *w = workload_create("stage", fabric);
 *    struct workload_cojob *cojob = workload_add_cojob(w, "asha", 1, 0.0);
 *    struct workload_job *job = workload_add_job(cojob, "t0", 0.002);
 *    workload_add_transfer(job, src, dst, bytes, shard, phase);
 *    workload_add_rung(w, cojob, iterations, n_jobs);
 *
 * workload-coflow.h, workload-jobs.h, workload-recording.h,
 * workload-scenario.h and workload-training.h do this from files,
 * workload-generate.h by chance.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A workload owns everything in it, its fabric too.  Pointers that the "add"
 * functions return hold until the next "add" of the same kind.  A simulation
 * only reads it, so several may run on one workload. */

#include <stddef.h>
#include <stdint.h>

#include "sim/fabric/fabric.h"

struct workload_transfer {
    int src, dst;               /* Hosts. */
    double bytes;               /* > 0. */
    int shard;                  /* From 0. */
    int phase;                  /* From 0. */
};

/* What a job's metric is after 'k' iterations:
 * final - span (k + 1)^-exponent.  A 'final' of 0 is no metric. */
struct workload_curve {
    double final, span, exponent;
};

struct workload_job {
    char *name;
    double compute;             /* Seconds before each exchange. */
    double devices;             /* That compute, for ORDER_INTENSITY; 1. */
    struct workload_curve curve;
    int n_shards;
    int n_phases;               /* The most of any shard. */
    size_t n_transfers, allocated_transfers;
    struct workload_transfer *transfers;
};

struct workload_rung {
    int64_t iterations;         /* Each job's count at the end of the rung. */
    size_t n_jobs;              /* The first so many jobs take part. */
};

struct workload_cojob {
    char *name;
    char *user;                 /* Whose it is; NULL if not told. */
    double weight;              /* > 0. */
    double arrival;             /* Seconds. */
    size_t n_jobs, allocated_jobs;
    struct workload_job *jobs;
    size_t n_rungs, allocated_rungs;
    struct workload_rung *rungs;
};

struct workload {
    const char *noun;           /* "stage" or "coflow": what is measured. */
    struct sim_fabric *fabric;
    size_t n_cojobs, allocated_cojobs;
    struct workload_cojob *cojobs;
    size_t n_stages;            /* Rungs of all cojobs. */
};

/* Takes over 'fabric'. */
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

/* Takes over 'fabric', which must have the hosts that 'w' uses. */
void workload_set_fabric(struct workload *w, struct sim_fabric *fabric);

/* Lets all cojobs arrive at time 0. */
void workload_make_offline(struct workload *);

/* No exchange of 'job' takes less than so many seconds. */
double workload_exchange_time(const struct workload_job *,
                              const struct sim_fabric *);

#endif /* sim/workload/workload.h */
