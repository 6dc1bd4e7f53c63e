/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SEEDED_H
#define SEEDED_H 1

/* Random numbers that are identical on every machine.
 *
 * Every worker of a job generates its own copy of the data and of the initial
 * weights.  The copies must be equal to the bit, so the generators of the C
 * library cannot be used.  Not for secrets.
 *
 *    struct seeded rs;
 *    seeded_init(&rs, seed, stream);
 *    x = seeded_normal(&rs);
 *
 * Streams of one seed are independent.  Plain data of the caller. */

#include <stdint.h>

struct seeded {
    uint64_t s[2];              /* Never both 0. */
};

void seeded_init(struct seeded *, uint64_t seed, uint64_t stream);
uint64_t seeded_below(struct seeded *, uint64_t n);
double seeded_uniform(struct seeded *);   /* 0 <= x < 1. */
double seeded_normal(struct seeded *);    /* Mean 0, variance 1. */

/* Returns element 'i' of permutation number 'key' of 0 .. n - 1, without
 * storing the permutation. */
uint64_t seeded_permute(uint64_t key, uint64_t i, uint64_t n);

#endif /* trainer/data/seeded.h */
