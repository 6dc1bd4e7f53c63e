/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BATCH_SIZE_MANAGER_H
#define BATCH_SIZE_MANAGER_H 1

/* Division of a batch among workers: semi-dynamic load balancing.
 *
 * With bulk synchronous training an iteration lasts as long as its slowest
 * worker.  Workers with samples in proportion to their speeds finish together,
 * and the update stays exact: the mean gradients of the workers, weighted by
 * their shares, give the mean over the batch for any division.  Sizes change
 * between iterations only.
 *
 * The method is LB-BSP: C. Chen, Q. Weng, W. Wang, B. Li, B. Li, "Semi-dynamic
 * load balancing: efficient distributed learning in non-dedicated
 * environments", ACM SoCC 2020.
 *
 * stagecoach-trainer uses this module for its schemes lbbsp-cpu and lbbsp-gpu.
 * Other trainers load it as libstagecoach-balance.  This header is then the
 * only one, and includes nothing of the trainer:
 *
 *    cc train.c $(pkg-config --cflags --libs stagecoach-balance)
 *
 * One process of the job has the manager.  It collects the times of all
 * workers after an iteration, and sends each worker its size for the next one:
 *
 *    struct batch_size_config config = {
 *        .mode = BATCH_SIZE_CPU, .n_workers = 8, .batch = 1024, .seed = 1,
 *    };
 *    error = batch_size_manager_create(&config, &bsm);
 *    for (;;) {
 *        sizes = batch_size_manager_next(bsm);
 *        ...worker i computes the mean gradient of sizes[i] samples, and then
 *        reads its meter: batch_size_meter_read(meter, &cpu[i], &memory[i])...
 *        batch_size_aggregate(n, sizes[i] / 1024., gradient[i], sum);
 *        batch_size_manager_report(bsm, i, sizes[i], seconds[i], cpu[i],
 *                                  memory[i]);          // For each worker.
 *    }
 *    batch_size_manager_destroy(bsm);
 *
 * BATCH_SIZE_CPU is for workers with a time proportional to their samples.  It
 * predicts the speed of each (predictor.h) and divides the batch accordingly.
 * 'seconds' is the computing time.
 *
 * BATCH_SIZE_GPU is for workers with a fixed part of their time, an overhead
 * and communication.  It moves samples from the slowest worker to the fastest
 * until the times are about equal.  'seconds' is the time of the whole
 * iteration without waiting for others; 'cpu' and 'memory' are ignored.
 *
 * Sizes change only for a noticeable gain, so that jitter moves no samples.
 * Each worker has at least one sample.  A trainer may use other sizes in an
 * iteration, also 0: the weighted mean is exact for any.  BATCH_SIZE_CPU may
 * be given the times of such an iteration, with the numbers of samples that
 * were computed; BATCH_SIZE_GPU must not.
 *
 * A configuration that is wrong is refused with a message "PLACE: WHAT, what
 * is allowed".  If there is no memory left, the process prints "out of memory"
 * on standard error and aborts.  A meter prints one line if the kernel lacks
 * some of its sources.  Nothing else is printed.
 *
 * The manager allocates at creation only, and keeps no pointer of the
 * configuration.  Sizes belong to the manager and are valid until the next
 * call of batch_size_manager_next().  The same calls on the same machine give
 * the same sizes; machines of different kinds may round differently, so only
 * one process decides.  One thread uses a manager or a meter; several are
 * independent of each other. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct batch_size_manager;

enum batch_size_mode { BATCH_SIZE_CPU, BATCH_SIZE_GPU };

struct batch_size_config {
    enum batch_size_mode mode;
    int n_workers;              /* At least 1. */
    uint32_t batch;             /* Samples of an iteration over all workers, at
                                 * least 'n_workers'. */
    const uint32_t *max;        /* [n_workers]: largest batch of each
                                 * worker, 0 if unlimited.  NULL if none is
                                 * limited. */
    const char *predictor;      /* For BATCH_SIZE_CPU: "memoryless", "ema",
                                 * "arima", "rnn", "lstm", "lstm-x" or "narx";
                                 * NULL for "narx". */
    uint64_t seed;              /* Seed of the predictors. */
};

/* Stores a manager with about equal initial sizes in '*bsmp'.  Returns NULL,
 * or a message that the caller frees with free(), and NULL in '*bsmp': an
 * unknown mode or predictor, fewer samples than workers, less memory than
 * samples. */
char *batch_size_manager_create(const struct batch_size_config *,
                                struct batch_size_manager **bsmp);
void batch_size_manager_destroy(struct batch_size_manager *);   /* Or NULL. */

/* Reports that 'worker', 0 to 'n_workers' - 1, took 'seconds' for 'n' samples.
 * 'cpu' and 'memory' are the current load of its machine by other programs, 0
 * to 1; 0 if it is unknown.  A time that is not positive and finite is
 * ignored, but the worker counts as done.  Returns 0, or EINVAL if there is no
 * such worker. */
int batch_size_manager_report(struct batch_size_manager *, int worker,
                              uint32_t n, double seconds,
                              double cpu, double memory);

/* Returns the sizes of the next iteration, [n_workers], with the sum of the
 * batch.  They are computed again after all workers have reported. */
const uint32_t *batch_size_manager_next(struct batch_size_manager *);

/* Measures what other processes use of the machine of the process that calls:
 * the loads of a report.  'n_threads' is the number of its threads that
 * compute.  batch_size_meter_read() stores the loads since the last call:
 * quotas of cgroups as they are now, waits for processors, memory that others
 * use or wait for.  A load that the kernel does not report is 0. */
struct batch_size_meter;

struct batch_size_meter *batch_size_meter_create(int n_threads);
void batch_size_meter_destroy(struct batch_size_meter *); /* Or NULL. */
void batch_size_meter_read(struct batch_size_meter *, double *cpu,
                           double *memory);

/* sum += share * gradient, over 'n' elements.  'share' is a worker's number of
 * samples divided by the batch. */
void batch_size_aggregate(size_t n, double share, const float *gradient,
                          float *sum);

#ifdef __cplusplus
}
#endif

#endif /* trainer/balance/batch-size-manager.h */
