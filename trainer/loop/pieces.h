/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PIECES_H
#define PIECES_H 1

/* An iteration computed in pieces, some for other workers, some not at all.
 *
 * Under a scheme that lets workers take samples from each other (steal.h), or
 * that tells them when what they compute is to be dropped, a worker computes a
 * few samples at a time and listens in between, and while it stands for a
 * slower machine.  The gradients of the pieces make one, weighted by their
 * samples.
 *
 * Small pieces cost more, since the weights are read for each; large ones
 * leave less to take.
 *
 * One thread. */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/ps/client.h"
#include "trainer/schemes/shard.h"

struct batch;
struct control;
struct dataset;
struct model;
struct options;
struct pace;
struct pieces;
struct sync_message;

struct pieces_in {
    const struct options *o;
    struct control *control;
    struct ps_client *client;
    struct dataset *data;
    struct model *model;
    struct batch *batch;
    struct pace *pace;
    bool helps;                 /* Takes others' samples, and gives its own. */
};

/* In 'n_pieces' of a share. */
struct pieces *pieces_create(const struct pieces_in *, size_t n_parameters,
                             uint32_t n_pieces);
void pieces_destroy(struct pieces *);

/* Leaves the mean gradient of the '*n' samples that were this worker's in the
 * end in the model, and stores their mean loss.  Zeros, of no samples, if it
 * would be dropped. */
enum ps_result pieces_compute(struct pieces *, uint64_t iteration,
                              struct shard share, uint32_t *n, double *loss,
                              char **errorp);

/* A message that came outside pieces_compute(). */
void pieces_take(struct pieces *, const struct sync_message *);

#endif /* trainer/loop/pieces.h */
