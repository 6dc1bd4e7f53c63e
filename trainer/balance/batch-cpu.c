/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/balance/batch-mode.h"
#include "trainer/balance/batch-size-manager.h"
#include "trainer/balance/predictor.h"

/* Sizes change if the iteration becomes shorter by more than the usual error
 * of predictions, within these limits, or if the workers would finish that
 * many times further apart. */
#define LEAST_WORTH 0.01
#define MOST_WORTH 0.06
#define ERRORS 1.5              /* Multiple of the typical error that counts
                                 * as a change. */
#define APART 4

#define LEARNERS 12 /* Networks that learn without thrift. */

#define KEEP_ERROR 0.95         /* Decay of the mean error per iteration. */
#define MAX_ERROR 0.1           /* Limit of one error, so that a step of the
                                 * speed hardly changes the mean. */

struct batch_mode {
    const struct batch_size_config *config;
    struct predictor **predictors;
    double *speeds;             /* Predicted speeds. */
    double error;               /* Typical relative error of predictions. */
    double *scratch;
    uint32_t *target;
};

static struct batch_mode *
cpu_create(const struct batch_size_config *config)
{
    struct batch_mode *m = allocate(1, sizeof *m);
    const struct predictor_class *class = predictor_class_find(
        config->predictor ? config->predictor : "narx");
    int n = config->n_workers;

    m->config = config;
    m->speeds = allocate(n, sizeof *m->speeds);
    m->scratch = allocate(n, sizeof *m->scratch);
    m->target = allocate(n, sizeof *m->target);
    m->predictors = allocate(n, sizeof *m->predictors);
    for (int i = 0; i < n; i++) {
        m->predictors[i] = predictor_create(class, config->seed + i);
        m->predictors[i]->thrift = (n - 1) / LEARNERS;
    }
    return m;
}

static void
cpu_destroy(struct batch_mode *m)
{
    for (int i = 0; i < m->config->n_workers; i++) {
        predictor_destroy(m->predictors[i]);
    }
    free(m->predictors);
    free(m->speeds);
    free(m->scratch);
    free(m->target);
    free(m);
}

static void
cpu_report(struct batch_mode *m, int worker, uint32_t n, double seconds,
           double cpu, double memory)
{
    double speed = n / seconds, error = 0;

    if (m->speeds[worker] && isfinite(speed) && speed > 0) {
        error = fmin(fabs(speed / m->speeds[worker] - 1), MAX_ERROR);
        m->error += (1 - KEEP_ERROR) / m->config->n_workers
                    * (error - m->error);
    }
    predictor_update(m->predictors[worker], speed, cpu, memory);
}

/* Stores the time of the slowest and of the fastest worker with 'sizes' at the
 * predicted speeds. */
static double
seconds_of(const struct batch_mode *m, const uint32_t *sizes, double *shortest)
{
    double longest = 0;

    *shortest = INFINITY;
    for (int i = 0; i < m->config->n_workers; i++) {
        double seconds = sizes[i] / m->speeds[i];

        longest = fmax(longest, seconds);
        *shortest = fmin(*shortest, seconds);
    }
    return longest;
}

/* Returns true if the target is better than 'sizes' beyond the error of
 * predictions. */
static bool
is_worth_it(const struct batch_mode *m, const uint32_t *sizes)
{
    double worth = fmin(MOST_WORTH, fmax(LEAST_WORTH, ERRORS * m->error));
    double shortest, target_shortest;
    double longest = seconds_of(m, sizes, &shortest);
    double target = seconds_of(m, m->target, &target_shortest);

    return target < (1 - worth) * longest
           || (target <= longest
               && longest / shortest > (1 + APART * worth)
                                       * target / target_shortest);
}

static void
cpu_decide(struct batch_mode *m, uint32_t *sizes)
{
    const struct batch_size_config *c = m->config;

    for (int i = 0; i < c->n_workers; i++) {
        m->speeds[i] = predictor_predict(m->predictors[i]);
        if (!(m->speeds[i] > 0)) {
            return;             /* A worker has no speed yet. */
        }
    }
    apportion(c->n_workers, c->batch, m->speeds, c->max, m->scratch,
              m->target);
    if (is_worth_it(m, sizes)) {
        memcpy(sizes, m->target, c->n_workers * sizeof *sizes);
    }
}

const struct batch_mode_class batch_mode_cpu = {
    .create = cpu_create, .destroy = cpu_destroy, .report = cpu_report,
    .decide = cpu_decide
};
