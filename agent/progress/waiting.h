/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WAITING_H
#define WAITING_H 1

/* How long a job waits for the network.
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
 * A burst counts when it has ended. */

#include <stddef.h>
#include <stdint.h>

struct shim_bin;

#define WAITING_GAP 3           /* Bins. */
#define WAITING_LEAST (1 / 64.) /* Of the bytes of a link in a bin. */

struct waiting {
    double busy, waited; /* Seconds of all bursts that have ended. */

    /* The current burst. */
    uint64_t first, last; /* Its busy bins. */
    double bytes;         /* 0: none. */
};

/* Adds 'n' bins from number 'first' on, which are later than those before;
 * missing ones are empty.  'rate_bps' is that of the host's link; with 0 it is
 * unknown, and nothing is added. */
void waiting_add_bins(struct waiting *, uint64_t first,
                      const struct shim_bin *bins, size_t n,
                      uint64_t rate_bps);

#endif /* agent/progress/waiting.h */
