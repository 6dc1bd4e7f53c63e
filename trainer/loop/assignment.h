/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ASSIGNMENT_H
#define ASSIGNMENT_H 1

/* Which samples of each batch a worker has, by what the scheme said.
 *
 * A scheme gives each worker a part of a whole, from 'first' / 'total' on.
 * Both ends of a part are rounded alike, so that parts that fit together are
 * samples that do: each of a batch has one worker.
 *
 *    error = assignment_take(&message, batch, &share);
 *    dataset_fill(data, seed, iteration * batch + share.first, share.n, ...);
 *
 * A pure function. */

#include <stdint.h>

#include "trainer/schemes/shard.h"

struct sync_message;

/* Returns NULL, or why 'm' assigns nothing; then '*share' stays. */
char *assignment_take(const struct sync_message *m, uint64_t batch,
                      struct shard *share);

#endif /* trainer/loop/assignment.h */
