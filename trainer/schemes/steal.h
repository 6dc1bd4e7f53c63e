/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STEAL_H
#define STEAL_H 1

/* FlexRR at a worker: moves samples between workers within an iteration.
 *
 * A worker that has finished its samples takes some of the others', so that a
 * machine that is slow for a moment delays no other.  A sample is known to all
 * by its number in the batch, so only numbers are sent, and a gradient is
 * weighted by its samples, so any worker may compute it.
 *
 * A helper asks all others (FIND), which answer with the samples that they
 * have not started (STATUS).  The helper picks the worker with the most and
 * asks for the end of its range (HELP).  That worker gives it (CONFIRM), or
 * has started it meanwhile (CANCEL).
 *
 *    steal_begin(&steal, rank, n_workers, iteration, first, n);
 *    while (steal_next(&steal, piece, &first, &n)) {
 *        ...compute these samples...
 *        ...steal_take(&steal, &message) for each message received...
 *        ...send each message that steal_post() stores...
 *    }
 *
 * When steal_next() returns false and steal_idle() is false too, an answer is
 * outstanding: wait for a message.
 *
 * Plain data of the caller; no clocks, no sockets, no randomness.  One
 * thread. */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/schemes/sync.h"

#define STEAL_MAX_WORKERS 64
#define STEAL_MAX_POSTS (2 * STEAL_MAX_WORKERS)

enum steal_state {
    STEAL_OWN,                  /* Works on its own samples. */
    STEAL_ASKING,               /* Waits for STATUS of all others. */
    STEAL_CLAIMING,             /* Waits for CONFIRM or CANCEL. */
    STEAL_HELPING,              /* Works on another worker's samples. */
    STEAL_DONE,                 /* No worker has samples to give. */
};

struct steal {
    uint32_t rank, n_workers;
    uint64_t iteration;
    enum steal_state state;

    uint32_t first, end;        /* Own samples, not started. */
    uint32_t piece;             /* Samples computed at a time. */
    uint32_t help_first, help_end;      /* Another's samples, not started. */

    uint32_t n_statuses;        /* SYNC_STATUS received since SYNC_FIND. */
    struct sync_message best;   /* SYNC_STATUS with the most samples. */

    struct sync_message posts[STEAL_MAX_POSTS]; /* To send, to 'worker'. */
    uint32_t first_post, n_posts;
};

/* In 'iteration', 'n' samples from 'first' belong to this worker. */
void steal_begin(struct steal *, uint32_t rank, uint32_t n_workers,
                 uint64_t iteration, uint32_t first, uint32_t n);

/* Stores the next samples to compute, at most 'piece'.  Returns false if there
 * are none yet, or no more: see steal_idle(). */
bool steal_next(struct steal *, uint32_t piece, uint32_t *first, uint32_t *n);

/* Returns true if the iteration is over for this worker. */
bool steal_idle(const struct steal *);

/* Takes a message from 'm->worker'.  A request of another iteration is
 * answered with no samples; an answer of another one is ignored. */
void steal_take(struct steal *, const struct sync_message *m);

/* Stores the next message to send to its 'worker'.  Returns false if there is
 * none. */
bool steal_post(struct steal *, struct sync_message *);

#endif /* trainer/schemes/steal.h */
