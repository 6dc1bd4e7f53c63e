/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SLACK_H
#define SLACK_H 1

/* Ranks jobs by slack, so that the jobs of a stage that can wait do.
 *
 * A stage ends with its slowest job.  Serving a faster job of it early does
 * not end the stage earlier, and delays the slowest job of a later stage.
 * Varys avoids this with the rates of the flows of one coflow; here it is done
 * with the ranks of the jobs of a stage.
 *
 * The slack of a job is the expected completion of its stage, by the order of
 * stages, minus the job's remaining isolated time.  Expected completions of
 * stages far behind are too early, because ports are not independent, so only
 * the option 'slack_share' of the isolated time is subtracted.
 *
 * Measured on generated searches (mean stage completion time relative to fair,
 * 16 scenarios): 0.84 with all jobs of a stage together, 0.78 with slack.
 * Shares of 0.6 to 0.9 hardly differ; a share of 1 loses half of the
 * improvement.
 *
 *    order_compute(&options, op, &result);
 *    ...set jobs[i].stage, .id, .isolated, .ports, .n_ports, .stride...
 *    slack_assign(op, &result, n_levels, jobs, n_jobs);
 *    ...jobs[i].rank, .level...
 *
 * Uses the problem's scratch memory.  The caller owns the jobs and their
 * ports; slack_assign() sorts the jobs. */

#include <stddef.h>
#include <stdint.h>

struct order_options;
struct order_problem;
struct order_result;

struct slack_job {
    int stage;                  /* Index of the stage in the problem. */
    uint64_t id;                /* Breaks ties: the smaller goes first. */
    double isolated;            /* Remaining seconds without competitors,
                                 * >= 0. */
    const int *ports;           /* First of the ports that the job needs. */
    int n_ports;                /* Number of ports. */
    int stride;                 /* Bytes from one port to the next. */
    void *owner;                /* For the caller. */

    /* Results. */
    double slack;               /* Seconds. */
    int rank;                   /* 0 goes first. */
    int level;                  /* 0 to n_levels - 1; never falls along the
                                 * ranks among jobs that share a port. */
};

/* Ranks the 'n' jobs by slack, the least first, then by stage, then by id;
 * sets their levels for the number of levels of the options; and sorts them by
 * rank.  In an order of whole stages, see order_is_whole(), jobs have no slack
 * and get the rank and level of their stage. */
void slack_assign(const struct order_problem *, const struct order_result *,
                  const struct order_options *, struct slack_job *jobs,
                  size_t n);

/* Sets the ranks and the levels of 'n' jobs, sorted by rank. */
void slack_set_levels(const struct order_problem *, int n_levels,
                      struct slack_job *jobs, size_t n);

#endif /* order/result/slack.h */
