/* SPDX-License-Identifier: Apache-2.0 */

#ifndef JOB_ASSIGNMENT_H
#define JOB_ASSIGNMENT_H 1

/* Assigns ranks and levels to jobs, from an order.
 *
 * The data plane serves jobs by rank and level.  An order of jobs or coflows
 * has the ranks and levels of its jobs.  In an order of stages, the jobs of a
 * stage that would end long before it are postponed (slack.h).  Slack is
 * measured, so jobs with about the same slack keep their previous order.  In
 * an order of whole stages, see order_is_whole(), jobs have the rank and level
 * of their stage unless an override moves them.
 *
 *    job_assignments_init(&assigned, &dp, policy, &result);
 *    ...assigned.jobs[k].dj has assigned.jobs[k].rank and .level;
 *       assigned.stages[k] is the stage of rank k...
 *    job_assignments_uninit(&assigned);
 *
 * Owns its arrays; refers to the problem, which must outlive it.  Reads the
 * jobs' previous ranks and changes nothing.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>

struct decide_job;
struct decide_problem;
struct order_problem;
struct order_result;
struct policy;

struct job_assignment {
    const struct decide_job *dj;
    int rank;                   /* 0 first; jobs of a whole stage share it, and
                                 * trials that are equal. */
    int level;                  /* 0 to the policy's n_levels - 1. */
    double slack;               /* Seconds; 0 unless stages are ordered. */
    bool moved;                 /* Of a job that starts. */
    bool waits;                 /* Another job has priority on one of its
                                 * ports, or the same rank, or shares it if all
                                 * jobs are served alike. */
};

struct job_assignments {
    struct job_assignment *jobs; /* Sorted by rank. */
    size_t n_jobs;
    int *stages;                /* Indexes of the problem's stages, by rank:
                                 * the order's or, if that is not of stages,
                                 * by their first jobs. */
    int *stage_levels;          /* Of each stage, by index: of its best job;
                                 * without jobs, the order's, or 0. */
    double *completions;        /* Of each stage, by index: estimated seconds
                                 * until it ends. */
    size_t n_stages;
};

void job_assignments_init(struct job_assignments *,
                          const struct decide_problem *,
                          const struct policy *, const struct order_result *);
void job_assignments_uninit(struct job_assignments *);

/* Sets 'completions' to the times at which the stages end if their iterations
 * are ordered, see job-ends.h; for more than JOB_ENDS_MAX jobs, if the stages
 * are served as a whole, in the order of 'stages'.  'whole' is their problem,
 * without its isolated times afterwards. */
void job_assignments_predict(struct job_assignments *,
                             const struct decide_problem *,
                             struct order_problem *whole);

#endif /* controller/decide/job-assignment.h */
