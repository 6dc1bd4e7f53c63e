/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/data/seeded.h"

#include <math.h>

/* A bijection of 64-bit numbers in which every input bit changes about half
 * of the output bits. */
static uint64_t
mix(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    return x;
}

void
seeded_init(struct seeded *rs, uint64_t seed, uint64_t stream)
{
    rs->s[0] = mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    rs->s[1] = mix(stream ^ rs->s[0]) | 1;
}

/* The xorshift128+ step. */
static uint64_t
seeded_u64(struct seeded *rs)
{
    uint64_t a = rs->s[0], b = rs->s[1];

    rs->s[0] = b;
    a ^= a << 23;
    rs->s[1] = a ^ b ^ (a >> 18) ^ (b >> 5);
    return rs->s[1] + b;
}

uint64_t
seeded_below(struct seeded *rs, uint64_t n)
{
    return n ? seeded_u64(rs) % n : 0;
}

double
seeded_uniform(struct seeded *rs)
{
    return (seeded_u64(rs) >> 11) * 0x1p-53;
}

double
seeded_normal(struct seeded *rs)
{
    double radius = sqrt(-2 * log(1 - seeded_uniform(rs)));

    return radius * cos(2 * M_PI * seeded_uniform(rs));
}

/* A Feistel network permutes the next power of 4; results outside 0 .. n - 1
 * are permuted again, less than 4 times on average. */
uint64_t
seeded_permute(uint64_t key, uint64_t i, uint64_t n)
{
    int half = 1;

    while (half < 31 && (UINT64_C(1) << (2 * half)) < n) {
        half++;
    }

    uint64_t mask = (UINT64_C(1) << half) - 1;

    do {
        uint64_t left = i >> half, right = i & mask;

        for (int round = 0; round < 4; round++) {
            uint64_t next = left ^ (mix(mix(key + round) + right) & mask);

            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}
