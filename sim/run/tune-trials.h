/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TUNE_TRIALS_H
#define TUNE_TRIALS_H 1

/* Policies that a search has tried, each on some workloads.
 *
 *    struct trials trials;
 *    trials_init(&trials, sets, base, options);
 *    struct trial *t = trials_add(&trials, &space, &policy);
 *    trials_run(&trials, t, TUNE_TRAIN, 5);
 *    ...trials_ratio(&trials, t, 5)...
 *    trials_uninit(&trials);
 *
 * A policy is simulated once on each workload.  The first trial is the initial
 * policy, which is simulated on all workloads at once.
 *
 * Trials belong to their list.  Part of tune.c. */

#include "reporting/interval.h"
#include "sim/run/tune-space.h"
#include "sim/run/tune.h"

struct trial {
    struct policy policy;
    size_t n[TUNE_N_PARTS];     /* The first workloads of each part, on which
                                 * it was tried. */
    struct tune_score *scores[TUNE_N_PARTS];
};

struct trials {
    const struct tune_set *sets;        /* By part. */
    const struct tune_options *options;
    double began;               /* clock_monotonic_s(). */
    size_t n, allocated;
    struct trial **trials;
    size_t n_simulations;
    double best_ratio;          /* For the progress. */
};

void trials_init(struct trials *, const struct tune_set sets[TUNE_N_PARTS],
                 const struct policy *base, const struct tune_options *);
void trials_uninit(struct trials *);

/* Returns true if no more than 'share' of the budget is used up. */
bool trials_have_budget(const struct trials *, double share);

/* Returns the trial of 'policy', a new one if none has its values. */
struct trial *trials_add(struct trials *, const struct tune_space *,
                         const struct policy *);

/* Simulates 'trial' on the first 'n' workloads of 'part'. */
void trials_run(struct trials *, struct trial *, enum tune_part, size_t n);

/* Returns the mean of the objective of 'trial' relative to the initial policy
 * on the same workload, for the first 'n' workloads to learn from. */
double trials_ratio(const struct trials *, const struct trial *, size_t n);

/* Returns the share of 'objective' that 'trial' saves on all workloads of
 * 'part', on which it was tried. */
struct interval trials_gain(const struct trials *, const struct trial *,
                            enum tune_part, enum tune_objective);

/* Returns the means of what 'trial' reaches. */
struct tune_score trials_score(const struct trials *, const struct trial *,
                               enum tune_part);

#endif /* sim/run/tune-trials.h */
