/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_MISS_H
#define SHIM_MISS_H 1

/* From the loop to the agent: flows that nobody has claimed.
 *
 *
 * Motivation
 * ==========
 *
 * The agent should hear of a new flow at its first packet, but not of each of
 * its packets while it looks for the owner, and a host full of unknown flows
 * must not slow the loop down.  So a small filter remembers what was reported:
 * while it is unknown it comes again after 20 ms, then 40, and so on up to 320
 * ms; each report wakes up the control thread and the agent.  A ring of fixed
 * size carries it to the control thread.  What does not fit is not lost: it
 * comes again.
 *
 *
 * Usage
 * =====
 *
 *    miss_report(m, &key, hash, now);        (loop)
 *    miss_notify(m);                           (loop, after a burst)
 *    n = miss_take(m, keys, 64);             (control thread)
 *
 *    miss_repeat(m);                         (there is a new listener)
 *
 * miss_fd() is readable when there is something to take.  A further thread
 * that reports has a struct of its own, and what it reports is taken where all
 * is:
 *
 *    other = miss_add(m);                    (before the threads start)
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * One thread reports, one takes.  miss_destroy() is for those of miss_create()
 * and destroys what was added to them, too. */

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
