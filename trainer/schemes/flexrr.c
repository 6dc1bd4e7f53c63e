/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include "base/memory.h"
#include "trainer/schemes/steal.h"
#include "trainer/schemes/sync-state.h"

/* The server's part of FlexRR: it forwards the workers' messages, and answers
 * for the workers that have pushed, since those do not receive until the next
 * iteration.  So each request gets exactly one answer. */
struct flexrr {
    uint32_t n_pieces;          /* Of a worker's share. */
    uint8_t pending[][STEAL_MAX_WORKERS];       /* Per asker and helpee:
                                                 * SYNC_FIND or SYNC_HELP
                                                 * without an answer, or 0. */
};

static void
flexrr_init(struct sync *sync, const struct sync_spec *spec)
{
    struct flexrr *f = sync->own;

    f->n_pieces = spec->pieces;
}

static void
flexrr_start(struct sync *sync)
{
    struct flexrr *f = sync->own;

    memset(f->pending, 0, sync->config.n_workers * sizeof *f->pending);
    sync_state_post_all(sync, &(struct sync_message) {
        .kind = SYNC_ROLE, .n = SYNC_ROLE_STEALS, .total = f->n_pieces,
    });
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
    struct flexrr *f = sync->own;
    struct sync_message answer = *m;

    if (sync->workers[helpee].n_pushed == m->iteration) {
        f->pending[asker][helpee] = m->kind;
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
    struct flexrr *f = sync->own;
    uint8_t *pending = &f->pending[asker][helpee];

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
    struct flexrr *f = sync->own;
    char *error = sync_bsp_push(sync, worker, iteration, n_samples, loss);

    for (int i = 0; i < sync->config.n_workers && !error; i++) {
        uint8_t *pending = &f->pending[i][worker];

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

const struct sync_class sync_flexrr = {
    .name = "flexrr",
    .own_size = sizeof(struct flexrr),
    .per_worker = STEAL_MAX_WORKERS,
    .needs_messages = true,
    .uses_parts = true,
    .init = flexrr_init,
    .start = flexrr_start,
    .push = flexrr_push,
    .ready = sync_bsp_ready,
    .message = flexrr_message,
};
