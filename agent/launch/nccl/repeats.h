/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NCCL_REPEATS_H
#define NCCL_REPEATS_H 1

/* Counts the iterations of a job by its series of collectives.
 *
 * Each iteration of training makes the same calls: the same operations on as
 * many elements, in the same order.  A call is a symbol, a hash of what it is
 * called with, and an iteration is a period of the series of symbols.  This is
 * exact where periods of traffic (agent/progress/iterations.h) are an
 * estimate, and needs no pauses.
 *
 *    struct repeats r = { .n = 0 };
 *
 *    n = repeats_add(&r, symbol);      // -1: unknown.
 *
 * A period is believed when it has occurred three times and explains half of
 * what is known.  Of several, the one that explains most is right, and of
 * those the shortest: parts of an iteration repeat too, but not across its
 * end.  If a period ends sooner than the next one takes, it was such a part,
 * and all calls count by the new one.  Calls that do not repeat, such as those
 * of an evaluation, count as parts of an iteration.  If an iteration is one
 * call many times, each of them counts as one.
 *
 * No state beside the object.  Not thread-safe. */

#include <stdint.h>

#define REPEATS_WINDOW 4096 /* Symbols that are known. */
#define REPEATS_LEAST 32    /* Symbols before the first result. */

struct repeats {
    uint64_t symbols[REPEATS_WINDOW]; /* The last ones, at their numbers
                                       * modulo REPEATS_WINDOW. */
    uint64_t n;                       /* All symbols. */
    uint64_t period;                  /* In symbols, 0 before the first. */
    uint64_t run;                     /* Symbols since it began to hold. */
    int lost;                         /* It does not hold now. */

    /* The iterations up to symbol 'from', at which 'period' was believed. */
    double before;
    uint64_t from;
};

int64_t repeats_add(struct repeats *, uint64_t symbol);

#endif /* agent/launch/nccl/repeats.h */
