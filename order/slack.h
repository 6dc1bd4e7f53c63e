/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SLACK_H
#define SLACK_H 1

/* Which jobs of a stage may wait.
 *
 *
 * Motivation
 * ==========
 *
 * A stage ends with its slowest job.  A job that would be done long before its
 * stage gains nothing from being served at once, and holds up others that do:
 * a later stage's slowest job should go before an earlier stage's fastest.  It
 * is what Varys does with the flows of one coflow, by rates; here it is done
 * with the jobs of a stage, by their place in the order.
 *
 * A job's slack is the time to its stage's expected end, by the order of
 * stages, less what it still takes alone.  Expected ends are early for stages
 * far behind, because ports are not independent, so only SLACK_SHARE of the
 * time alone is counted.
 *
 * Measured on generated searches (mean stage completion time against fair, 16
 * scenarios): 0.84 with all jobs of a stage together, 0.78 with slack; the
 * share may be 0.6 to 0.9 without much difference, at 1 half of the gain is
 * gone.
 *
 *
 * Usage
 * =====
 *
 *    order_compute(&options, op, &result);
 *    ...jobs[i].stage, .isolated, .ports of each job that is not done...
 *    slack_assign(op, &result, n_levels, jobs, n_jobs);
 *    ...jobs[i].rank, .level...
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Computes with the problem's memory.  The jobs and their ports are the
 * caller's; the jobs are sorted. */

#include <stddef.h>
#include <stdint.h>

struct order_problem;
struct order_result;

#define SLACK_SHARE 0.85

struct slack_job {
    int stage;                  /* Index in the problem. */
    uint64_t id;                /* Breaks ties: the smaller goes first. */
    double isolated;            /* Seconds that it takes alone, >= 0. */
    const int *ports;           /* That it needs, 'n_ports' of them, each */
    int n_ports;                /* 'stride' bytes after the one before. */
    int stride;
    void *owner;                /* The caller's. */

    double slack;               /* Seconds; for the rest see above. */
    int rank;                   /* 0 goes first. */
    int level;                  /* 0 to n_levels - 1; never falls along the
                                 * ranks among jobs that share a port. */
};

/* Ranks 'n' jobs by slack, the least first, then by stage, then by id; gives
 * them levels among 'n_levels' (at least 1); and sorts them by rank. */
void slack_assign(const struct order_problem *, const struct order_result *,
                  int n_levels, struct slack_job *jobs, size_t n);

#endif /* order/slack.h */
