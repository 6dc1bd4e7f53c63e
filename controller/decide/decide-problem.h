/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DECIDE_PROBLEM_H
#define DECIDE_PROBLEM_H 1

/* Makes an order problem of what the cluster has to do.
 *
 * Orders differ in what they order: stages, jobs until the end of their rung,
 * or coflows, the exchanges of one iteration of a job; see 'enum order_unit'.
 * The input is the same for all, so it is collected by job, and then added up
 * to the order's units.  job-assignment.h converts the result to jobs again.
 *
 * An order of stages regards jobs that iterate as iterations with the weights
 * of iteration-weight.h.  Its estimate and its certificate are those of the
 * whole stages, 'whole'.
 *
 *    decide_problem_init(&dp, op, whole, cluster, policy, unit, now);
 *    order_compute(&options, dp.op, &result);
 *    ...result.rank[dp.jobs[i].entry]...
 *    decide_problem_uninit(&dp);
 *
 * Jobs that have reached the end of their stage, or have ended, are omitted.
 * Stages without other jobs are included.
 *
 * Owns all except 'op' and 'whole', which the caller keeps to reuse their
 * memory, and the cluster's jobs and stages.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "order/order.h"
#include "order/problem/announcement.h"
#include "order/problem/iteration-weight.h"

struct cluster;
struct job;
struct policy;
struct stage;

/* A job with remaining iterations. */
struct decide_job {
    struct job *job;
    int stage;                  /* Index in 'stages'. */
    int entry;                  /* Index in 'op'. */
    int64_t iterations;         /* Remaining, at least 1. */
    struct order_demand *demands;       /* Of one iteration, by port. */
    size_t n_demands;
    double burst;               /* The longest of them, seconds. */
    double isolated;            /* Isolated time to the end of the rung,
                                 * seconds: measured while no other job had
                                 * priority, at least 'iterations' bursts. */
    double predicted;           /* Isolated time for reports, seconds: a guess
                                 * for a job that has always waited.  Does not
                                 * influence the order. */
    bool starting;              /* It still moves its first parameters. */
    double urgency;             /* 'isolated' relative to the slowest job of
                                 * its stage, 0 to 1; 1 unless iterations are
                                 * ordered. */
    double chance;  /* Of a trial to pass its next rung, 0 unless promising
                     * ones go first. */
    double promise; /* Relative to the most promising trial of its search, 0
                     * to 1; 1 for a job that is none. */
    struct order_traits traits; /* To the end of the rung. */
};

struct decide_problem {
    enum order_unit unit;
    struct order_problem *op;
    struct order_problem *whole;        /* Whole stages, by index in 'stages',
                                 * if 'unit' is ORDER_UNIT_ITERATION. */
    struct stage **stages;      /* Running ones, the oldest first; the entries
                                 * of 'op' if 'unit' is ORDER_UNIT_STAGE. */
    size_t n_stages;
    struct candor candor;               /* Of all running stages. */
    struct iteration_need *needs;       /* Of each stage; NULL unless 'unit'
                                 * is ORDER_UNIT_ITERATION. */
    size_t *first_job;          /* Of each stage, in 'jobs'; and the end. */
    struct decide_job *jobs;    /* By stage; the entries of 'op' for the other
                                 * units. */
    size_t n_jobs, allocated_jobs;
};

void decide_problem_init(struct decide_problem *, struct order_problem *op,
                         struct order_problem *whole, const struct cluster *,
                         const struct policy *, enum order_unit,
                         long long now);
void decide_problem_uninit(struct decide_problem *);

/* Sets what the iterations of 'dj' need, as far as it depends on its job
 * alone.  The caller frees 'demands'. */
void decide_job_measure(struct decide_job *, const struct cluster *);

double decide_stage_weight(const struct policy *, const struct stage *);

/* Returns true if a running stage has jobs with more than one iteration. */
bool decide_problem_iterates(const struct cluster *);

#endif /* controller/decide/decide-problem.h */
