/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LANES_H
#define LANES_H 1

/* Vectors of eight floats, from any address, for sums in a fixed order.
 *
 * A function with WIDE is compiled for two instruction sets; the one that the
 * processor has is called. */

#if defined __x86_64__ && !defined __clang__
#define WIDE __attribute__((__target_clones__("avx2", "default")))
#else
#define WIDE
#endif

#define N_LANES 8

typedef float lanes
    __attribute__((__vector_size__(4 * N_LANES), __aligned__(4),
                   __may_alias__));

/* A macro, because compilers pass vector arguments in different ways. */
#define lanes_sum(S)                                    \
    ((((S)[0] + (S)[4]) + ((S)[2] + (S)[6]))            \
     + (((S)[1] + (S)[5]) + ((S)[3] + (S)[7])))

#endif /* trainer/models/lanes.h */
