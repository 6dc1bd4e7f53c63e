/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LANES_H
#define LANES_H 1

/* Eight floats at once, wherever they begin: for sums whose order is ours.
 *
 * A function with WIDE is compiled twice, and the processor's is taken. */

#if defined __x86_64__ && !defined __clang__
#define WIDE __attribute__((__target_clones__("avx2", "default")))
#else
#define WIDE
#endif

#define N_LANES 8

typedef float lanes
    __attribute__((__vector_size__(4 * N_LANES), __aligned__(4),
                   __may_alias__));

/* A macro: a vector is no argument that all processors pass alike. */
#define lanes_sum(S)                                    \
    ((((S)[0] + (S)[4]) + ((S)[2] + (S)[6]))            \
     + (((S)[1] + (S)[5]) + ((S)[3] + (S)[7])))

#endif /* trainer/models/lanes.h */
