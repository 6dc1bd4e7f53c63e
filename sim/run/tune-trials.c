/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/run/tune-trials.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "order/problem/memory.h"
#include "sim/run/by-policy.h"

bool
trials_have_budget(const struct trials *t, double share)
{
    const struct tune_options *o = t->options;

    if (o->evaluations && t->n_simulations >= o->evaluations * share) {
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
    t->trials = order_grow(t->trials, t->n + 1, &t->allocated,
                           sizeof *t->trials);
    t->trials[t->n++] = trial;
    return trial;
}

void
trials_init(struct trials *t, const struct tune_set sets[TUNE_N_PARTS],
            const struct policy *base, const struct tune_options *options)
{
    *t = (struct trials) {
        .sets = sets, .options = options, .began = clock_monotonic_s(),
        .best_ratio = 1,
    };
    append(t, base);
    for (int p = 0; p < TUNE_N_PARTS; p++) {
        trials_run(t, t->trials[0], p, sets[p].n);
    }
}

void
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

struct trial *
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

void
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
            t->best_ratio = fmin(t->best_ratio,
                                 trials_ratio(t, trial, set->n));
        }
        if (o->progress) {
            o->progress(o->aux, t->n_simulations, t->best_ratio);
        }
    }
}

/* Returns the ratio of the objectives on one workload. */
static double
ratio(const struct trials *t, const struct trial *trial, enum tune_part part,
      size_t w, enum tune_objective objective)
{
    double base = t->trials[0]->scores[part][w].of[objective];

    return base > 0 ? trial->scores[part][w].of[objective] / base : 1;
}

double
trials_ratio(const struct trials *t, const struct trial *trial, size_t n)
{
    double sum = 0;

    for (size_t w = 0; w < n; w++) {
        sum += ratio(t, trial, TUNE_TRAIN, w, t->options->objective);
    }
    return sum / n;
}

struct interval
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

struct tune_score
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
