/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H 1

/* Numbers by chance that a seed decides, on every machine the same: what is
 * generated is named by its seed and can be made again (splitmix64, Steele et
 * al. 2014). */

#include <math.h>
#include <stdint.h>

struct sim_random {
    uint64_t state;             /* The seed at first. */
};

static inline uint64_t
sim_random_next(struct sim_random *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* From 'min' up to but not including 'max'. */
static inline double
sim_random_between(struct sim_random *r, double min, double max)
{
    return min + (max - min) * (sim_random_next(r) >> 11) * 0x1p-53;
}

/* The same, each factor as likely as each other one. */
static inline double
sim_random_log_between(struct sim_random *r, double min, double max)
{
    return exp(sim_random_between(r, log(min), log(max)));
}

/* An integer from 'min' to 'max', both included. */
static inline int
sim_random_integer(struct sim_random *r, int min, int max)
{
    return floor(sim_random_between(r, min, max + 1.0));
}

/* Until the next of events that come one by one at random, 1 on average. */
static inline double
sim_random_gap(struct sim_random *r)
{
    return -log1p(-sim_random_between(r, 0, 1));
}

/* Stores 'n' different integers from 0 to 'total' - 1 in 'picked'. */
static inline void
sim_random_pick(struct sim_random *r, int total, int n, int *picked)
{
    for (int i = 0; i < n; i++) {
        int j = 0;

        picked[i] = sim_random_integer(r, 0, total - 1);
        while (picked[j] != picked[i]) {
            j++;
        }
        i -= j < i;             /* One that is there already: once more. */
    }
}

#endif /* sim/workload/random.h */
