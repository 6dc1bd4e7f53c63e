/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/balance/batch-size-manager.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "trainer/balance/batch-mode.h"
#include "trainer/balance/predictor.h"

struct batch_size_manager {
    struct batch_size_config config;    /* Its 'max' is the next member. */
    uint32_t *max;
    const struct batch_mode_class *class;
    struct batch_mode *mode;
    uint32_t *sizes;
    bool *reported;             /* Since the last decision? */
    int n_reported;
};

/* Returns part 'i', within its bounds, if a weight of 1 is worth 'scale'. */
static double
bounded(const double *weights, const uint32_t *max, double scale, int i)
{
    return fmax(1, fmin(max[i], scale * weights[i]));
}

/* Stores fractional parts within the bounds in 'quotas', with the sum 'total'
 * except for rounding.  The sum grows with the scale, which is found by
 * bisection. */
static void
find_quotas(int n, uint32_t total, const double *weights,
            const uint32_t *max, double *quotas)
{
    double low = 0, high = 0;

    for (int i = 0; i < n; i++) {
        high = fmax(high, fmin(max[i], total) / weights[i]);
    }
    for (int step = 0; step < 100; step++) {
        double scale = (low + high) / 2, sum = 0;

        if (scale <= low || scale >= high) {
            break;
        }
        for (int i = 0; i < n; i++) {
            sum += bounded(weights, max, scale, i);
        }
        if (sum < total) {
            low = scale;
        } else {
            high = scale;
        }
    }
    for (int i = 0; i < n; i++) {
        quotas[i] = bounded(weights, max, high, i);
    }
}

void
apportion(int n, uint32_t total, const double *weights,
          const uint32_t *max, double *scratch, uint32_t *parts)
{
    double *remainders = scratch;
    uint32_t sum = 0;

    find_quotas(n, total, weights, max, remainders);
    for (int i = 0; i < n; i++) {
        parts[i] = remainders[i] + 1e-9;        /* Rounds 6.999... up to 7. */
        remainders[i] -= parts[i];
        sum += parts[i];
    }
    while (sum != total) {
        int up = sum < total, best = -1;

        for (int i = 0; i < n; i++) {
            if ((up ? parts[i] < max[i] : parts[i] > 1)
                && (best < 0
                    || (up ? remainders[i] > remainders[best]
                           : remainders[i] < remainders[best]))) {
                best = i;
            }
        }
        parts[best] += up ? 1 : -1;
        remainders[best] -= up ? 1 : -1;
        sum += up ? 1 : -1;
    }
}

/* Returns a message if there are no sizes that fit. */
static char *
check(const struct batch_size_config *c)
{
    uint64_t room = 0;

    if (c->mode != BATCH_SIZE_CPU && c->mode != BATCH_SIZE_GPU) {
        return message("mode: %d; expected %d or %d", (int) c->mode,
                       BATCH_SIZE_CPU, BATCH_SIZE_GPU);
    }
    if (c->n_workers < 1 || c->batch < (uint32_t) c->n_workers) {
        return message(
            "batch: %lu samples for %d workers; expected at least one for "
            "each",
            (unsigned long) c->batch, c->n_workers);
    }
    for (int i = 0; i < c->n_workers; i++) {
        room += c->max && c->max[i] ? c->max[i] : c->batch;
    }
    if (room < c->batch) {
        return message("batch: %lu samples, the workers have memory for %llu",
                       (unsigned long) c->batch, (unsigned long long) room);
    }
    if (c->predictor && !predictor_class_find(c->predictor)) {
        return message("predictor: there is no \"%s\"", c->predictor);
    }
    return NULL;
}

void
batch_size_manager_divide(struct batch_size_manager *bsm,
                          const uint32_t *weights)
{
    int n = bsm->config.n_workers;
    double *copy = allocate(2 * n, sizeof *copy);

    for (int i = 0; i < n; i++) {
        copy[i] = weights ? weights[i] : 1;
    }
    apportion(n, bsm->config.batch, copy, bsm->max, copy + n, bsm->sizes);
    free(copy);
}

char *
batch_size_manager_create(const struct batch_size_config *config,
                          struct batch_size_manager **bsmp)
{
    struct batch_size_manager *bsm;
    char *error = check(config);

    *bsmp = NULL;
    if (error) {
        return error;
    }
    bsm = allocate(1, sizeof *bsm);
    bsm->config = *config;
    bsm->max = allocate(config->n_workers, sizeof *bsm->max);
    for (int i = 0; i < config->n_workers; i++) {
        bsm->max[i] = config->max && config->max[i]
                      && config->max[i] < config->batch
                      ? config->max[i] : config->batch;
    }
    bsm->config.max = bsm->max;
    bsm->sizes = allocate(config->n_workers, sizeof *bsm->sizes);
    bsm->reported = allocate(config->n_workers, sizeof *bsm->reported);
    batch_size_manager_divide(bsm, NULL);
    bsm->class = config->mode == BATCH_SIZE_GPU ? &batch_mode_gpu
                                                : &batch_mode_cpu;
    bsm->mode = bsm->class->create(&bsm->config);
    *bsmp = bsm;
    return NULL;
}

void
batch_size_manager_destroy(struct batch_size_manager *bsm)
{
    if (bsm) {
        bsm->class->destroy(bsm->mode);
        free(bsm->max);
        free(bsm->sizes);
        free(bsm->reported);
        free(bsm);
    }
}

int
batch_size_manager_report(struct batch_size_manager *bsm, int worker,
                          uint32_t n, double seconds,
                          double cpu, double memory)
{
    if (worker < 0 || worker >= bsm->config.n_workers) {
        return EINVAL;
    }
    bsm->class->report(bsm->mode, worker, n, seconds, cpu, memory);
    if (!bsm->reported[worker]) {
        bsm->reported[worker] = true;
        bsm->n_reported++;
    }
    return 0;
}

const uint32_t *
batch_size_manager_next(struct batch_size_manager *bsm)
{
    if (bsm->n_reported == bsm->config.n_workers) {
        bsm->class->decide(bsm->mode, bsm->sizes);
        for (int i = 0; i < bsm->config.n_workers; i++) {
            bsm->reported[i] = false;
        }
        bsm->n_reported = 0;
    }
    return bsm->sizes;
}

void
batch_size_aggregate(size_t n, double share, const float *gradient, float *sum)
{
    float weight = share;

    for (size_t i = 0; i < n; i++) {
        sum[i] += weight * gradient[i];
    }
}
