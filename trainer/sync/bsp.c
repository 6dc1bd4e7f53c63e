/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/sync/sync.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/backend/backend.h"
#include "trainer/message.h"

struct bsp_worker {
    float *gradient;            /* The inbox. */
    uint64_t n_pushed;          /* Iterations; what it waits for is this. */
    uint32_t n_samples;         /* Of the last push. */
    float loss;
};

struct sync {
    struct sync_config config;
    uint64_t iteration;         /* Of the weights. */
    int n_arrived;              /* Workers that have pushed 'iteration'. */
    float loss;                 /* Of the iteration before. */
    float *weights, *sum;
    float *state[OPTIMISER_MAX_STATES];
    struct bsp_worker *workers;
};

static float *
vector(struct sync *sync)
{
    return backend_alloc(sync->config.backend,
                         sync->config.n * sizeof(float));
}

static struct sync *
bsp_create(const struct sync_config *config)
{
    struct sync *sync = allocate(1, sizeof *sync);

    assert(config->backend->class->map);
    sync->config = *config;
    sync->weights = vector(sync);
    for (int i = 0; i < config->optimiser.class->n_states; i++) {
        sync->state[i] = vector(sync);
    }
    sync->sum = vector(sync);
    sync->workers = allocate(config->n_workers, sizeof *sync->workers);
    for (int i = 0; i < config->n_workers; i++) {
        sync->workers[i].gradient = vector(sync);
    }
    return sync;
}

static void
bsp_destroy(struct sync *sync)
{
    if (sync) {
        struct backend *b = sync->config.backend;

        for (int i = 0; i < sync->config.n_workers; i++) {
            backend_free(b, sync->workers[i].gradient);
        }
        free(sync->workers);
        backend_free(b, sync->weights);
        for (int i = 0; i < sync->config.optimiser.class->n_states; i++) {
            backend_free(b, sync->state[i]);
        }
        backend_free(b, sync->sum);
        free(sync);
    }
}

static float *
mapped(struct sync *sync, float *d_vector)
{
    return sync->config.backend->class->map(sync->config.backend, d_vector);
}

static float *
bsp_weights(struct sync *sync)
{
    return mapped(sync, sync->weights);
}

static float *
bsp_inbox(struct sync *sync, int worker)
{
    return mapped(sync, sync->workers[worker].gradient);
}

static int
bsp_spans(struct sync *sync, struct sync_span spans[SYNC_MAX_SPANS])
{
    size_t length = sync->config.n * sizeof(float);
    int n = 0;

    spans[n++] = (struct sync_span) { bsp_weights(sync), length };
    for (int i = 0; i < sync->config.optimiser.class->n_states; i++) {
        spans[n++] = (struct sync_span) {
            mapped(sync, sync->state[i]), length,
        };
    }
    spans[n++] = (struct sync_span) { &sync->loss, sizeof sync->loss };
    return n;
}

static uint64_t
bsp_iteration(const struct sync *sync)
{
    return sync->iteration;
}

static void
bsp_resume(struct sync *sync, uint64_t iteration)
{
    sync->iteration = iteration;
    sync->n_arrived = 0;
    for (int i = 0; i < sync->config.n_workers; i++) {
        sync->workers[i].n_pushed = iteration;
    }
}

/* Makes the next weights of all workers' gradients.  They are added by rank,
 * not by arrival, so that two runs agree to the bit. */
static void
bsp_update(struct sync *sync)
{
    const struct sync_config *c = &sync->config;
    float *state[OPTIMISER_MAX_STATES];
    uint64_t n_samples = 0;
    double loss = 0;

    for (int i = 0; i < c->n_workers; i++) {
        n_samples += sync->workers[i].n_samples;
    }
    memset(c->backend->class->map(c->backend, sync->sum), 0,
           c->n * sizeof *sync->sum);
    for (int i = 0; i < c->n_workers; i++) {
        const struct bsp_worker *w = &sync->workers[i];

        if (w->n_samples) {
            float share = (double) w->n_samples / n_samples;

            c->backend->class->accumulate(c->backend, c->n, share,
                                          w->gradient, sync->sum);
            loss += (double) share * w->loss;
        }
    }
    backend_sync(c->backend);
    for (int i = 0; i < c->optimiser.class->n_states; i++) {
        state[i] = mapped(sync, sync->state[i]);
    }
    c->optimiser.class->step(&c->optimiser, c->n, mapped(sync, sync->sum),
                             state, bsp_weights(sync));
    sync->loss = loss;
}

static char *
bsp_push(struct sync *sync, int worker, uint64_t iteration,
         uint32_t n_samples, float loss)
{
    struct bsp_worker *w = &sync->workers[worker];

    if (iteration != w->n_pushed || iteration != sync->iteration) {
        return message("gradient of iteration %llu, %llu is allowed",
                       (unsigned long long) iteration,
                       (unsigned long long) sync->iteration);
    }
    w->n_pushed++;
    w->n_samples = n_samples;
    w->loss = loss;
    if (++sync->n_arrived == sync->config.n_workers) {
        bsp_update(sync);
        sync->n_arrived = 0;
        sync->iteration++;
    }
    return NULL;
}

static bool
bsp_ready(const struct sync *sync, int worker, uint64_t *iteration,
          float *loss)
{
    *iteration = sync->iteration;
    *loss = sync->loss;
    return sync->workers[worker].n_pushed == sync->iteration;
}

const struct sync_class sync_bsp = {
    .name = "bsp",
    .create = bsp_create,
    .destroy = bsp_destroy,
    .weights = bsp_weights,
    .inbox = bsp_inbox,
    .push = bsp_push,
    .ready = bsp_ready,
    .iteration = bsp_iteration,
    .spans = bsp_spans,
    .resume = bsp_resume,
};
