/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STEAL_H
#define STEAL_H 1

/* A worker that takes and gives work within an iteration: FlexRR.
 *
 *
 * Motivation
 * ==========
 *
 * A worker that is done with its samples helps those that are not, so that
 * machines that are slow for a moment hold nobody up.  Samples are known to
 * all by their place in the batch, so only places change hands, and a gradient
 * is weighted by its samples, so it does not matter whose they are.
 *
 * A helper asks all (FIND); whoever still has work to give says how much
 * (STATUS); the helper picks the one with most and asks for the end of its
 * range (HELP); the helpee agrees, and then the samples are the helper's
 * (CONFIRM), or it has begun with them meanwhile (CANCEL).
 *
 *
 * Usage
 * =====
 *
 *    steal_begin(&steal, rank, n_workers, iteration, first, n);
 *    while (steal_next(&steal, piece, &first, &n)) {
 *        ...compute these samples...
 *        ...steal_take(&steal, &message) for each message that comes...
 *        ...send what steal_post() gives...
 *    }
 *
 * When steal_next() returns false and steal_idle() is false too, an answer is
 * on its way: wait for a message.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain data of the caller, no clocks, no sockets, nothing random.  One
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
    STEAL_HELPING,              /* Works on another's samples. */
    STEAL_DONE,                 /* Nobody has anything to give. */
};

struct steal {
    uint32_t rank, n_workers;
    uint64_t iteration;
    enum steal_state state;

    uint32_t first, end;        /* Own samples not begun yet. */
    uint32_t piece;             /* Samples that are computed at a time. */
    uint32_t help_first, help_end;      /* Another's, not begun yet. */

    uint32_t n_statuses;        /* That came. */
    struct sync_message best;   /* The STATUS of who has most to give. */

    struct sync_message posts[STEAL_MAX_POSTS]; /* To send: 'worker' is to
                                                 * whom. */
    uint32_t first_post, n_posts;
};

/* 'n' samples from 'first' are ours in 'iteration'. */
void steal_begin(struct steal *, uint32_t rank, uint32_t n_workers,
                 uint64_t iteration, uint32_t first, uint32_t n);

/* The next samples to compute, at most 'piece'.  False if there are none now
 * or never again, see steal_idle(). */
bool steal_next(struct steal *, uint32_t piece, uint32_t *first,
                uint32_t *n);

/* True if the iteration is over for this worker. */
bool steal_idle(const struct steal *);

/* A message of 'm->worker' has come.  One of another iteration is answered
 * with "nothing to give", or is too late to matter. */
void steal_take(struct steal *, const struct sync_message *m);

/* The next message to send to its 'worker', if there is one. */
bool steal_post(struct steal *, struct sync_message *);

#endif /* trainer/schemes/steal.h */
