/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TUNE_H
#define TUNE_H 1

/* Searches for better parameters of a policy on several workloads.
 *
 * The best aging, number of levels or queue sizes depend on the cluster.  A
 * simulation evaluates them quickly, so a program can search.  Parameters that
 * were tuned on some workloads are accepted only if they are better on others,
 * which the search has not used.  If nothing is better there, the initial
 * policy is as good as any in the space, which is worth knowing, too.
 *
 * The search has three steps:
 *
 *  - Each knob alone is set to values across its range, on all workloads to
 *    learn from.  This shows what the knob does.  A knob without any effect on
 *    the first workloads is left out.
 *  - Successive halving: many policies, drawn from the whole space, from the
 *    best values of single knobs and from the neighborhood of the best policy
 *    so far, are simulated on few workloads, the best third of them on three
 *    times as many, and so on.  This repeats with closer neighborhoods until
 *    the budget is used up.
 *  - Each number of the best policy that does not help is reset to its value
 *    in the initial policy.
 *
 * The objective is the mean over workloads of the ratio to the initial policy
 * on the same workload, so that long workloads do not outweigh short ones.
 *
 *    struct tune_options options = {
 *        .objective = TUNE_MEAN_SCT, .evaluations = 2000,
 *    };
 *    struct tune_set sets[TUNE_N_PARTS] = { ... };
 *    struct tune_result result;
 *
 *    if (tune(sets, policy, &options, &result) && result.better) {
 *        ...result.policy...
 *    }
 *
 * The same workloads, policy, seed and number of evaluations give the same
 * result, as long as no time limit cuts them short; that is also why the
 * improvement step of an order gets all the time here that its moves take.
 *
 * The policy of the result shares its strings with the initial policy: it must
 * not be destroyed, and must not outlive that policy. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/policy.h"
#include "reporting/interval.h"
#include "sim/run/simulate.h"
#include "sim/run/tune-space.h"

struct workload;

/* What is to be small. */
enum tune_objective {
    TUNE_MEAN_SCT,              /* Mean of the stages' completion times. */
    TUNE_P95_SCT,               /* Their 95th percentile. */
    TUNE_MAX_SLOWDOWN,          /* The most that a stage takes of what it
                                 * takes alone. */
    TUNE_BALANCED,              /* Geometric mean of the first two. */
    TUNE_N_OBJECTIVES
};

extern const char *const tune_objectives[];     /* Null-terminated. */

/* Share of the workloads, or of the cojobs of a single one, that is learnt
 * from. */
#define TUNE_TRAIN_SHARE 0.6

/* Better is what is less by more than this share. */
#define TUNE_MARGIN 0.01

enum tune_part { TUNE_TRAIN, TUNE_HELD_BACK, TUNE_N_PARTS };

/* Workloads, at least one. */
struct tune_set {
    size_t n;
    const struct workload **workloads;
};

struct tune_options {
    enum tune_objective objective;
    size_t evaluations;         /* Simulations of the search at most, 0 is no
                                 * limit; */
    double budget_s;            /* and seconds, 0 is no limit.  One of them
                                 * must limit.  The initial policy and the
                                 * validation are always simulated. */
    uint64_t seed;
    enum sim_service service;   /* Without levels, what is theirs is left. */
    size_t n_kept;
    const char **kept;          /* Knobs that are left, see
                                 * tune_space_keep(). */

    /* Called after each simulation if not null, with the best ratio to the
     * initial policy so far. */
    void (*progress)(void *aux, size_t n_simulations, double ratio);
    void *aux;
};

struct tune_score {
    double of[TUNE_N_OBJECTIVES];       /* Seconds, seconds, 1, seconds. */
};

/* What one knob does to the objective while all others stay. */
struct tune_effect {
    const struct knob *knob;    /* In the result's 'space'. */
    size_t n;                   /* Workloads on which it was tried: those to
                                 * learn from if the budget suffices; 0 if
                                 * the budget ended before it was tried on
                                 * one, or if it is ineffective. */
    bool ineffective;           /* It was tried and had no effect. */
    double is, best, worst;     /* Values: of the initial policy, and of those
                                 * that were tried the best and the worst. */
    double gain, loss;          /* Shares of the objective, on these. */
    struct interval held_back;  /* Gain of the best value there, NAN if it was
                                 * not tried. */
};

struct tune_result {
    struct policy policy;       /* The best that was found. */
    size_t n_simulations;
    struct tune_score base[TUNE_N_PARTS];       /* Means of the first policy */
    struct tune_score tuned[TUNE_N_PARTS];      /* and of the best. */

    /* Shares that are saved, paired by workload. */
    struct interval gain[TUNE_N_PARTS][TUNE_N_OBJECTIVES];
    struct tune_space space;
    struct tune_effect effects[TUNE_MAX_KNOBS]; /* Of each knob. */
    bool better;                /* By more than the margin on the workloads
                                 * that were held back, and certainly so. */
};

/* An interrupt (base/interrupt.h) uses the budget up; then knobs alone are not
 * validated.  Returns false if it came before the initial policy was simulated
 * on all workloads: the result has only 'n_simulations'. */
bool tune(const struct tune_set sets[TUNE_N_PARTS], const struct policy *base,
          const struct tune_options *, struct tune_result *);

#endif /* sim/run/tune.h */
