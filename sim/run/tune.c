/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/run/tune.h"

#include <assert.h>
#include <math.h>

#include "base/clock.h"
#include "sim/run/by-policy.h"
#include "order/problem/memory.h"
#include "sim/run/tune-space.h"
#include "sim/workload/workload-view.h"
#include "sim/workload/workload.h"

/* Of the budget, what the first random tries get at most. */
#define RANDOM_SHARE 0.4

/* What is left for putting back what does not help. */
#define PRUNE_SHARE 0.1

#define FIRST_STEP 0.25
#define LAST_STEP 0.01

/* Random tries in a row that were there before end a round. */
#define MAX_REPEATS 20

const char *const tune_objectives[] = {
    [TUNE_MEAN_SCT] = "mean_sct",
    [TUNE_P95_SCT] = "p95_sct",
    [TUNE_MAX_SLOWDOWN] = "max_slowdown",
    [TUNE_N_OBJECTIVES] = NULL,
};

/* A policy that was tried. */
struct trial {
    double values[TUNE_MAX_KNOBS];
    struct tune_score score;
};

struct search {
    const struct tune_options *options;
    const struct policy *base;
    const struct workload *train;
    struct tune_space space;
    double began;
    uint64_t random;
    size_t n_trials, allocated_trials;
    struct trial *trials;
    struct policy best;
    double best_score;
};

/* Returns the next of numbers that look random, 0 to below 1 (splitmix64). */
static double
next_random(struct search *s)
{
    uint64_t z = s->random += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return ((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* Returns true if no more than 'share' of the budget is used up. */
static bool
has_budget(const struct search *s, double share)
{
    const struct tune_options *o = s->options;

    if (o->evaluations && s->n_trials >= o->evaluations * share) {
        return false;
    }
    return !o->budget_s
           || clock_monotonic_s() - s->began < o->budget_s * share;
}

/* Simulates 'w' under 'policy'. */
static struct tune_score
replay(const struct search *s, const struct workload *w,
       const struct policy *policy)
{
    struct sim_options options;
    struct sim_result r;
    struct tune_score score;
    double slowdown = 1;

    options = sim_policy_options(policy);
    options.service = s->options->service;
    simulate_by_policy(w, policy, &options, &r);
    for (size_t i = 0; i < r.n_stages; i++) {
        const struct sim_stage *stage = &r.stages[i];

        if (stage->isolated > 0) {
            slowdown = fmax(slowdown,
                            (stage->end - stage->begin) / stage->isolated);
        }
    }
    score.of[TUNE_MEAN_SCT] = r.mean;
    score.of[TUNE_P95_SCT] = r.p95;
    score.of[TUNE_MAX_SLOWDOWN] = slowdown;
    sim_result_uninit(&r);
    return score;
}

/* Fills in 'policy's values; returns the trial that had them, or NULL. */
static const struct trial *
find_trial(const struct search *s, const struct policy *policy,
           struct trial *trial)
{
    for (size_t k = 0; k < s->space.n; k++) {
        trial->values[k] = knob_value(&s->space.knobs[k], policy);
    }
    for (size_t i = 0; i < s->n_trials; i++) {
        const struct trial *old = &s->trials[i];
        size_t k = 0;

        while (k < s->space.n && old->values[k] == trial->values[k]) {
            k++;
        }
        if (k == s->space.n) {
            return old;
        }
    }
    return NULL;
}

static double
objective(const struct search *s, const struct trial *trial)
{
    return trial->score.of[s->options->objective];
}

/* Returns what 'policy' reaches on the part to learn from, from memory if it
 * was tried before. */
static double
try(struct search *s, const struct policy *policy)
{
    struct trial trial;
    const struct trial *old = find_trial(s, policy, &trial);

    if (old) {
        return objective(s, old);
    }
    trial.score = replay(s, s->train, policy);
    s->trials = order_grow(s->trials, s->n_trials + 1, &s->allocated_trials,
                           sizeof *s->trials);
    s->trials[s->n_trials++] = trial;
    if (s->options->progress) {
        double first = objective(s, &s->trials[0]);
        double best = fmin(s->best_score, objective(s, &trial));

        s->options->progress(s->options->aux, s->n_trials,
                             first > 0 ? best / first : 1);
    }
    return objective(s, &trial);
}

/* Tries 'policy' and takes it if it is better than the best. */
static bool
try_better(struct search *s, const struct policy *policy)
{
    double x = try(s, policy);

    if (x < s->best_score) {
        s->best = *policy;
        s->best_score = x;
        return true;
    }
    return false;
}

/* Turns about half of the knobs of the best policy at random. */
static void
search_at_random(struct search *s, double share)
{
    int repeats = 0;

    while (repeats < MAX_REPEATS && has_budget(s, share)) {
        struct policy policy = s->best;
        size_t n = s->n_trials;

        for (size_t k = 0; k < s->space.n; k++) {
            if (next_random(s) < 0.5) {
                knob_set(&s->space.knobs[k], &policy, next_random(s));
            }
        }
        try_better(s, &policy);
        repeats = s->n_trials == n ? repeats + 1 : 0;
    }
}

/* Turns one knob by 'step' up or down; returns true if that was better. */
static bool
search_along(struct search *s, const struct knob *knob, double step)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        struct policy policy = s->best;
        double x = knob_get(knob, &policy) + sign * step;

        knob_set(knob, &policy, fmin(fmax(x, 0), 1));
        if (has_budget(s, 1 - PRUNE_SHARE) && try_better(s, &policy)) {
            return true;
        }
    }
    return false;
}

static void
search_pattern(struct search *s)
{
    double step = FIRST_STEP;

    while (step >= LAST_STEP && has_budget(s, 1 - PRUNE_SHARE)) {
        bool better = false;

        for (size_t k = 0; k < s->space.n; k++) {
            better |= search_along(s, &s->space.knobs[k], step);
        }
        step = better ? step : step / 2;
    }
}

/* Gives back to the knobs that do not help what the base has. */
static void
prune(struct search *s)
{
    for (size_t k = 0; k < s->space.n; k++) {
        const struct knob *knob = &s->space.knobs[k];
        struct policy policy = s->best;

        knob_copy(knob, &policy, s->base);
        if (knob_value(knob, &policy) != knob_value(knob, &s->best)
            && has_budget(s, 1)
            && try(s, &policy) <= s->best_score) {
            s->best = policy;
        }
    }
}

static void
search(struct search *s)
{
    size_t before;

    s->best = *s->base;
    s->best_score = INFINITY;
    s->best_score = try(s, &s->best);
    search_at_random(s, RANDOM_SHARE);
    do {
        before = s->n_trials;
        search_pattern(s);
        if (has_budget(s, 1 - PRUNE_SHARE)) {
            search_at_random(s, fmin(1 - PRUNE_SHARE, RANDOM_SHARE * 2));
        }
    } while (s->n_trials > before && has_budget(s, 1 - PRUNE_SHARE));
    prune(s);
}

/* Fills in what both policies reach on both parts. */
static void
compare(const struct search *s, const struct workload *held_back,
        struct tune_result *result)
{
    struct trial trial;
    const struct trial *best = find_trial(s, &s->best, &trial);

    result->base[TUNE_TRAIN] = s->trials[0].score;
    result->tuned[TUNE_TRAIN] = best->score;
    result->base[TUNE_HELD_BACK] = replay(s, held_back, s->base);
    result->tuned[TUNE_HELD_BACK] = best == s->trials
        ? result->base[TUNE_HELD_BACK] : replay(s, held_back, &s->best);
}

/* Returns true if the objective is really less on 'part'. */
static bool
is_better(const struct tune_options *o, const struct tune_result *r,
          enum tune_part part)
{
    return r->tuned[part].of[o->objective]
           < r->base[part].of[o->objective] * (1 - TUNE_MARGIN);
}

void
tune(const struct workload *w, const struct policy *base,
     const struct tune_options *options, struct tune_result *result)
{
    struct workload *parts[TUNE_N_PARTS];
    struct search s = {
        .options = options, .base = base, .random = options->seed,
    };

    assert(w->n_cojobs >= 2 && (options->evaluations || options->budget_s));
    workload_view_split(w, TUNE_TRAIN_SHARE, &parts[TUNE_TRAIN],
                        &parts[TUNE_HELD_BACK]);
    s.began = clock_monotonic_s();
    tune_space_init(&s.space, base,
                    options->service == SIM_SERVICE_LEVELS);
    s.train = parts[TUNE_TRAIN];
    search(&s);

    result->policy = s.best;
    result->n_evaluations = s.n_trials;
    compare(&s, parts[TUNE_HELD_BACK], result);
    result->better = is_better(options, result, TUNE_TRAIN)
                     && is_better(options, result, TUNE_HELD_BACK);
    for (int p = 0; p < TUNE_N_PARTS; p++) {
        result->n_cojobs[p] = parts[p]->n_cojobs;
        workload_view_destroy(parts[p]);
    }
    free(s.trials);
}
