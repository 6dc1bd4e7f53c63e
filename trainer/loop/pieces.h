/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PIECES_H
#define PIECES_H 1

/* A gradient that is computed in pieces of a few samples.
 *
 * Under a scheme that moves samples between workers (schemes/steal.h), or that
 * sends a message when a gradient is not needed any more, a worker must
 * receive messages during an iteration.  It computes a few samples at a time
 * and receives in between, and while it emulates a slower machine.  The
 * gradients of the pieces are added up, weighted by their samples.
 *
 * Small pieces cost more, because the weights are read for each; large ones
 * leave less to take over.
 *
 * One thread. */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/ps/client.h"

struct loop;
struct loop_step;
struct pieces;
struct sync_message;

/* A share is divided into 'n_pieces'.  'steals': this worker takes samples of
 * other workers, and gives its own. */
struct pieces *pieces_create(struct loop *, struct ps_client *, bool steals,
                             uint32_t n_pieces);
void pieces_destroy(struct pieces *);

/* Leaves the mean gradient of the samples that this worker computed in the
 * model: zeros, of no samples, if the scheme would drop it. */
enum ps_result pieces_compute(struct pieces *, struct loop_step *,
                              char **errorp);

/* Takes a message that was received outside pieces_compute(). */
void pieces_take(struct pieces *, const struct sync_message *);

#endif /* trainer/loop/pieces.h */
