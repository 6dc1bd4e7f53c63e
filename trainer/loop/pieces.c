/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/loop/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/balance/batch-size-manager.h"
#include "trainer/process/control.h"
#include "base/memory.h"
#include "trainer/process/options.h"
#include "trainer/process/pace.h"
#include "trainer/process/report.h"
#include "trainer/schemes/steal.h"
#include "trainer/data/dataset.h"
#include "trainer/models/model.h"

struct pieces {
    struct pieces_in in;
    struct steal steal;
    size_t n_parameters;
    uint32_t n_pieces;          /* Of a share. */
    float *sum;                 /* Of samples' gradients. */
    uint32_t n;                 /* Samples in it, */
    double loss;                /* and the sum of their losses. */
    bool skipped;               /* It would be dropped. */
};

struct pieces *
pieces_create(const struct pieces_in *in, size_t n_parameters,
              uint32_t n_pieces)
{
    struct pieces *p = allocate(1, sizeof *p);

    p->in = *in;
    p->n_parameters = n_parameters;
    p->n_pieces = n_pieces ? n_pieces : 1;
    p->sum = allocate(n_parameters, sizeof *p->sum);
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
        ps_client_send(p->in.client, &m);
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

/* Whether nobody wants the gradient any more. */
static bool
is_vain(const struct pieces *p)
{
    return p->skipped || ps_client_has_gone_back(p->in.client);
}

/* Listens until 'until_us', and at least once to what is there. */
static enum ps_result
converse(struct pieces *p, int64_t until_us, char **errorp)
{
    struct sync_message m;
    enum ps_result result;

    send_posts(p);
    result = ps_client_wait(p->in.client, until_us, errorp);
    while (result == PS_OK && ps_client_receive(p->in.client, &m)) {
        pieces_take(p, &m);
    }
    return result;
}

/* Adds the gradient of 'n' samples from place 'first' of the batch. */
static enum ps_result
compute_piece(struct pieces *p, uint64_t iteration, uint32_t first,
              uint32_t n, char **errorp)
{
    const struct options *o = p->in.o;
    struct model *model = p->in.model;
    enum ps_result result;
    int64_t end;
    double loss;

    pace_step(p->in.pace);
    end = pace_end_us(p->in.pace, n);
    dataset_fill(p->in.data, o->seed, iteration * o->batch + first, n,
                 p->in.batch);
    model_gradient(model, p->in.batch, NULL, NULL, &loss);
    batch_size_aggregate(p->n_parameters, n, model->gradient, p->sum);
    p->n += n;
    p->loss += loss;
    do {
        result = converse(p, end, errorp);
    } while (result == PS_OK && report_monotonic_us() < end && !is_vain(p));
    return result;
}

enum ps_result
pieces_compute(struct pieces *p, uint64_t iteration, struct shard share,
               uint32_t *n, double *loss, char **errorp)
{
    const struct options *o = p->in.o;
    uint32_t piece = (share.n + p->n_pieces - 1) / p->n_pieces;
    enum ps_result result = PS_OK;

    memset(p->sum, 0, p->n_parameters * sizeof *p->sum);
    p->n = 0;
    p->loss = 0;
    p->skipped = false;
    steal_begin(&p->steal, o->rank, p->in.helps ? o->n_workers : 1, iteration,
                share.first, share.n);
    while (result == PS_OK && !steal_idle(&p->steal) && !is_vain(p)) {
        uint32_t first, some;

        if (steal_next(&p->steal, piece, &first, &some)) {
            result = compute_piece(p, iteration, first, some, errorp);
        } else if (!steal_idle(&p->steal)) {
            result = converse(p, INT64_MAX, errorp);
        }
    }
    if (ps_client_has_gone_back(p->in.client)) {
        send_posts(p);          /* Those are dropped. */
    }
    if (p->skipped) {
        p->n = 0;
    }
    memset(p->in.model->gradient, 0, p->n_parameters * sizeof *p->sum);
    if (p->n) {
        batch_size_aggregate(p->n_parameters, 1. / p->n, p->sum,
                             p->in.model->gradient);
    }
    *n = p->n;
    *loss = p->n ? p->loss / p->n : 0;
    return result;
}
