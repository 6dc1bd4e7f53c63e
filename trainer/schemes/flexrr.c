/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/schemes/steal.h"
#include "trainer/schemes/sync-state.h"

/* The server's part of FlexRR: it forwards the workers' messages, and answers
 * for the workers that have pushed, since those do not receive until the next
 * iteration.  So each request gets exactly one answer. */
struct flexrr {
    uint8_t *pending;           /* [asker * n_workers + helpee]: SYNC_FIND or
                                 * SYNC_HELP without an answer, or 0. */
    uint32_t n_pieces;          /* Of a worker's share. */
};

static void
give_roles(struct sync *sync)
{
    const struct flexrr *f = sync->own;

    sync_state_post_all(sync, &(struct sync_message) {
        .kind = SYNC_ROLE, .n = SYNC_ROLE_STEALS, .total = f->n_pieces,
    });
}

static struct sync *
flexrr_create(const struct sync_config *config)
{
    struct sync *sync = sync_state_create(config, sizeof(struct flexrr));
    struct flexrr *f = sync->own;

    f->pending = allocate((size_t) config->n_workers * config->n_workers, 1);
    f->n_pieces = config->spec ? config->spec->pieces : 4;
    give_roles(sync);
    return sync;
}

static void
flexrr_destroy(struct sync *sync)
{
    if (sync) {
        struct flexrr *f = sync->own;

        free(f->pending);
    }
    sync_state_destroy(sync);
}

static uint8_t *
pending_of(struct sync *sync, int asker, int helpee)
{
    struct flexrr *f = sync->own;

    return &f->pending[asker * sync->config.n_workers + helpee];
}

static void
relay(struct sync *sync, int from, int to, const struct sync_message *m)
{
    struct sync_message copy = *m;

    copy.worker = from;
    sync_state_post(sync, to, &copy);
}

/* Forwards a request, or answers it for a helpee that has pushed. */
static void
forward_request(struct sync *sync, int asker, int helpee,
                const struct sync_message *m)
{
    struct sync_message answer = *m;

    if (sync->workers[helpee].n_pushed == m->iteration) {
        *pending_of(sync, asker, helpee) = m->kind;
        relay(sync, asker, helpee, m);
        return;
    }
    answer.kind = m->kind == SYNC_FIND ? SYNC_STATUS : SYNC_CANCEL;
    answer.n = 0;
    relay(sync, helpee, asker, &answer);
}

/* Forwards an answer, unless it comes too late: after a helpee's push the
 * server has answered in its place. */
static void
forward_answer(struct sync *sync, int helpee, int asker,
               const struct sync_message *m)
{
    uint8_t *pending = pending_of(sync, asker, helpee);

    if (*pending == (m->kind == SYNC_STATUS ? SYNC_FIND : SYNC_HELP)
        && m->iteration == sync->workers[helpee].n_pushed) {
        *pending = 0;
        relay(sync, helpee, asker, m);
    }
}

static char *
flexrr_message(struct sync *sync, int worker, const struct sync_message *m)
{
    int n = sync->config.n_workers;

    if (m->worker >= (uint32_t) n) {
        return message("message to worker %u of %d", m->worker, n);
    }
    switch (m->kind) {
    case SYNC_FIND:
        for (int i = 0; i < n; i++) {
            if (i != worker) {
                forward_request(sync, worker, i, m);
            }
        }
        return NULL;
    case SYNC_HELP:
        forward_request(sync, worker, m->worker, m);
        return NULL;
    case SYNC_STATUS:
    case SYNC_CONFIRM:
    case SYNC_CANCEL:
        forward_answer(sync, worker, m->worker, m);
        return NULL;
    default:
        return message("message of kind %u: not for flexrr", m->kind);
    }
}

static char *
flexrr_push(struct sync *sync, int worker, uint64_t iteration,
            uint32_t n_samples, float loss)
{
    char *error = sync_bsp_push(sync, worker, iteration, n_samples, loss);

    for (int i = 0; i < sync->config.n_workers && !error; i++) {
        uint8_t *pending = pending_of(sync, i, worker);

        if (*pending) {
            relay(sync, worker, i, &(struct sync_message) {
                .kind = *pending == SYNC_FIND ? SYNC_STATUS : SYNC_CANCEL,
                .iteration = iteration,
            });
            *pending = 0;
        }
    }
    return error;
}

static void
flexrr_resume(struct sync *sync, uint64_t iteration)
{
    struct flexrr *f = sync->own;
    size_t n = sync->config.n_workers;

    memset(f->pending, 0, n * n);
    sync_state_resume(sync, iteration);
    give_roles(sync);
}

const struct sync_class sync_flexrr = {
    .name = "flexrr",
    .create = flexrr_create,
    .destroy = flexrr_destroy,
    .push = flexrr_push,
    .part = sync_bsp_part,
    .fresh = sync_bsp_fresh,
    .ready = sync_bsp_ready,
    .message = flexrr_message,
    .take = sync_state_take,
    .iteration = sync_bsp_iteration,
    .spans = sync_state_spans,
    .resume = flexrr_resume,
};
