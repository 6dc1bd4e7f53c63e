/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_CHECKPOINT_H
#define PS_CHECKPOINT_H 1

/* A server's shard on disk.
 *
 *
 * Motivation
 * ==========
 *
 * A server that dies takes its weights with it.  With checkpoints it can be
 * started again and the job goes back to the last one that all its servers
 * have.  A file is either whole and right, or refused: it is written beside
 * the old one, carried to the disk, given its name, and its sum is checked
 * when it is read.
 *
 * The files of one job's servers may share a folder; each is called
 * "shard-INDEX-of-N.ITERATION".
 *
 *
 * Usage
 * =====
 *
 *    error = checkpoint_write(dir, &hello, class, sync, iteration);
 *    checkpoint_remove(dir, &hello, older);
 *
 *    iteration = checkpoint_last(dir, shard, n_shards);
 *    error = checkpoint_read(dir, &hello, iteration, class, sync);
 *
 * Ownership: plain functions that return NULL or a message. */

#include <stdint.h>

struct frame_hello;
struct sync;
struct sync_class;

char *checkpoint_write(const char *dir, const struct frame_hello *,
                       const struct sync_class *, struct sync *,
                       uint64_t iteration);

/* Does nothing if there is none. */
void checkpoint_remove(const char *dir, const struct frame_hello *,
                       uint64_t iteration);

/* The iteration of the last checkpoint of shard 'shard' of 'n_shards' in
 * 'dir', or FRAME_NONE. */
uint64_t checkpoint_last(const char *dir, uint32_t shard, uint32_t n_shards);

/* Replaces the state of 'sync' by that of 'iteration', or leaves it alone if
 * the file is not right. */
char *checkpoint_read(const char *dir, const struct frame_hello *,
                      uint64_t iteration, const struct sync_class *,
                      struct sync *);

#endif /* trainer/ps/checkpoint.h */
