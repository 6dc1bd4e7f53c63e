/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CHECKPOINT_H
#define CHECKPOINT_H 1

/* A server's shard on disk.
 *
 * A server that was killed can be started again from a checkpoint; the job
 * then goes back to the last checkpoint that all its servers have.  A file is
 * written beside the old one, synced and renamed, and its check sum is
 * verified when it is read, so that it is either whole or refused.  Instead of
 * a damaged one the checkpoint before it is read: servers keep two, so that
 * the others can go back as far.
 *
 * The servers of a job may share a folder: a file is called
 * "shard-INDEX-of-N.ITERATION".
 *
 *    error = checkpoint_write(dir, &hello, class, sync, iteration);
 *    checkpoint_prune(dir, &hello, 0, before);
 *
 *    iteration = checkpoint_last(dir, shard, n_shards);
 *    error = checkpoint_read(dir, &hello, false, &iteration, class, sync);
 *
 * Functions return NULL or a message. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECKPOINT_MAX_SHARDS 64

struct frame_hello;
struct sync;
struct sync_class;

char *checkpoint_write(const char *dir, const struct frame_hello *,
                       const struct sync_class *, struct sync *,
                       uint64_t iteration);

/* Deletes the shard's checkpoints from 'first' on and before 'end', if there
 * are any. */
void checkpoint_prune(const char *dir, const struct frame_hello *,
                      uint64_t first, uint64_t end);

/* Iteration of the last checkpoint in 'dir', of a shard or of one that all
 * have, or FRAME_NONE. */
uint64_t checkpoint_last(const char *dir, uint32_t shard, uint32_t n_shards);
uint64_t checkpoint_common(const char *dir, uint32_t n_shards);

/* Replaces the state of 'sync' by the last checkpoint that is not after
 * '*iteration'.  A damaged file is renamed to "....damaged" with one line on
 * standard error, and the last checkpoint before it is read; '*iteration'
 * becomes the iteration of the checkpoint.  Leaves 'sync' unchanged without a
 * file, or if it is of another training; if 'new_rate', learning rate and
 * schedule may be others. */
char *checkpoint_read(const char *dir, const struct frame_hello *,
                      bool new_rate, uint64_t *iteration,
                      const struct sync_class *, struct sync *);

/* Reads the 'n' weights and the statistics of the last checkpoint that all
 * shards have, of any training of a model of this size, and its iteration. */
char *checkpoint_load(const char *dir, size_t n, float *weights,
                      size_t n_statistics, float *statistics,
                      uint64_t *iteration);

#endif /* trainer/ps/checkpoint.h */
