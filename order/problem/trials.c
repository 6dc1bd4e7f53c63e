/* SPDX-License-Identifier: Apache-2.0 */

#include "order/problem/trials.h"

#include <math.h>
#include <stdlib.h>

#include "order/problem/memory.h"

/* Power of the chance to pass a rung. */
#define CHANCE_POWER 3

void
trial_rung_uninit(struct trial_rung *rung)
{
    free(rung->metrics);
}

/* Returns how many of 'n' trials a rung keeps. */
static size_t
n_kept(size_t n, double eta)
{
    return n >= eta ? n / eta : 1;
}

/* Inserts 'x' into 'falling', of 'n' numbers.  Returns how many are larger. */
static size_t
insert(double *falling, size_t n, double x)
{
    size_t larger = 0;

    for (; n && falling[n - 1] < x; n--) {
        falling[n] = falling[n - 1];
    }
    falling[n] = x;
    while (falling[larger] > x) {
        larger++;
    }
    return larger;
}

bool
trial_rung_judge(struct trial_rung *rung, double metric, double eta)
{
    size_t better;

    rung->metrics = order_grow(rung->metrics, rung->n + 1, &rung->allocated,
                               sizeof *rung->metrics);
    better =
        insert(rung->metrics, rung->n++, isnan(metric) ? -INFINITY : metric);
    return better < n_kept(rung->n, eta);
}

double
trials_after(const struct trial_rung *rungs, size_t n, double eta)
{
    double sum = 0, share = 1;

    for (size_t i = 1; i < n; i++) {
        share /= eta;
        sum += share * (rungs[i].iterations - rungs[i - 1].iterations);
    }
    return sum;
}

/* Stores what is predicted of the others that are on the way to the rung of
 * 'trials[t]', falling.  Returns their number. */
static size_t
find_others(const struct trial *trials, size_t n, size_t t, double *others)
{
    size_t n_others = 0;

    for (size_t i = 0; i < n; i++) {
        if (i != t && trials[i].known && trials[i].rung == trials[t].rung) {
            insert(others, n_others++, trials[i].mean);
        }
    }
    return n_others;
}

/* Returns the 'm'-th best of those at 'rung' and of the 'n' 'others', which
 * are as many together. */
static double
cut_of(const struct trial_rung *rung, const double *others, size_t n, size_t m)
{
    size_t i = 0, k = 0;
    double cut = INFINITY;

    while (m--) {
        bool there = i < rung->n && (k == n || rung->metrics[i] >= others[k]);

        cut = there ? rung->metrics[i++] : others[k++];
    }
    return cut;
}

/* Returns the chance of 'trials[t]' to pass its rung, above 0. */
static double
chance_of(const struct trial *trials, size_t n, size_t t, double eta,
          double *others)
{
    const struct trial *trial = &trials[t];
    size_t n_others = find_others(trials, n, t, others);
    size_t all = trial->rung->n + n_others;
    double cut, chance;

    if (!all || !trial->known) {
        return 1 / eta;
    }
    cut = cut_of(trial->rung, others, n_others, n_kept(all + 1, eta));
    chance = erfc((cut - trial->mean) / (trial->sd * sqrt(2))) / 2;
    return (all * chance + 1) / (all + eta);
}

void
trials_promise(struct trial *trials, size_t n, double eta)
{
    double *others = order_alloc(n, sizeof *others);
    double most = 0;

    for (size_t t = 0; t < n; t++) {
        trials[t].chance = chance_of(trials, n, t, eta, others);
        trials[t].promise = pow(trials[t].chance, CHANCE_POWER)
                            * sqrt(trials[t].rung->iterations)
                            / trials[t].work;
        most = fmax(most, trials[t].promise);
    }
    for (size_t t = 0; t < n; t++) {
        trials[t].promise /= most;
    }
    free(others);
}
