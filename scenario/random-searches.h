/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SCENARIO_RANDOM_SEARCHES_H
#define SCENARIO_RANDOM_SEARCHES_H 1

/* Mixed searches of a scenario, drawn at random from a seed.
 *
 * If all searches have the same size and begin together, each rule that
 * serves the shortest first gives the same order.  With
 *
 *    "random_searches": {"seed": 1, "searches": 10, "span_s": 60,
 *                        "length": [0.5, 2], "iteration_ms": [5, 80],
 *                        "width": [160, 448], "rings": 0.33}
 *
 * in a scenario (the members have these defaults), the searches s0, s1...
 * follow those of the member "searches", which may be missing.  They arrive as
 * a Poisson process, scaled such that the first begins at 0 and the last at
 * "span_s".  Each search draws, in this order:
 *
 *   - the width of its model, from a range, logarithmic, a multiple of 16;
 *   - its number of trials, 2 to 5;
 *   - its length, from a range, logarithmic: its three rungs take 15, 25 and
 *     45 iterations times the length, and half of the trials, rounded up,
 *     continue;
 *   - whether its jobs are rings ("allreduce"), with probability "rings";
 *   - the workers of each job: 2 to 4 of a ring, else 1 to 3;
 *   - the servers of each job, unless it is a ring: 1 or 2;
 *   - the computing time of an iteration, from a range, logarithmic.
 *
 * Arrivals are stream 2^33 of the seed (trainer/data/seeded.h), search i is
 * stream 2^32 + i, and its hosts are those of search 64 + i in
 * scenario/random-placements.h.  So search i is the same whatever the number
 * of searches.
 *
 * The text of the scenario is expanded before it is read, so that the lab and
 * the simulator see ordinary searches.
 *
 * Plain data of the caller. */

#include <stdint.h>

struct json_at;

struct random_range {
    double min, max;
};

struct random_searches {
    int64_t seed;
    int n;                      /* Number of searches, 1 to 64. */
    int batch;                  /* Samples of an iteration, of all workers. */
    int samples;                /* Of the data. */
    double span_s;              /* Start of the last search, seconds. */
    double rings;               /* Share of searches with rings as jobs. */
    struct random_range length; /* Factor of the iterations of all rungs. */
    struct random_range iteration_ms; /* Computing of an iteration. */
    struct random_range width;        /* Of the models' hidden layers. */
};

/* Reads the object 'at' of a scenario with 'n_hosts' hosts. */
void random_searches_read(const struct json_at *at, int n_hosts,
                          struct random_searches *);

/* Returns 'text', a scenario, with the drawn searches at the end of
 * "searches", and with '*seed' as the seed unless 'seed' is null.  Returns a
 * copy of the text if it has no valid member "random_searches"; its reader
 * reports the error.  The caller frees. */
char *random_searches_expand(const char *text, const int64_t *seed);

#endif /* scenario/random-searches.h */
