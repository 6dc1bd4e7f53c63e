/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DECIDE_PROBLEM_H
#define DECIDE_PROBLEM_H 1

/* What the cluster has to do, as a problem for an order.
 *
 *
 * Motivation
 * ==========
 *
 * Orders differ in what they order: whole stages, jobs to the end of their
 * rung, or single exchanges of jobs.  What is known of jobs is the same for
 * all of them, so it is collected once, by job, and then added up to what the
 * order wants; what comes out is about jobs again, see decide-places.h.
 *
 *
 * Usage
 * =====
 *
 *    decide_problem_init(&dp, op, cluster, policy, unit, now);
 *    order_compute(&options, dp.op, &result);
 *    ...result.rank[dp.jobs[i].entry]...
 *    decide_problem_uninit(&dp);
 *
 * Jobs that have nothing to do in their stage, because they are at its end or
 * have ended, are not there.  A stage is, even if it has none.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Owns all but the order's problem, which the caller keeps so that it need not
 * grow again, and the cluster's jobs and stages.  Main thread only. */

#include <stddef.h>
#include <stdint.h>

#include "order/order.h"

struct cluster;
struct job;
struct policy;
struct stage;

/* A job that has something to do. */
struct decide_job {
    struct job *job;
    int stage;                  /* Index in 'stages'. */
    int entry;                  /* Index in 'op'. */
    int64_t left;               /* Iterations, at least 1. */
    struct order_demand *demands;       /* Of one iteration, by port. */
    size_t n_demands;
    double burst;               /* The longest of them. */
    double alone;               /* Seconds to the end of the rung at the pace
                                 * that was measured while nobody went before
                                 * the job; at least 'left' bursts. */
    double foreseen;            /* The same for people: of a job that always
                                 * waited, the best guess.  It decides
                                 * nothing. */
    struct order_traits traits; /* Of the job to the end of its rung. */
};

struct decide_problem {
    enum order_unit unit;
    struct order_problem *op;
    struct stage **stages;      /* That run, the oldest first.  With
                                 * ORDER_UNIT_STAGE, the entries of 'op'. */
    size_t n_stages;
    size_t *first_job;          /* Of each stage, in 'jobs'; one more for the
                                 * end. */
    struct decide_job *jobs;    /* By stage.  Otherwise, the entries. */
    size_t n_jobs, allocated_jobs;
};

void decide_problem_init(struct decide_problem *, struct order_problem *,
                         const struct cluster *, const struct policy *,
                         enum order_unit, int64_t now);
void decide_problem_uninit(struct decide_problem *);

#endif /* controller/decide/decide-problem.h */
