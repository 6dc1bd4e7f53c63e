/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/run/tune.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/interrupt.h"
#include "order/problem/memory.h"
#include "sim/run/by-policy.h"
#include "sim/workload/random.h"

/* Shares of the budget after which a step ends. */
#define SCAN_SHARE 0.4
#define SEARCH_SHARE 0.95

/* Number of values of a knob that are tried alone. */
#define N_POSITIONS 5

/* Number of workloads without an effect of a knob after which it is left
 * out. */
#define EFFECT_WORKLOADS 3

/* Number of policies that a round of halving begins with. */
#define N_CANDIDATES 27
#define HALVING 3

/* Rounds in a row without a new policy end the search. */
#define MAX_REPEATS 5

/* Neighborhood of the best policy: half its width of a knob's range in the
 * first round, and in the last ones. */
#define FIRST_STEP 0.4
#define LAST_STEP 0.02
#define STEP_DECAY 0.8

/* A number is reset if that costs at most such a share of the objective. */
#define RESET_SHARE 0.0005

const char *const tune_objectives[] = {
    [TUNE_MEAN_SCT] = "mean_sct",
    [TUNE_P95_SCT] = "p95_sct",
    [TUNE_MAX_SLOWDOWN] = "max_slowdown",
    [TUNE_BALANCED] = "balanced",
    [TUNE_N_OBJECTIVES] = NULL,
};

/* Policies that a search has tried, each on some workloads.  A policy is
 * simulated once on each.  The first trial is the initial policy, which is
 * simulated on all workloads at once. */

struct trial {
    struct policy policy;
    size_t n[TUNE_N_PARTS]; /* The first workloads of each part, on which
                             * it was tried. */
    struct tune_score *scores[TUNE_N_PARTS];
};

struct trials {
    const struct tune_set *sets; /* By part. */
    const struct tune_options *options;
    double began; /* clock_monotonic_s(). */
    size_t n, allocated;
    struct trial **trials;
    size_t n_simulations;
    double best_ratio; /* For the progress. */
};

/* Returns true if no more than 'share' of the budget is used up. */
static bool
trials_have_budget(const struct trials *t, double share)
{
    const struct tune_options *o = t->options;

    if (interrupt_caught()
        || (o->evaluations && t->n_simulations >= o->evaluations * share)) {
        return false;
    }
    return !o->budget_s
           || clock_monotonic_s() - t->began < o->budget_s * share;
}

/* Simulates 'w' under 'policy'. */
static struct tune_score
replay(const struct tune_options *tune_options, const struct workload *w,
       const struct policy *policy)
{
    struct sim_options options = sim_policy_options(policy);
    struct sim_result r;
    struct tune_score score;
    double slowdown = 1;

    options.service = tune_options->service;
    options.stopped = NULL; /* A running simulation is completed. */
    simulate_by_policy(w, policy, &options, &r);
    for (size_t i = 0; i < r.n_stages; i++) {
        const struct sim_stage *stage = &r.stages[i];

        if (stage->isolated > 0) {
            slowdown =
                fmax(slowdown, (stage->end - stage->begin) / stage->isolated);
        }
    }
    score.of[TUNE_MEAN_SCT] = r.mean;
    score.of[TUNE_P95_SCT] = r.p95;
    score.of[TUNE_MAX_SLOWDOWN] = slowdown;
    score.of[TUNE_BALANCED] = sqrt(r.mean * r.p95);
    sim_result_uninit(&r);
    return score;
}

static struct trial *
append(struct trials *t, const struct policy *policy)
{
    struct trial *trial = order_alloc(1, sizeof *trial);

    trial->policy = *policy;
    for (int p = 0; p < TUNE_N_PARTS; p++) {
        trial->scores[p] = order_alloc(t->sets[p].n, sizeof *trial->scores[p]);
    }
    t->trials =
        order_grow(t->trials, t->n + 1, &t->allocated, sizeof *t->trials);
    t->trials[t->n++] = trial;
    return trial;
}

static void
trials_uninit(struct trials *t)
{
    for (size_t i = 0; i < t->n; i++) {
        for (int p = 0; p < TUNE_N_PARTS; p++) {
            free(t->trials[i]->scores[p]);
        }
        free(t->trials[i]);
    }
    free(t->trials);
}

/* Returns the trial of 'policy', a new one if none has its values. */
static struct trial *
trials_add(struct trials *t, const struct tune_space *space,
           const struct policy *policy)
{
    for (size_t i = 0; i < t->n; i++) {
        if (tune_space_equal(space, &t->trials[i]->policy, policy)) {
            return t->trials[i];
        }
    }
    return append(t, policy);
}

/* Returns the ratio of the objectives on one workload. */
static double
ratio(const struct trials *t, const struct trial *trial, enum tune_part part,
      size_t w, enum tune_objective objective)
{
    double base = t->trials[0]->scores[part][w].of[objective];

    return base > 0 ? trial->scores[part][w].of[objective] / base : 1;
}

/* Returns the mean of the objective of 'trial' relative to the initial policy
 * on the same workload, for the first 'n' workloads to learn from. */
static double
trials_ratio(const struct trials *t, const struct trial *trial, size_t n)
{
    double sum = 0;

    for (size_t w = 0; w < n; w++) {
        sum += ratio(t, trial, TUNE_TRAIN, w, t->options->objective);
    }
    return sum / n;
}

/* Simulates 'trial' on the first 'n' workloads of 'part'. */
static void
trials_run(struct trials *t, struct trial *trial, enum tune_part part,
           size_t n)
{
    const struct tune_options *o = t->options;
    const struct tune_set *set = &t->sets[part];

    while (trial->n[part] < n) {
        size_t w = trial->n[part]++;

        trial->scores[part][w] = replay(o, set->workloads[w], &trial->policy);
        t->n_simulations++;
        if (part == TUNE_TRAIN && trial->n[part] == set->n) {
            t->best_ratio =
                fmin(t->best_ratio, trials_ratio(t, trial, set->n));
        }
        if (o->progress) {
            o->progress(o->aux, t->n_simulations, t->best_ratio);
        }
    }
}

/* Returns false after an interrupt. */
static bool
trials_init(struct trials *t, const struct tune_set sets[TUNE_N_PARTS],
            const struct policy *base, const struct tune_options *options)
{
    *t = (struct trials){
        .sets = sets,
        .options = options,
        .began = clock_monotonic_s(),
        .best_ratio = 1,
    };
    append(t, base);
    for (int p = 0; p < TUNE_N_PARTS; p++) {
        for (size_t n = 1; n <= sets[p].n; n++) {
            if (interrupt_caught()) {
                return false;
            }
            trials_run(t, t->trials[0], p, n);
        }
    }
    return true;
}

/* Returns the share of 'objective' that 'trial' saves on all workloads of
 * 'part', on which it was tried. */
static struct interval
trials_gain(const struct trials *t, const struct trial *trial,
            enum tune_part part, enum tune_objective objective)
{
    size_t n = t->sets[part].n;
    double *gains = order_alloc(n, sizeof *gains);
    struct interval in;

    for (size_t w = 0; w < n; w++) {
        gains[w] = 1 - ratio(t, trial, part, w, objective);
    }
    in = interval_of(gains, n);
    free(gains);
    return in;
}

/* Returns the means of what 'trial' reaches. */
static struct tune_score
trials_score(const struct trials *t, const struct trial *trial,
             enum tune_part part)
{
    size_t n = t->sets[part].n;
    struct tune_score mean = { { 0 } };

    for (size_t w = 0; w < n; w++) {
        for (int o = 0; o < TUNE_N_OBJECTIVES; o++) {
            mean.of[o] += trial->scores[part][w].of[o] / n;
        }
    }
    return mean;
}

struct search {
    struct trials trials;
    struct tune_space space;
    struct sim_random random;
    size_t n_train;

    /* Of each knob, what was tried with it alone. */
    struct trial *alone[TUNE_MAX_KNOBS][N_POSITIONS];
    size_t n_alone[TUNE_MAX_KNOBS];     /* 0 if it has no effect. */
    bool ineffective[TUNE_MAX_KNOBS];   /* It was tried and had none. */
    size_t n_scanned; /* Number of workloads on which all knobs were
                       * tried. */

    struct trial *best;         /* Has been on all workloads of its part. */
};

static const struct policy *
base_of(const struct search *s)
{
    return &s->trials.trials[0]->policy;
}

/* Takes 'trial', which was on all workloads to learn from, if it is better
 * than the best. */
static void
consider(struct search *s, struct trial *trial)
{
    if (trials_ratio(&s->trials, trial, s->n_train)
        < trials_ratio(&s->trials, s->best, s->n_train)) {
        s->best = trial;
    }
}

static void
add_alone(struct search *s, size_t k)
{
    for (int i = 0; i < N_POSITIONS; i++) {
        struct policy policy = *base_of(s);
        struct trial *trial;
        bool known = false;

        knob_set(&s->space.knobs[k], &policy, i / (N_POSITIONS - 1.0));
        trial = trials_add(&s->trials, &s->space, &policy);
        known |= trial == s->trials.trials[0];
        for (size_t j = 0; j < s->n_alone[k]; j++) {
            known |= trial == s->alone[k][j];
        }
        if (!known) {
            s->alone[k][s->n_alone[k]++] = trial;
        }
    }
}

/* Returns true if knob 'k' changed anything on the first 'n' workloads. */
static bool
has_effect(const struct search *s, size_t k, size_t n)
{
    const struct trials *t = &s->trials;

    for (size_t i = 0; i < s->n_alone[k]; i++) {
        for (size_t w = 0; w < n; w++) {
            for (int o = 0; o < TUNE_N_OBJECTIVES; o++) {
                if (s->alone[k][i]->scores[TUNE_TRAIN][w].of[o]
                    != t->trials[0]->scores[TUNE_TRAIN][w].of[o]) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* Tries each knob alone on one workload after the other, so that all knobs
 * have been on the same ones when the budget ends. */
static void
scan(struct search *s)
{
    for (size_t k = 0; k < s->space.n; k++) {
        add_alone(s, k);
    }
    for (size_t n = 1; n <= s->n_train; n++) {
        for (size_t k = 0; k < s->space.n; k++) {
            for (size_t i = 0; i < s->n_alone[k]; i++) {
                if (!trials_have_budget(&s->trials, SCAN_SHARE)) {
                    return;
                }
                trials_run(&s->trials, s->alone[k][i], TUNE_TRAIN, n);
            }
        }
        s->n_scanned = n;
        for (size_t k = 0; k < s->space.n; k++) {
            if (n == (s->n_train < EFFECT_WORKLOADS ? s->n_train
                      : EFFECT_WORKLOADS) && !has_effect(s, k, n)) {
                s->n_alone[k] = 0;
                s->ineffective[k] = true;
            }
        }
    }
}

/* Returns the best trial with knob 'k' alone, the first policy if none is
 * better. */
static struct trial *
best_alone(const struct search *s, size_t k)
{
    struct trial *best = s->trials.trials[0];
    double least = 1;

    for (size_t i = 0; s->n_scanned && i < s->n_alone[k]; i++) {
        double ratio = trials_ratio(&s->trials, s->alone[k][i], s->n_scanned);

        if (ratio < least) {
            least = ratio;
            best = s->alone[k][i];
        }
    }
    return best;
}

static bool
is_searched(const struct search *s, size_t k)
{
    return !s->space.knobs[k].kept && (s->n_alone[k] || !s->n_scanned);
}

static bool
draw(struct search *s, double probability)
{
    return sim_random_between(&s->random, 0, 1) < probability;
}

/* Takes the best of the single knobs if they were on all workloads. */
static void
consider_alone(struct search *s)
{
    for (size_t k = 0; s->n_scanned == s->n_train && k < s->space.n; k++) {
        if (is_searched(s, k)) {
            consider(s, best_alone(s, k));
        }
    }
}

/* Draws a policy: each third one from the whole space, from the best values of
 * single knobs, and within 'step' of the best so far. */
static struct policy
draw_policy(struct search *s, size_t number, double step)
{
    int kind = number % 3;
    struct policy policy = kind == 2 ? s->best->policy : *base_of(s);

    for (size_t k = 0; k < s->space.n; k++) {
        const struct knob *knob = &s->space.knobs[k];

        if (!is_searched(s, k) || !draw(s, 0.5)) {
            continue;
        }
        if (kind == 0) {
            knob_set(knob, &policy, sim_random_between(&s->random, 0, 1));
        } else if (kind == 1) {
            knob_copy(knob, &policy, &best_alone(s, k)->policy);
        } else {
            double x = knob_get(knob, &policy)
                       + sim_random_between(&s->random, -step, step);

            knob_set(knob, &policy, fmin(fmax(x, 0), 1));
        }
    }
    return policy;
}

/* Fills 'candidates' with different policies; returns their number.  The first
 * round has the best value of each knob. */
static size_t
draw_candidates(struct search *s, bool first, double step,
                struct trial *candidates[N_CANDIDATES])
{
    size_t n = 0;

    for (size_t i = 0; i < 4 * N_CANDIDATES && n < N_CANDIDATES; i++) {
        struct policy policy;
        size_t j = 0;

        if (first && i < s->space.n) {
            policy = is_searched(s, i) ? best_alone(s, i)->policy
                                       : *base_of(s);
        } else {
            policy = draw_policy(s, i, step);
        }
        candidates[n] = trials_add(&s->trials, &s->space, &policy);
        while (candidates[j] != candidates[n]) {
            j++;
        }
        n += j == n && candidates[n]->n[TUNE_TRAIN] < s->n_train;
    }
    return n;
}

/* Keeps the best 'n_kept' of the 'n' candidates by their first workloads. */
static void
keep_best(const struct search *s, struct trial **candidates, size_t n,
          size_t n_kept, size_t n_workloads)
{
    for (size_t i = 0; i < n_kept; i++) {
        for (size_t j = i + 1; j < n; j++) {
            if (trials_ratio(&s->trials, candidates[j], n_workloads)
                < trials_ratio(&s->trials, candidates[i], n_workloads)) {
                struct trial *tmp = candidates[i];

                candidates[i] = candidates[j];
                candidates[j] = tmp;
            }
        }
    }
}

/* Tries many policies on few workloads and few on many.  Returns false if it
 * found no new policy, or if the budget is used up. */
static bool
halve(struct search *s, bool first, double step)
{
    struct trial *candidates[N_CANDIDATES];
    size_t n = draw_candidates(s, first, step, candidates);
    size_t n_workloads = (s->n_train + HALVING * HALVING - 1)
                         / (HALVING * HALVING);

    while (n) {
        for (size_t i = 0; i < n; i++) {
            if (!trials_have_budget(&s->trials, SEARCH_SHARE)) {
                return false;
            }
            trials_run(&s->trials, candidates[i], TUNE_TRAIN, n_workloads);
        }
        if (n_workloads == s->n_train) {
            break;
        }
        keep_best(s, candidates, n, (n + HALVING - 1) / HALVING, n_workloads);
        n = (n + HALVING - 1) / HALVING;
        n_workloads = n_workloads * HALVING < s->n_train
                      ? n_workloads * HALVING : s->n_train;
    }
    for (size_t i = 0; i < n; i++) {
        consider(s, candidates[i]);
    }
    return n;
}

static void
search(struct search *s)
{
    double step = FIRST_STEP;
    bool first = true;

    for (int repeats = 0; repeats < MAX_REPEATS
                          && trials_have_budget(&s->trials, SEARCH_SHARE);) {
        repeats = halve(s, first, step) ? 0 : repeats + 1;
        first = false;
        step = fmax(step * STEP_DECAY, LAST_STEP);
    }
}

/* Resets the knobs that do not help, the last ones first. */
static void
reset_knobs(struct search *s)
{
    for (size_t k = s->space.n; k-- > 0; ) {
        const struct knob *knob = &s->space.knobs[k];
        struct policy policy = s->best->policy;
        struct trial *trial;

        knob_copy(knob, &policy, base_of(s));
        trial = trials_add(&s->trials, &s->space, &policy);
        if (trial != s->best && trials_have_budget(&s->trials, 1)) {
            trials_run(&s->trials, trial, TUNE_TRAIN, s->n_train);
            if (trials_ratio(&s->trials, trial, s->n_train)
                <= trials_ratio(&s->trials, s->best, s->n_train)
                   + RESET_SHARE) {
                s->best = trial;
            }
        }
    }
}

/* Describes what knob 'k' does alone. */
static struct tune_effect
describe(struct search *s, const struct tune_space *space, size_t k)
{
    const struct knob *knob = &space->knobs[k];
    struct trial *best = best_alone(s, k);
    size_t n_held_back = s->trials.sets[TUNE_HELD_BACK].n;
    struct tune_effect e = {
        .knob = knob, .n = s->n_alone[k] ? s->n_scanned : 0,
        .ineffective = s->ineffective[k], .is = knob_value(knob, base_of(s)),
        .best = knob_value(knob, &best->policy),
        .worst = knob_value(knob, base_of(s))
    };

    for (size_t i = 0; i < s->n_alone[k] && e.n; i++) {
        double gain = 1 - trials_ratio(&s->trials, s->alone[k][i], e.n);

        if (gain < -e.loss) {
            e.loss = -gain;
            e.worst = knob_value(knob, &s->alone[k][i]->policy);
        }
        e.gain = fmax(e.gain, gain);
    }
    if (!interrupt_caught()) {
        trials_run(&s->trials, best, TUNE_HELD_BACK, n_held_back);
    }
    e.held_back = best->n[TUNE_HELD_BACK] == n_held_back
                      ? trials_gain(&s->trials, best, TUNE_HELD_BACK,
                                    s->trials.options->objective)
                      : (struct interval){ 0, NAN, NAN, NAN };
    return e;
}

static void
compare(struct search *s, struct tune_result *result)
{
    const struct trials *t = &s->trials;

    for (int p = 0; p < TUNE_N_PARTS; p++) {
        trials_run(&s->trials, s->best, p, t->sets[p].n);
        result->base[p] = trials_score(t, t->trials[0], p);
        result->tuned[p] = trials_score(t, s->best, p);
        for (int o = 0; o < TUNE_N_OBJECTIVES; o++) {
            result->gain[p][o] = trials_gain(t, s->best, p, o);
        }
    }
}

/* Returns true if the gain is above the margin, and above 0 with 95 %
 * certainty if there is more than one workload. */
static bool
is_better(const struct interval *gain)
{
    return gain->mean > TUNE_MARGIN && !(gain->low <= 0);
}

/* Searches, and fills the result. */
static void
find(struct search *s, const struct tune_options *options,
     struct tune_result *result)
{
    s->best = s->trials.trials[0];
    scan(s);
    consider_alone(s);
    search(s);
    reset_knobs(s);

    *result = (struct tune_result){ .space = s->space };
    compare(s, result);
    for (size_t k = 0; k < s->space.n; k++) {
        result->effects[k] = describe(s, &result->space, k);
    }
    result->policy = s->best->policy;
    result->better =
        is_better(&result->gain[TUNE_TRAIN][options->objective])
        && is_better(&result->gain[TUNE_HELD_BACK][options->objective]);
}

bool
tune(const struct tune_set sets[TUNE_N_PARTS], const struct policy *base,
     const struct tune_options *options, struct tune_result *result)
{
    struct search s = { .random = { options->seed },
                        .n_train = sets[TUNE_TRAIN].n };
    bool begun;

    assert(sets[TUNE_TRAIN].n && sets[TUNE_HELD_BACK].n
           && (options->evaluations || options->budget_s));
    tune_space_init(&s.space, base, options->service == SIM_SERVICE_LEVELS);
    for (size_t i = 0; i < options->n_kept; i++) {
        tune_space_keep(&s.space, options->kept[i]);
    }
    begun = trials_init(&s.trials, sets, base, options);
    if (begun) {
        find(&s, options, result);
    }
    result->n_simulations = s.trials.n_simulations;
    trials_uninit(&s.trials);
    return begun;
}
