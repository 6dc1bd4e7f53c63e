/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRANSFERS_H
#define TRANSFERS_H 1

/* Transfer time of a gradient and of the weights that answer it.
 *
 * Balancing needs the time that a worker spends on transfers without the time
 * that it waits for other workers.  This is the time during which the kernel
 * has unacknowledged data on the connection (tcpi_busy_time) plus the time
 * during which weights arrive, counted once where both overlap.  The kernel's
 * resolution is 1 to 10 ms; means are right.
 *
 *    transfers_begin(&transfers, fd);          // Before the gradient.
 *    transfers_header(&transfers, fd);         // Weights begin to arrive.
 *    transfers_end(&transfers, fd);            // They, or a part, are here.
 *    ...transfers.seconds...
 *
 * Plain data.  One thread. */

#include <stdint.h>

struct transfers {
    uint64_t busy_us;           /* Busy time before the gradient. */
    int64_t header_us;          /* When the weights began to arrive. */
    uint64_t header_busy_us;    /* Busy time at 'header_us'. */
    uint64_t received_us;       /* Time during which weights arrived. */
    uint64_t both_us;           /* Part of 'received_us' with unacknowledged
                                 * data. */
    double seconds;             /* Of the last exchange; 0: none yet. */
};

void transfers_begin(struct transfers *, int fd);
void transfers_header(struct transfers *, int fd);
void transfers_end(struct transfers *, int fd);

#endif /* trainer/net/transfers.h */
