/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_MISS_H
#define SHIM_MISS_H 1

/* Reports misses, packets of unknown flows, from the loop to the agent.
 *
 * The agent should learn of a new flow at its first packet, but not of each
 * packet while it looks for the owner, and a host with many unknown flows must
 * not slow the loop down.  So a small filter remembers what was reported: a
 * flow that stays unknown is reported again after 20 ms, then 40, and so on up
 * to 320 ms.  A ring of fixed size passes the reports to the control thread.
 * A report that does not fit is not lost: the next packet of the flow repeats
 * it.
 *
 *    miss_report(m, &key, hash, now);        (loop)
 *    miss_notify(m);                         (loop, after a burst)
 *    n = miss_take(m, keys, 64);             (control thread)
 *
 *    miss_repeat(m);                         (a new client has connected)
 *
 * miss_fd() is readable when there are reports.  A further thread that reports
 * has a separate struct, whose reports are taken from the first one:
 *
 *    other = miss_add(m);                    (before the threads start)
 *
 * One thread reports, one takes.  miss_destroy() is for the first struct, and
 * destroys the added ones as well. */

#include <stdint.h>

#include "wire/shim-protocol.h"

struct miss;

struct miss *miss_create(void);
void miss_destroy(struct miss *);
struct miss *miss_add(struct miss *);

void miss_report(struct miss *, const struct shim_flow_key *, uint64_t hash,
                 uint64_t now);
void miss_notify(struct miss *);

int miss_fd(const struct miss *);
void miss_repeat(struct miss *);
uint32_t miss_take(struct miss *, struct shim_flow_key *, uint32_t max);

#endif /* shim/classify/miss.h */
