/* SPDX-License-Identifier: Apache-2.0 */

/* Hyper-parameters of each trial of a search. */

#include "trainer/search/spec.h"

#include <math.h>

#include "trainer/data/seeded.h"

/* Returns element 'i' of a sequence that goes through 0 .. n - 1 in random
 * order, and then again in another order. */
static uint64_t
without_repetition(uint64_t seed, uint64_t i, uint64_t n)
{
    return seeded_permute(seed + i / n, i % n, n);
}

/* Returns a rate of the range: each trial has its own stratum. */
static double
rate_of_range(const struct search_spec *spec, int i)
{
    struct seeded rs;
    double x;

    seeded_init(&rs, spec->seed, 1000 + i);
    x = (seeded_permute(spec->seed, i, spec->n_trials)
         + seeded_uniform(&rs)) / spec->n_trials;
    return spec->rate_log
           ? spec->rate_min * pow(spec->rate_max / spec->rate_min, x)
           : spec->rate_min + (spec->rate_max - spec->rate_min) * x;
}

struct search_trial
search_spec_trial(const struct search_spec *spec, int i)
{
    uint64_t n_rates = spec->n_rates ? spec->n_rates : 1;
    uint64_t n = n_rates * spec->n_widths * spec->n_batches;
    uint64_t choice = without_repetition(spec->seed, i, n);

    return (struct search_trial) {
        .learning_rate = spec->n_rates ? spec->rates[choice % n_rates]
                                       : rate_of_range(spec, i),
        .width = spec->widths[choice / n_rates % spec->n_widths],
        .batch = spec->batches[choice / n_rates / spec->n_widths],
        .placement = &spec->placements[i % spec->n_placements],
    };
}
