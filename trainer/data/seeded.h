/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SEEDED_H
#define SEEDED_H 1

/* Random numbers that are the same on every machine.
 *
 * Every worker of a job makes its own copy of the data and of the first
 * weights, and the copies must agree to the bit, so the C library's generators
 * will not do.  Not for secrets.
 *
 *    struct seeded rs;
 *    seeded_init(&rs, seed, stream);
 *    x = seeded_normal(&rs);
 *
 * Different 'stream's of one seed are independent.  A state is plain data of
 * the caller. */

#include <stdint.h>

struct seeded {
    uint64_t s[2];              /* Never both 0. */
};

void seeded_init(struct seeded *, uint64_t seed, uint64_t stream);
uint64_t seeded_u64(struct seeded *);
uint64_t seeded_below(struct seeded *, uint64_t n);
double seeded_uniform(struct seeded *);   /* 0 <= x < 1. */
double seeded_normal(struct seeded *);    /* Mean 0, variance 1. */

/* Element 'i' of permutation number 'key' of 0 .. n - 1, without storing the
 * permutation. */
uint64_t seeded_permute(uint64_t key, uint64_t i, uint64_t n);

#endif /* trainer/data/seeded.h */
