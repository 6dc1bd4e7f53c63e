/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BATCH_SIZE_MANAGER_H
#define BATCH_SIZE_MANAGER_H 1

/* Division of a batch among workers: semi-dynamic load balancing.
 *
 *
 * Motivation
 * ==========
 *
 * With bulk synchronous training an iteration lasts as long as its slowest
 * worker.  Workers with samples in proportion to their speeds finish together,
 * and the update stays exact: the mean gradients of the workers, weighted by
 * their shares, give the mean over the batch for any division.  Sizes change
 * between iterations only.
 *
 *
 * Usage
 * =====
 *
 * This header includes nothing else of the trainer:
 *
 *    struct batch_size_config config = {
 *        .mode = BATCH_SIZE_CPU, .n_workers = 8, .batch = 1024, .seed = 1,
 *    };
 *    error = batch_size_manager_create(&config, &bsm);
 *    for (;;) {
 *        sizes = batch_size_manager_next(bsm);
 *        ...worker i computes the mean gradient of sizes[i] samples...
 *        batch_size_aggregate(n, sizes[i] / 1024., gradient[i], sum);
 *        batch_size_manager_report(bsm, i, sizes[i], seconds[i], cpu[i],
 *                                  memory[i]);          // For each worker.
 *    }
 *
 * BATCH_SIZE_CPU is for workers whose time is proportional to their samples.
 * It predicts the speed of each (predictor.h) and divides the batch
 * accordingly.  'seconds' is the computing time.
 *
 * BATCH_SIZE_GPU is for workers whose time has a fixed part, an overhead and
 * communication.  It moves samples from the slowest worker to the fastest
 * until the times are about equal.  'seconds' is the time of the whole
 * iteration without waiting for others; 'cpu' and 'memory' are ignored.
 *
 * Sizes change only for a noticeable gain, so that jitter moves no samples.
 * Each worker has at least one sample.
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
    uint32_t batch;             /* Samples of an iteration over all workers. */
    const uint32_t *max;        /* [n_workers]: largest batch of each
                                 * worker, 0 if unlimited.  NULL if none is
                                 * limited. */
    const char *predictor;      /* For BATCH_SIZE_CPU; NULL for "narx". */
    uint64_t seed;              /* Seed of the predictors. */
};

/* Stores a manager with about equal initial sizes in '*bsmp'.  Returns NULL,
 * or a message that the caller frees: fewer samples than workers, less memory
 * than samples, an unknown predictor. */
char *batch_size_manager_create(const struct batch_size_config *,
                                struct batch_size_manager **bsmp);
void batch_size_manager_destroy(struct batch_size_manager *);

/* Reports that 'worker' took 'seconds' for 'n' samples.  'cpu' and 'memory'
 * are the current load of its machine by other programs, 0 to 1.  A time that
 * is not positive and finite is ignored, but the worker counts as done. */
void batch_size_manager_report(struct batch_size_manager *, int worker,
                               uint32_t n, double seconds,
                               double cpu, double memory);

/* Returns the sizes of the next iteration, [n_workers], with the sum of the
 * batch.  They are computed again after all workers have reported. */
const uint32_t *batch_size_manager_next(struct batch_size_manager *);

/* sum += share * gradient, over 'n' elements. */
void batch_size_aggregate(size_t n, double share, const float *gradient,
                          float *sum);

#endif /* trainer/balance/batch-size-manager.h */
