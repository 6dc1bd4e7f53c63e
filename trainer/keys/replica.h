/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_REPLICA_H
#define PS_REPLICA_H 1

/* Bounded staleness: copies of rows at each node, and their homes' clocks.
 *
 *
 * Motivation
 * ==========
 *
 * Keys stay at their homes, and nodes work on copies.  What a node's workers
 * push is added to its copy at once, gathered for each key, and sent when the
 * slowest of them begins its next clock: a flush.  Homes add it up, and know
 * the clock that all nodes have reached.  A worker at clock c needs a row with
 * all of the clocks before c - staleness:
 *
 *    ssp     a row has the clock as of which its home sent it; if that is too
 *            old the node asks again, and the home answers when its clock is
 *            there
 *    essp    who has once asked for a row gets it again whenever the home's
 *            clock moves on and it has changed, and then the clock, which
 *            holds for all rows of the home
 *
 * A node sees what it pushed itself: values that come have its flushes that
 * the home has taken, which it knows from the home's last ITEM_FLUSHED, since
 * messages stay in order.  To these it adds the flush that is under way, of
 * which there is one at most, and what is not flushed yet.
 *
 * A barrier flushes, and after it no row counts that may lack something.
 *
 *
 * Usage
 * =====
 *
 *    replica_push(r, key, deltas);
 *    if (!replica_pull(r, worker, key, values)) {
 *        ...with the lock: replica_read(r, worker, &item)...
 *    }
 *    replica_clock(r, worker);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * replica_push() and replica_pull() want no lock and lock a row; all others
 * want the lock of the key store. */

#include <stdbool.h>
#include <stdint.h>

struct key_item;
struct key_store;
struct key_worker;
struct replica;

/* Of a store whose keys are at their homes. */
struct replica *replica_create(struct key_store *);
void replica_destroy(struct replica *);

void replica_push(struct replica *, uint64_t key, const float *deltas);

/* False if the row has to be asked for.  Waits under essp, if the home's clock
 * is behind. */
bool replica_pull(struct replica *, struct key_worker *, uint64_t key,
                  float *values);

/* Asks for the row of 'item', a ITEM_PULL. */
void replica_read(struct replica *, struct key_worker *,
                  const struct key_item *);

/* The worker begins its next clock.  Waits for the flush before. */
void replica_clock(struct replica *, struct key_worker *);

/* Before a barrier: flushes, and waits until the homes have it. */
void replica_settle(struct replica *, struct key_worker *);

/* After it. */
void replica_settled(struct replica *);

/* Returns false for what the node 'from' cannot have meant. */
bool replica_take(struct replica *, int from, const struct key_item *);

#endif /* trainer/keys/replica.h */
