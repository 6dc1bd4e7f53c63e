/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/loop/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/balance/batch-size-manager.h"
#include "trainer/data/dataset.h"
#include "trainer/loop/loop.h"
#include "trainer/process/options.h"
#include "trainer/process/pace.h"
#include "trainer/schemes/steal.h"

struct pieces {
    struct loop *loop;
    struct ps_client *client;
    bool steals;
    uint32_t n_pieces;          /* Of a share. */
    struct steal steal;
    float *sum;                 /* Sum of the gradients of 'step.n' samples. */
    struct loop_step step;      /* Samples computed so far. */
    bool skipped;               /* The scheme would drop the gradient. */
};

struct pieces *
pieces_create(struct loop *loop, struct ps_client *client, bool steals,
              uint32_t n_pieces)
{
    struct pieces *p = allocate(1, sizeof *p);

    p->loop = loop;
    p->client = client;
    p->steals = steals;
    p->n_pieces = n_pieces ? n_pieces : 1;
    p->sum = allocate(loop->model->n_parameters, sizeof *p->sum);
    return p;
}

void
pieces_destroy(struct pieces *p)
{
    if (p) {
        free(p->sum);
        free(p);
    }
}

static void
send_posts(struct pieces *p)
{
    struct sync_message m;

    while (steal_post(&p->steal, &m)) {
        ps_client_send(p->client, &m);
    }
}

void
pieces_take(struct pieces *p, const struct sync_message *m)
{
    if (m->kind == SYNC_SKIP) {
        p->skipped = p->skipped || m->iteration > p->steal.iteration;
    } else {
        steal_take(&p->steal, m);
        send_posts(p);
    }
}

/* Returns true if the gradient will not be used. */
static bool
is_obsolete(const struct pieces *p)
{
    return p->skipped || ps_client_has_rewound(p->client);
}

/* Receives messages until 'until_us', and takes at least those that have
 * arrived. */
static enum ps_result
receive_messages(struct pieces *p, int64_t until_us, char **errorp)
{
    struct sync_message m;
    enum ps_result result;

    send_posts(p);
    result = ps_client_wait(p->client, until_us, errorp);
    while (result == PS_OK && ps_client_receive(p->client, &m)) {
        pieces_take(p, &m);
    }
    return result;
}

/* Adds the gradient of 'n' samples from number 'first' of the batch. */
static enum ps_result
compute_piece(struct pieces *p, uint32_t first, uint32_t n, char **errorp)
{
    struct loop *loop = p->loop;
    const struct options *o = loop->o;
    struct model *model = loop->model;
    enum ps_result result;
    int64_t end;
    double loss;

    pace_step(loop->pace);
    end = pace_end_us(loop->pace, n);
    dataset_fill(loop->data, o->seed,
                 loop->progress.iteration * o->batch + first, n,
                 loop->batch);
    model_gradient(model, loop->batch, NULL, NULL, &loss);
    batch_size_aggregate(model->n_parameters, n, model->gradient, p->sum);
    p->step.n += n;
    p->step.loss += loss;
    do {
        result = receive_messages(p, end, errorp);
    } while (result == PS_OK && clock_monotonic_us() < end
             && !is_obsolete(p));
    return result;
}

enum ps_result
pieces_compute(struct pieces *p, struct loop_step *step, char **errorp)
{
    const struct loop *loop = p->loop;
    struct model *model = loop->model;
    uint32_t piece = (loop->share.n + p->n_pieces - 1) / p->n_pieces;
    size_t bytes = model->n_parameters * sizeof *p->sum;
    enum ps_result result = PS_OK;

    memset(p->sum, 0, bytes);
    p->step = (struct loop_step) { 0 };
    p->skipped = false;
    steal_begin(&p->steal, loop->o->rank, p->steals ? loop->o->n_workers : 1,
                loop->progress.iteration, loop->share.first, loop->share.n);
    while (result == PS_OK && !steal_idle(&p->steal) && !is_obsolete(p)) {
        uint32_t first, n;

        if (steal_next(&p->steal, piece, &first, &n)) {
            result = compute_piece(p, first, n, errorp);
        } else if (!steal_idle(&p->steal)) {
            result = receive_messages(p, INT64_MAX, errorp);
        }
    }
    if (ps_client_has_rewound(p->client)) {
        send_posts(p);          /* The client drops them. */
    }
    *step = p->skipped ? (struct loop_step) { 0 } : p->step;
    memset(model->gradient, 0, bytes);
    if (step->n) {
        batch_size_aggregate(model->n_parameters, 1. / step->n, p->sum,
                             model->gradient);
    }
    return result;
}
