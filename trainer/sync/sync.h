/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SYNC_H
#define SYNC_H 1

/* When gradients become weights: a synchronisation scheme, seen by a server.
 *
 *
 * Motivation
 * ==========
 *
 * A server moves bytes; a scheme decides what they mean: which gradients make
 * an update, and when a worker may have the next weights.  Schemes know no
 * sockets, so that the one-process trainer and the tests run the same code.
 *
 *
 * Usage
 * =====
 *
 *    struct sync *sync = sync_bsp.create(&config);
 *    ...write the first weights to sync_bsp.weights(sync)...
 *    ...receive worker 2's gradient into sync_bsp.inbox(sync, 2)...
 *    error = sync_bsp.push(sync, 2, iteration, n_samples, loss);
 *    if (sync_bsp.ready(sync, 2, &iteration, &loss)) {
 *        ...send sync_bsp.weights(sync)...
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A scheme allocates at creation and owns its vectors.  The weights change
 * only inside push().  One thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/ps/optimiser.h"

struct backend;
struct sync;

struct sync_config {
    struct backend *backend;    /* Its memory must be mapped to the host. */
    int n_workers;
    size_t n;                   /* Parameters of the shard. */
    struct optimiser_config optimiser;
};

/* A part of a scheme's state. */
struct sync_span {
    void *data;
    size_t length;              /* Bytes. */
};

#define SYNC_MAX_SPANS 8

struct sync_class {
    const char *name;

    struct sync *(*create)(const struct sync_config *);
    void (*destroy)(struct sync *);

    float *(*weights)(struct sync *);
    float *(*inbox)(struct sync *, int worker);

    /* The inbox of 'worker' has the mean gradient of 'n_samples' samples at
     * the weights of 'iteration'; 'loss' is their mean loss.  Returns NULL, or
     * a message if that is not what the worker may send now. */
    char *(*push)(struct sync *, int worker, uint64_t iteration,
                  uint32_t n_samples, float loss);

    /* True if 'worker' may have the weights that follow what it pushed last.
     * Says their iteration, and the mean loss of the one before. */
    bool (*ready)(const struct sync *, int worker, uint64_t *iteration,
                  float *loss);

    /* Optional, for checkpoints: the iteration of the weights; the parts of
     * memory that with it are the whole state when an iteration has just
     * begun, and their number; their contents are now those of 'iteration',
     * and every worker is about to push that one. */
    uint64_t (*iteration)(const struct sync *);
    int (*spans)(struct sync *, struct sync_span[SYNC_MAX_SPANS]);
    void (*resume)(struct sync *, uint64_t iteration);
};

/* Bulk synchronous parallel: an update is the mean over all samples of all
 * workers.  With any split of a batch among workers the
 * weights are the same but for rounding. */
extern const struct sync_class sync_bsp;

#endif /* trainer/sync/sync.h */
