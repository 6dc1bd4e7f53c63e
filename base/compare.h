/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BASE_COMPARE_H
#define BASE_COMPARE_H 1

/* Ascending orders of numbers, for qsort() and bsearch().
 *
 *    qsort(times, n, sizeof *times, compare_doubles); */

#include <stdint.h>

static inline int
compare_u32(const void *a_, const void *b_)
{
    const uint32_t *a = a_, *b = b_;

    return (*a > *b) - (*a < *b);
}

static inline int
compare_u64(const void *a_, const void *b_)
{
    const uint64_t *a = a_, *b = b_;

    return (*a > *b) - (*a < *b);
}

static inline int
compare_doubles(const void *a_, const void *b_)
{
    const double *a = a_, *b = b_;

    return (*a > *b) - (*a < *b);
}

#endif /* base/compare.h */
