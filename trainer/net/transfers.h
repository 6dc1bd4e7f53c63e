/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_TRANSFERS_H
#define PS_TRANSFERS_H 1

/* How long a gradient and the weights that answer it were on their way.
 *
 *
 * Motivation
 * ==========
 *
 * A worker's iteration is computing, transfers, and waiting for others.  Who
 * balances workers wants to know the first two; a clock around the exchange
 * shows all of it.  So this asks the kernel how long the connection had
 * something to send that was not acknowledged, and adds the time in which
 * weights came, unless both went on at once.
 *
 *
 * Usage
 * =====
 *
 *    transfers_begin(&transfers, fd);          // The gradient is next.
 *    ...send...
 *    transfers_header(&transfers, fd);         // Weights begin to come,
 *    transfers_end(&transfers, fd);            // and are there, or a part.
 *    ...transfers.seconds is what both took...
 *
 * The kernel counts in its ticks, 1 to 10 ms: right in the mean.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain data.  One thread. */

#include <stdint.h>

struct transfers {
    uint64_t busy_us;           /* Of the connection, before the gradient. */
    int64_t header_us;          /* When the weights began to come, */
    uint64_t header_busy_us;    /* and how busy it had been until then. */
    uint64_t received_us;       /* For which they came, */
    uint64_t both_us;           /* and was busy meanwhile. */
    double seconds;             /* Of the last exchange; 0: none yet. */
};

void transfers_begin(struct transfers *, int fd);
void transfers_header(struct transfers *, int fd);
void transfers_end(struct transfers *, int fd);

#endif /* trainer/net/transfers.h */
