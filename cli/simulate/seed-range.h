/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SEED_RANGE_H
#define SEED_RANGE_H 1

/* Ranges of seeds: a random workload is simulated with each of them.
 *
 *    struct seed_range seeds;
 *
 *    error = seed_range_parse("1-100", &seeds);
 *    for (size_t i = 0; !error && i < seeds.n; i++) {
 *        error = seed_range_open("generate:1", seeds.first + i, &input);
 *        ...
 *        workload_input_uninit(&input);
 *    }
 *
 * Plain data. */

#include <stddef.h>
#include <stdint.h>

struct workload_input;

struct seed_range {
    uint64_t first;
    size_t n; /* Number of seeds; 0 without a range. */
};

/* Parses "FIRST-LAST" into the struct seed_range at 'range', which is the
 * 'parse' of an option's row.  Returns NULL or a malloc()'d message. */
char *seed_range_parse(const char *text, void *range);

/* Opens 'what' as workload_open() does, which the caller must close as after
 * that.  A workload that 'seed' does not change is an error. */
char *seed_range_open(const char *what, uint64_t seed,
                      struct workload_input *);

#endif /* cli/simulate/seed-range.h */
