/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WORKER_H
#define WORKER_H 1

/* The training loop.
 *
 * A worker takes its share of each batch, computes the mean gradient, and
 * exchanges it for the next weights: with parameter servers, or, in the role
 * "local", with a synchronisation scheme in the same process.
 *
 * The share is the scheme's to change; a worker that it asks says how long its
 * steps take.
 *
 * The computing is real.  A speed profile (pace.h) only makes it take longer,
 * as if the worker were a slower machine; evaluation counts as part of the
 * step.
 *
 * Blocks until the end; one thread. */

struct control;
struct options;

/* Returns NULL if training ended as told, otherwise a message. */
char *worker_run(const struct options *, struct control *);

#endif /* trainer/loop/worker.h */
