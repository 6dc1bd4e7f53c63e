/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOOKAHEAD_H
#define LOOKAHEAD_H 1

/* Latency hiding: the keys of samples to come are on their way.
 *
 *
 * Motivation
 * ==========
 *
 * A worker that knows its next samples, with all that is drawn by chance for
 * them, localizes their keys while it trains on those before.  Keys are asked
 * for many at a time, and only those that are not here already.
 *
 *
 * Usage
 * =====
 *
 * Samples go through a queue; what they are is the user's, as long as it is
 * made of keys:
 *
 *    la = lookahead_create(worker, ahead, max_keys);
 *    for (;;) {
 *        while (...more samples... && (keys = lookahead_room(la))) {
 *            ...write the sample's keys...
 *            lookahead_add(la, n, n);
 *        }
 *        n = lookahead_take(la, &keys);         // 0: no more.
 *        ...train; the keys stay until the next lookahead_room()...
 *    }
 *    lookahead_destroy(la);
 *
 * Keys that others have called away meanwhile are pulled and pushed as any.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Of one worker's thread. */

#include <stddef.h>
#include <stdint.h>

struct key_worker;
struct lookahead;

/* A queue of 'ahead' samples, at least 1, of at most 'max_keys' keys. */
struct lookahead *lookahead_create(struct key_worker *, size_t ahead,
                                   size_t max_keys);
void lookahead_destroy(struct lookahead *);

/* Where the next sample's keys go; NULL if the queue is full. */
uint64_t *lookahead_room(struct lookahead *);

/* Adds it, of 'n' keys, of which the first 'n_wanted' are localized. */
void lookahead_add(struct lookahead *, size_t n, size_t n_wanted);

/* The oldest sample; 0 if there is none. */
size_t lookahead_take(struct lookahead *, const uint64_t **keys);

#endif /* trainer/tasks/lookahead.h */
