/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BATCH_SIZE_MANAGER_H
#define BATCH_SIZE_MANAGER_H 1

/* How much of a batch each worker gets: semi-dynamic load balancing.
 *
 *
 * Motivation
 * ==========
 *
 * With bulk synchronous training an iteration takes as long as its slowest
 * worker.  Workers that get samples in proportion to their speeds end
 * together, and the update stays exact: with the workers' mean gradients
 * weighted by their shares it is the mean over the whole batch, whatever the
 * split.  Sizes change between iterations only.
 *
 *
 * Usage
 * =====
 *
 * This header needs nothing else of the trainer:
 *
 *    struct batch_size_config config = {
 *        .mode = BATCH_SIZE_CPU, .n_workers = 8, .batch = 1024, .seed = 1,
 *    };
 *    error = batch_size_manager_create(&config, &bsm);
 *    for (;;) {
 *        sizes = batch_size_manager_next(bsm);
 *        ...worker i computes the mean gradient of sizes[i] samples...
 *        batch_size_aggregate(n, batch_size_manager_share(bsm, i),
 *                             gradient[i], sum);        // For each worker.
 *        batch_size_manager_report(bsm, i, sizes[i], seconds[i], cpu[i],
 *                                  memory[i]);          // For each worker.
 *    }
 *
 * BATCH_SIZE_CPU is for workers whose time grows with their samples: it
 * predicts each one's speed (predictor.h) and divides the batch accordingly.
 * 'seconds' are those of computing.
 *
 * BATCH_SIZE_GPU is for workers whose time has a flat start, an overhead and
 * communication in it, so that there is no such thing as their speed: it
 * moves samples from the slowest worker, the straggler, to the fastest, the
 * leader, until they are about equal.  'seconds' are those of the whole
 * iteration without waiting for others; 'cpu' and 'memory' are not looked at.
 *
 * Sizes stay as they are unless a change is worth it, so that jitter moves no
 * samples.  Each worker has at least one sample.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The manager allocates at creation only.  Sizes are valid until the next
 * call of batch_size_manager_next().  The same calls give the same sizes.
 * One thread. */

#include <stddef.h>
#include <stdint.h>

struct batch_size_manager;

enum batch_size_mode {
    BATCH_SIZE_CPU,
    BATCH_SIZE_GPU,
};

struct batch_size_config {
    enum batch_size_mode mode;
    int n_workers;
    uint32_t batch;             /* Samples of an iteration, of all workers. */
    const uint32_t *max;        /* [n_workers]: samples for which a worker
                                 * has memory, 0: any number.  NULL: no
                                 * worker is bounded. */
    const char *predictor;      /* BATCH_SIZE_CPU.  NULL: "narx". */
    uint64_t seed;              /* Of the predictors. */
};

/* Stores a manager in '*bsmp' whose first sizes are about equal.  Returns
 * NULL, or a message that the caller frees if there can be none: fewer samples
 * than workers, less memory than samples, a predictor that does not exist. */
char *batch_size_manager_create(const struct batch_size_config *,
                                struct batch_size_manager **bsmp);
void batch_size_manager_destroy(struct batch_size_manager *);

/* 'worker' has taken 'seconds' for 'n' samples.  'cpu' and 'memory' are what
 * others use of its machine now, 0 to 1.  A time that is not positive and
 * finite says nothing of the worker but that it is done. */
void batch_size_manager_report(struct batch_size_manager *, int worker,
                               uint32_t n, double seconds,
                               double cpu, double memory);

/* The sizes of the next iteration, [n_workers], whose sum is the batch.  They
 * are decided anew when all workers have reported since the last time. */
const uint32_t *batch_size_manager_next(struct batch_size_manager *);

/* What the mean gradient of 'worker' weighs in the iteration of the sizes
 * last given. */
double batch_size_manager_share(const struct batch_size_manager *,
                                int worker);

/* sum += share * gradient, over 'n' elements. */
void batch_size_aggregate(size_t n, double share, const float *gradient,
                          float *sum);

#endif /* trainer/balance/batch-size-manager.h */
