/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ITERATIONS_H
#define ITERATIONS_H 1

/* Counts the iterations of a job in its traffic.
 *
 * Most frameworks do not report progress, but each iteration of a job moves
 * the same bytes.  Sent bytes, received bytes and their sum are
 * searched separately, because they differ in what they show: a peer of a ring
 * alternates between sending and receiving, and computes only when both
 * directions are silent; a worker that pushes and then pulls has two pauses
 * per iteration in the sum and one in each direction.  Of the series with a
 * well proved period, the one with the fewest iterations is right: the others
 * count parts of an iteration.
 *
 *    it = iterations_create();
 *    iterations_add_bins(it, first, bins, n, time_msec());
 *    n = iterations_count(it);           // -1: unknown.
 *    iterations_destroy(it);
 *
 * Main thread only. */

#include <stddef.h>
#include <stdint.h>

struct iterations;
struct shim_bin;

struct iterations *iterations_create(void);
void iterations_destroy(struct iterations *);

/* Adds 'n' bins from number 'first' on.  Bins that were added before are
 * ignored, and missing ones count as empty. */
void iterations_add_bins(struct iterations *, uint64_t first,
                         const struct shim_bin *bins, size_t n, long long now);

/* Returns the iterations since the job began, -1 if unknown. */
int64_t iterations_count(const struct iterations *);

#endif /* agent/progress/iterations.h */
