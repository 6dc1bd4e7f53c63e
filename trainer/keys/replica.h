/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REPLICA_H
#define REPLICA_H 1

/* Bounded staleness: copies of rows at each node, and the clocks of homes.
 *
 * Keys stay at their homes, and nodes work on copies.  A push is added to the
 * node's copy at once, gathered per key, and sent when the slowest worker of
 * the node begins its next clock: a flush.  Homes apply flushes and know the
 * clock that all nodes have reached.  A worker at clock c needs rows that
 * include all clocks before c - staleness:
 *
 *    ssp     a row has the clock at which its home sent it; if it is too old
 *            the node asks again, and the home answers when its clock is there
 *    essp    a node that has asked for a row once gets it again whenever the
 *            home's clock advances and the row has changed, and then the
 *            clock, which is valid for all rows of the home
 *
 * A node always sees its own pushes.  A row that arrives includes the node's
 * flushes up to the home's last ITEM_FLUSHED, since messages stay in order; to
 * these the node adds the one flush that may be under way, and what it has not
 * flushed yet.  A flush waits for the previous one, so that there is one at
 * most.
 *
 * A barrier flushes; rows from before it are not used after it.
 *
 *    replica_push(r, key, deltas);
 *    if (!replica_pull(r, worker, key, values)) {
 *        ...with the lock: replica_read(r, worker, &item)...
 *    }
 *    replica_clock(r, worker);
 *
 * replica_push() and replica_pull() lock a row; all others require the lock of
 * the key store. */

#include <stdbool.h>
#include <stdint.h>

struct key_item;
struct key_store;
struct key_worker;
struct replica;

struct replica *replica_create(struct key_store *);
void replica_destroy(struct replica *);

void replica_push(struct replica *, uint64_t key, const float *deltas);

/* Returns false if the row must be requested.  Under essp waits while the
 * home's clock is behind. */
bool replica_pull(struct replica *, struct key_worker *, uint64_t key,
                  float *values);

/* Requests the row of 'item', an ITEM_PULL. */
void replica_read(struct replica *, struct key_worker *,
                  const struct key_item *);

/* Begins the next clock of the worker.  Waits for the previous flush. */
void replica_clock(struct replica *, struct key_worker *);

/* Before a barrier: flushes, and waits until the homes have applied it. */
void replica_settle(struct replica *, struct key_worker *);

/* After a barrier. */
void replica_settled(struct replica *);

/* Returns false for a message that node 'from' must not send. */
bool replica_take(struct replica *, int from, const struct key_item *);

#endif /* trainer/keys/replica.h */
