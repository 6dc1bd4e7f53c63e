/* SPDX-License-Identifier: Apache-2.0 */

#include "order/problem/trials.h"

#include <math.h>
#include <stdlib.h>

#include "order/problem/memory.h"

/* Power of the chance to pass a rung.  By 3, searches of bench async take 6
 * to 10 % longer to their target (8 seeds) and need 6 to 9 % more GPU hours; 5
 * and 7 differ from 4 by 3 %, and the best trial has more loss. */
#define CHANCE_POWER 4

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

/* Returns true if 'other' is another trial on the way to the rung of
 * 'trial'. */
static bool
is_rival(const struct trial *other, const struct trial *trial)
{
    return other != trial && other->rung == trial->rung;
}

/* Returns the 'm'-th best of those that have been at the rung of 'trial' and
 * of its rivals among the 'n' 'known' ones, which are as many together. */
static double
cut_of(const struct trial *trial, const struct trial *const *known, size_t n,
       size_t m)
{
    const struct trial_rung *rung = trial->rung;
    size_t i = 0, k = 0;
    double cut = INFINITY;

    while (m--) {
        while (k < n && !is_rival(known[k], trial)) {
            k++;
        }
        if (i < rung->n && (k == n || rung->metrics[i] >= known[k]->mean)) {
            cut = rung->metrics[i++];
        } else {
            cut = known[k++]->mean;
        }
    }
    return cut;
}

/* Returns the chance of 'trial' to pass its rung, above 0. */
static double
chance_of(const struct trial *trial, const struct trial *const *known,
          size_t n, double eta)
{
    size_t all = trial->rung->n;
    double cut, chance;

    for (size_t k = 0; k < n; k++) {
        all += is_rival(known[k], trial);
    }
    if (!all || !trial->known) {
        return 1 / eta;
    }
    cut = cut_of(trial, known, n, n_kept(all + 1, eta));
    chance = erfc((cut - trial->mean) / (trial->sd * sqrt(2))) / 2;
    return (all * chance + 1) / (all + eta);
}

static int
compare_means(const void *a_, const void *b_)
{
    const struct trial *const *a = a_, *const *b = b_;

    return ((*a)->mean < (*b)->mean) - ((*a)->mean > (*b)->mean);
}

void
trials_promise(struct trial *trials, size_t n, double eta)
{
    const struct trial **known = order_alloc(n, sizeof *known);
    size_t n_known = 0;
    double most = 0;

    for (size_t t = 0; t < n; t++) {
        if (trials[t].known) {
            known[n_known++] = &trials[t];
        }
    }
    qsort(known, n_known, sizeof *known, compare_means);
    for (size_t t = 0; t < n; t++) {
        trials[t].chance = chance_of(&trials[t], known, n_known, eta);
        trials[t].promise = pow(trials[t].chance, CHANCE_POWER)
                            * sqrt(trials[t].rung->iterations)
                            / trials[t].work;
        most = fmax(most, trials[t].promise);
    }
    for (size_t t = 0; t < n; t++) {
        trials[t].promise /= most;
    }
    free(known);
}
