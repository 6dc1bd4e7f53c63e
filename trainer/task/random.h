/* SPDX-License-Identifier: Apache-2.0 */

#ifndef RANDOM_H
#define RANDOM_H 1

/* Random numbers that are the same on every machine.
 *
 * Every worker of a job makes its own copy of the data and of the first
 * weights, and the copies must agree to the bit, so the C library's generators
 * will not do.  Not for secrets.
 *
 *    struct random_state rs;
 *    random_init(&rs, seed, stream);
 *    x = random_normal(&rs);
 *
 * Different 'stream's of one seed are independent.  A state is plain data of
 * the caller. */

#include <stdint.h>

struct random_state {
    uint64_t s[2];              /* Never both 0. */
};

void random_init(struct random_state *, uint64_t seed, uint64_t stream);
uint64_t random_u64(struct random_state *);
uint64_t random_below(struct random_state *, uint64_t n);
double random_uniform(struct random_state *);   /* 0 <= x < 1. */
double random_normal(struct random_state *);    /* Mean 0, variance 1. */

/* Element 'i' of permutation number 'key' of 0 .. n - 1, without storing the
 * permutation. */
uint64_t random_permute(uint64_t key, uint64_t i, uint64_t n);

#endif /* trainer/task/random.h */
