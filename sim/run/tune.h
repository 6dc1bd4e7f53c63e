/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TUNE_H
#define TUNE_H 1

/* Searches for better parameters of a policy on a workload.
 *
 *
 * Motivation
 * ==========
 *
 * The best aging, number of levels or queue sizes depend on the cluster.  A
 * simulation evaluates them quickly, so a program can search.  Parameters that
 * were tuned on one part of a workload are accepted only if they are better on
 * the later part, which the search has not used.
 *
 * The search varies the numbers that the policy's order uses: first at random,
 * then one after the other up and down from the best so far, with shrinking
 * steps, and again.  Finally each number that does not help is reset to that
 * of the policy.
 *
 *
 * Usage
 * =====
 *
 *    struct tune_options options = {
 *        .objective = TUNE_MEAN_SCT, .evaluations = 200,
 *    };
 *    struct tune_result result;
 *
 *    tune(workload, policy, &options, &result);
 *    if (result.better) {
 *        ...result.policy...
 *    }
 *
 * The same workload, policy, seed and number of evaluations give the same
 * result, as long as no time limit cuts them short; that is also why the
 * improvement step of an order gets all the time here that its moves take.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The policy of the result shares its strings with the initial policy: it must
 * not be destroyed, and must not outlive that policy. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/policy.h"
#include "sim/run/simulate.h"

struct workload;

/* What is to be small. */
enum tune_objective {
    TUNE_MEAN_SCT,              /* Mean of the stages' completion times. */
    TUNE_P95_SCT,               /* Their 95th percentile. */
    TUNE_MAX_SLOWDOWN,          /* The most that a stage takes of what it
                                 * takes alone. */
    TUNE_N_OBJECTIVES
};

extern const char *const tune_objectives[];     /* Null-terminated. */

/* Share of the cojobs that is learnt from, the first by arrival. */
#define TUNE_TRAIN_SHARE 0.6

/* Better is what is less by more than this share. */
#define TUNE_MARGIN 0.001

enum tune_part { TUNE_TRAIN, TUNE_HELD_BACK, TUNE_N_PARTS };

struct tune_options {
    enum tune_objective objective;
    size_t evaluations;         /* Simulations at most, 0 is no limit; */
    double budget_s;            /* and seconds, 0 is no limit.  One of them
                                 * must limit. */
    uint64_t seed;
    enum sim_service service;   /* Without levels, what is theirs is left. */

    /* Called after each simulation if not null, with the best objective so
     * far, of the policy's at the beginning. */
    void (*progress)(void *aux, size_t n_evaluations, double ratio);
    void *aux;
};

struct tune_score {
    double of[TUNE_N_OBJECTIVES];       /* Seconds, seconds, 1. */
};

struct tune_result {
    struct policy policy;       /* The best that was found. */
    size_t n_evaluations;       /* On the part that is learnt from. */
    size_t n_cojobs[TUNE_N_PARTS];
    struct tune_score base[TUNE_N_PARTS];       /* Of the first policy. */
    struct tune_score tuned[TUNE_N_PARTS];
    bool better;                /* On both parts. */
};

/* The workload must have two cojobs at least. */
void tune(const struct workload *, const struct policy *base,
          const struct tune_options *, struct tune_result *);

#endif /* sim/run/tune.h */
