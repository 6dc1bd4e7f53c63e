/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/schemes/sync-state.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/backend/backend.h"
#include "trainer/schemes/shard.h"

#define BLOCK ((size_t) 1 << 14)        /* Values that are updated at once. */
#define LARGE ((size_t) 1 << 24)        /* Parameters of a model from which on
                                         * memory matters more than the time to
                                         * get it again. */

static float *
vector(struct sync *sync)
{
    return backend_alloc(sync->config.backend, sync->config.n * sizeof(float));
}

struct sync *
sync_create(const struct sync_class *class, const struct sync_config *config)
{
    struct sync *sync = allocate(1, sizeof *sync);

    assert(config->backend->class->map);
    sync->class = class;
    sync->config = *config;
    sync->config.spec = NULL;
    sync->weights = vector(sync);
    for (int i = 0; i < config->optimiser.class->n_states; i++) {
        sync->state[i] = vector(sync);
    }
    sync->sum = backend_alloc(config->backend, BLOCK * sizeof *sync->sum);
    sync->terms = allocate(config->n_workers, sizeof *sync->terms);
    sync->workers = allocate(config->n_workers, sizeof *sync->workers);
    for (int i = 0; i < config->n_workers; i++) {
        sync->workers[i].gradient = allocate_pages(config->n * sizeof(float));
    }
    sync->counts = allocate(config->n_workers, sizeof *sync->counts);
    sync->statistics =
        allocate(config->n_statistics, sizeof *sync->statistics);
    sync->max_posts = 2 * config->n_workers;
    sync->posts = allocate(sync->max_posts, sizeof *sync->posts);
    sync->own = allocate(1, class->own_size
                            + config->n_workers * class->per_worker);
    sync_state_await_parts(sync);
    if (class->init) {
        class->init(sync, config->spec);
    }
    if (class->start) {
        class->start(sync);
    }
    return sync;
}

void
sync_destroy(struct sync *sync)
{
    if (sync) {
        struct backend *b = sync->config.backend;

        if (sync->class->uninit) {
            sync->class->uninit(sync);
        }
        for (int i = 0; i < sync->config.n_workers; i++) {
            free_pages(sync->workers[i].gradient,
                       sync->config.n * sizeof(float));
        }
        free(sync->workers);
        free(sync->counts);
        free(sync->statistics);
        free(sync->posts);
        free(sync->own);
        backend_free(b, sync->weights);
        for (int i = 0; i < sync->config.optimiser.class->n_states; i++) {
            backend_free(b, sync->state[i]);
        }
        backend_free(b, sync->sum);
        free(sync->terms);
        free(sync);
    }
}

static float *
map(struct sync *sync, float *vector)
{
    return sync->config.backend->class->map(sync->config.backend, vector);
}

float *
sync_weights(struct sync *sync)
{
    return map(sync, sync->weights);
}

float *
sync_statistics(struct sync *sync)
{
    return sync->statistics;
}

int
sync_spans(struct sync *sync, struct sync_span spans[SYNC_MAX_SPANS])
{
    size_t length = sync->config.n * sizeof(float);
    int n = 0, n_workers = sync->config.n_workers;

    spans[n++] = (struct sync_span) { sync_weights(sync), length };
    spans[n++] =
        (struct sync_span){ sync->statistics, sync->config.n_statistics
                                                  * sizeof *sync->statistics };
    for (int i = 0; i < sync->config.optimiser.class->n_states; i++) {
        spans[n++] = (struct sync_span){ map(sync, sync->state[i]), length };
    }
    spans[n++] = (struct sync_span) { &sync->loss, sizeof sync->loss };
    if (sync->class->kept) {
        spans[n++] = sync->class->kept(sync);
    }
    if (sync->class->asynchronous) {
        for (int i = 0; i < n_workers; i++) {
            sync->counts[i] = sync->workers[i].n_pushed;
        }
        spans[n++] = (struct sync_span){ sync->counts,
                                         n_workers * sizeof *sync->counts };
    }
    return n;
}

uint64_t
sync_iteration(const struct sync *sync)
{
    uint64_t least = UINT64_MAX;

    if (!sync->class->asynchronous) {
        return sync->iteration;
    }
    for (int i = 0; i < sync->config.n_workers; i++) {
        uint64_t n_pushed = sync->workers[i].n_pushed;

        least = n_pushed < least ? n_pushed : least;
    }
    return least;
}

float *
sync_inbox(struct sync *sync, int worker)
{
    return sync->workers[worker].gradient;
}

void
sync_state_post(struct sync *sync, int worker,
                const struct sync_message *message)
{
    if (!sync->config.follows) {
        assert(sync->n_posts < sync->max_posts);
        sync->posts[(sync->first_post + sync->n_posts++) % sync->max_posts]
            = (struct sync_post) { worker, *message };
    }
}

void
sync_state_post_all(struct sync *sync, const struct sync_message *message)
{
    for (int i = 0; i < sync->config.n_workers; i++) {
        sync_state_post(sync, i, message);
    }
}

bool
sync_take(struct sync *sync, int *worker, struct sync_message *message)
{
    const struct sync_post *post = &sync->posts[sync->first_post];

    if (!sync->n_posts) {
        return false;
    }
    *worker = post->worker;
    *message = post->message;
    sync->first_post = (sync->first_post + 1) % sync->max_posts;
    sync->n_posts--;
    return true;
}

void
sync_state_await_parts(struct sync *sync)
{
    sync->fresh = sync->config.n;
    for (int i = 0; i < sync->config.n_workers; i++) {
        sync->workers[i].from = sync->config.n;
    }
}

void
sync_resume(struct sync *sync, uint64_t iteration)
{
    const struct sync_class *class = sync->class;

    sync->iteration = iteration;
    sync->n_arrived = 0;
    sync->n_posts = 0;
    sync_state_await_parts(sync);
    for (int i = 0; i < sync->config.n_workers; i++) {
        struct sync_worker *w = &sync->workers[i];

        w->resumed = class->asynchronous;
        w->n_pushed = w->next = w->resumed ? sync->counts[i] : iteration;
        w->n_samples = 0;
    }
    if (class->start) {
        class->start(sync);
    }
    if (class->resumed) {
        class->resumed(sync);
    }
}

void
sync_state_add(struct sync *sync, float *gradient, float share)
{
    assert(sync->n_terms < sync->config.n_workers);
    sync->terms[sync->n_terms++] = (struct sync_term) { gradient, share };
}

/* Returns the number of batches that the updates contain. */
static uint64_t
n_batches(const struct sync *sync)
{
    uint64_t n_pushed = 0;

    for (int i = 0; i < sync->config.n_workers; i++) {
        n_pushed += sync->workers[i].n_pushed;
    }
    return sync->class->asynchronous ? n_pushed / sync->config.n_workers
                                     : sync->iteration;
}

/* Updates 'n' weights from 'first' on, at most BLOCK. */
static void
update_block(struct sync *sync, uint64_t iteration, size_t first, size_t n)
{
    const struct sync_config *c = &sync->config;
    float *state[OPTIMISER_MAX_STATES];

    memset(map(sync, sync->sum), 0, n * sizeof *sync->sum);
    for (int i = 0; i < sync->n_terms; i++) {
        c->backend->class->accumulate(c->backend, n, sync->terms[i].share,
                                      sync->terms[i].gradient + first,
                                      sync->sum);
    }
    backend_sync(c->backend);
    for (int i = 0; i < c->optimiser.class->n_states; i++) {
        state[i] = map(sync, sync->state[i]) + first;
    }
    optimiser_step(&c->optimiser, iteration, n, map(sync, sync->sum), state,
                   sync_weights(sync) + first);
}

void
sync_state_update(struct sync *sync, size_t first, size_t n)
{
    bool large = sync->config.n >= LARGE;
    uint64_t iteration = n_batches(sync);

    for (size_t i = 0; i < n; i += BLOCK) {
        update_block(sync, iteration, first + i,
                     n - i < BLOCK ? n - i : BLOCK);
    }
    for (int i = 0; i < sync->n_terms && large; i++) {
        release_pages(sync->terms[i].gradient + first, n * sizeof *sync->sum);
    }
    sync->n_terms = 0;
}

void
sync_state_apply(struct sync *sync, float *gradient, float share)
{
    sync_state_add(sync, gradient, share);
    sync_state_update(sync, 0, sync->config.n);
}

char *
sync_state_refuse(uint64_t iteration, uint64_t allowed)
{
    return message("gradient of iteration %llu; expected %llu",
                   (unsigned long long) iteration,
                   (unsigned long long) allowed);
}

float
sync_state_mean_loss(const struct sync *sync)
{
    double loss = 0, n = 0;

    for (int i = 0; i < sync->config.n_workers; i++) {
        const struct sync_worker *w = &sync->workers[i];

        loss += (double) w->loss * w->n_samples;
        n += w->n_samples;
    }
    return n ? loss / n : 0;
}

const struct sync_class *const sync_classes[] = {
    &sync_bsp, &sync_asp, &sync_ssp, &sync_essp, &sync_backup, &sync_static,
    &sync_lbbsp_cpu, &sync_lbbsp_gpu, &sync_flexrr, &sync_groups, NULL,
};

char *
sync_spec_parse(const char *text, struct sync_spec *spec)
{
    char *error = sync_spec_read(text, spec);

    if (!error && spec->serverless) {
        error = message("%s: a scheme of peers, which have no server",
                        spec->name);
    }
    for (size_t i = 0; !error && !spec->class; i++) {
        assert(sync_classes[i]);        /* Each that can be named is here. */
        if (!strcmp(sync_classes[i]->name, spec->name)) {
            spec->class = sync_classes[i];
        }
    }
    return error;
}

char *
sync_assigned_shard(const struct sync_message *m, uint64_t batch,
                    struct shard *share)
{
    uint64_t end = (uint64_t) m->first + m->n;

    if (!m->total || end > m->total) {
        return message("assignment of %u samples from %u of %u", m->n,
                       m->first, m->total);
    }
    share->first = batch * m->first / m->total;
    share->n = batch * end / m->total - share->first;
    return NULL;
}
