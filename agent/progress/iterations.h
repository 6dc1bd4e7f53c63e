/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ITERATIONS_H
#define ITERATIONS_H 1

/* Counts the iterations of a job in its traffic, and how long it waits.
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
 * A burst of a job takes at least its bytes at the link's rate.  Its time
 * beyond that is waiting: for other traffic on one of the links, and also for
 * a sender that is slower than its link.
 *
 * The time of a job is cut into bins of SHIM_BIN_MS.  A bin is busy with at
 * least WAITING_LEAST of what the link carries in it, so that heartbeats and
 * logs are no bursts.  A burst is a series of busy bins, WAITING_GAP that are
 * not busy end it, and it lasts one bin less than it has, because it begins
 * and ends within bins.  Of each bin the direction with more bytes counts: a
 * ring sends and receives at the same time, while a worker pushes and then
 * pulls, and receives little but acknowledgements meanwhile.
 *
 *    struct waiting w = { .busy = 0 };
 *
 *    waiting_add_bins(&w, first, bins, n, rate_bps);
 *    ...w.waited of w.busy seconds...
 *
 * A burst counts when it has ended.  Main thread only. */

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

#define WAITING_GAP 3           /* Bins. */
#define WAITING_LEAST (1 / 64.) /* Of the bytes of a link in a bin. */

struct waiting {
    double busy, waited; /* Seconds of all bursts that have ended. */

    /* The current burst. */
    uint64_t first, last; /* Its busy bins. */
    double bytes;         /* 0: none. */
};

/* Adds 'n' bins from number 'first' on, which are later than those before;
 * missing ones are empty.  'rate_bps' is the rate of the host's link; with 0
 * it is unknown, and nothing is added. */
void waiting_add_bins(struct waiting *, uint64_t first,
                      const struct shim_bin *bins, size_t n,
                      uint64_t rate_bps);

#endif /* agent/progress/iterations.h */
