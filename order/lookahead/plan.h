/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOOKAHEAD_PLAN_H
#define LOOKAHEAD_PLAN_H 1

/* Searches factors of the keys of jobs that end searches earlier.
 *
 * The key of iteration-weight.h regards each search alone.  Which search goes
 * second or third is decided better by which jobs can overlap, because their
 * hosts differ, than by size.  So other orders are tried, each judged by what
 * follows from it (judge.h), and the best one is taken.
 *
 *    struct plan_options options = { .n_runs = 120, .seed = 1 };
 *
 *    plan_improve(&situation, &options, factors);
 *    ...the key of job i is multiplied by factors[i]...
 *
 * An order is judged by the mean over PLAN_GUESSES guesses of the jobs that
 * survive each rung: a plan for one guess loses if another comes true.  The
 * first orders are the key alone, the last plan, which the caller passes in
 * 'factors', least remaining work of the stage first, and the primal-dual
 * permutation of the searches; then a search goes before or behind another
 * one, two searches change places, or one job does, until the limits are
 * reached or nothing has helped for long.  The result is never worse than the
 * key alone, by this judge.  A search that ends later than the policy's limit
 * makes an order expensive (judge.h), so plans avoid that.
 *
 * With other guesses in each plan, plans change with the guesses, and half of
 * the gain is lost; so each search keeps its guesses.  With 60, 240 and 900
 * runs in a second the gain is the same: what is lost is that survivors are
 * not known (docs/notes/tried.md).
 *
 * Without a limit of time it depends only on its arguments.  Needs memory for
 * the time of the call only.  Different threads may plan at the same time. */

#include <stdint.h>

struct judge_situation;

#define PLAN_GUESSES 3

struct plan_options {
    int n_runs;   /* Limit of the runs of the judge; below
                   * PLAN_GUESSES there is no plan. */
    double cpu_s; /* Limit of the processor time of the calling thread,
                   * seconds; 0 means no limit. */
    uint64_t seed;
};

struct plan_result {
    double saved; /* Share of the remaining time of the searches that
                   * the plan saves, by the judge; 0 if the key alone
                   * is best. */
    int n_runs;   /* Of the judge. */
    double cpu_s; /* Processor time. */
};

/* Sets the factors of all jobs. */
struct plan_result plan_improve(const struct judge_situation *,
                                const struct plan_options *, double factors[]);

#endif /* order/lookahead/plan.h */
