/* SPDX-License-Identifier: Apache-2.0 */

/* The exchange with parameter servers.
 *
 * A worker pushes its gradient to all servers, which each have a range of the
 * vector, and receives the next weights.  The scheme, which runs at the
 * first server, may change the worker's share of the batch and may ask for
 * the time of its steps. */

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/loop/loop.h"
#include "trainer/loop/pieces.h"
#include "trainer/process/control.h"
#include "trainer/process/options.h"
#include "trainer/process/pace.h"
#include "trainer/ps/client.h"
#include "trainer/schemes/optimiser.h"
#include "trainer/schemes/sync.h"

struct exchange {
    struct ps_client *client;
    struct pieces *pieces;      /* NULL unless the scheme needs it. */
    uint32_t role;              /* Flags of SYNC_ROLE. */
    bool overlaps;              /* Parts of the gradient are sent while the
                                 * rest is being computed. */
};

static void
server_uninit(struct exchange *e)
{
    pieces_destroy(e->pieces);
    ps_client_destroy(e->client);
}

static void
set_role(struct loop *loop, const struct sync_message *m)
{
    struct exchange *e = loop->exchange;

    e->role = m->n;
    if (e->role & SYNC_ROLE_PIPELINE) {
        ps_client_set_max_in_flight(e->client, m->total);
    }

    /* A worker that receives only between gradients receives too late. */
    if (!e->pieces && (e->role & SYNC_ROLE_STEALS
                       || (e->role & SYNC_ROLE_SKIPS
                           && (m->total > 1 || pace_emulates(loop->pace))))) {
        e->pieces = pieces_create(loop, e->client,
                                  e->role & SYNC_ROLE_STEALS, m->total);
    }
}

/* Takes the messages that the scheme sent before the weights. */
static enum loop_result
take_messages(struct loop *loop)
{
    struct exchange *e = loop->exchange;
    struct sync_message m;

    while (!loop->error && ps_client_receive(e->client, &m)) {
        if (m.kind == SYNC_ROLE) {
            set_role(loop, &m);
        } else if (m.kind == SYNC_ASSIGN) {
            loop->error = sync_assigned_shard(&m, loop->o->batch,
                                              &loop->share);
        } else if (e->pieces) {
            pieces_take(e->pieces, &m);
        } else if (m.kind != SYNC_SKIP) {
            loop->error = message("message of kind %u: not expected", m.kind);
        }
    }
    return loop->error ? LOOP_FAILED : LOOP_OK;
}

static enum loop_result
result_from_client(enum ps_result result)
{
    return result == PS_OK ? LOOP_OK
           : result == PS_ENDED ? LOOP_ENDED : LOOP_FAILED;
}

/* The client has written the model's weights. */
static enum loop_result
take_weights(struct loop *loop, enum ps_result result)
{
    model_weights_changed(loop->model);
    return result == PS_OK ? take_messages(loop) : result_from_client(result);
}

static enum loop_result
server_start(struct loop *loop)
{
    const struct options *o = loop->o;
    struct exchange *e = loop->exchange;
    float *weights = loop->model->weights;

    e->overlaps = !strcmp(o->overlap, "on") && !pace_emulates(loop->pace);
    loop->error = ps_client_create(&(struct ps_client_config) {
        .servers = o->servers, .n_servers = o->n_servers,
        .rank = o->rank, .n_workers = o->n_workers,
        .n_parameters = loop->model->n_parameters, .seed = o->seed,
        .learning_rate = o->learning_rate, .momentum = o->momentum,
        .optimiser = optimiser_find(o->optimiser),
        .congestion = o->congestion, .control = loop->control,
        .whole = !strcmp(o->overlap, "off"),
        .reconnect_timeout_us = o->reconnect_timeout * 1e6,
        .heartbeat_timeout_us = o->heartbeat_timeout * 1e6,
    }, &e->client);
    if (loop->error) {
        return LOOP_FAILED;
    }
    model_init_weights(loop->model, o->seed, weights);
    return take_weights(loop, ps_client_begin(e->client, weights,
                                              &loop->progress.iteration,
                                              &loop->error));
}

static void
part_is_final(void *client, size_t first, size_t n)
{
    ps_client_part(client, first, n);
}

static enum loop_result
server_compute(struct loop *loop, struct loop_step *step)
{
    struct exchange *e = loop->exchange;
    struct model *model = loop->model;

    if (e->pieces) {
        return result_from_client(pieces_compute(e->pieces, step,
                                                 &loop->error));
    }
    if (e->overlaps) {
        ps_client_offer(e->client, loop->progress.iteration, model->gradient,
                        loop->share.n, model->weights);
    }
    loop_compute(loop, e->overlaps ? part_is_final : NULL, e->client, step);
    return LOOP_OK;
}

/* Sends the scheme the time of the step, if it asked for it.  The transfers
 * counted are those of the step before. */
static void
report_step_time(struct loop *loop)
{
    struct exchange *e = loop->exchange;
    struct sync_message m = {
        .kind = SYNC_REPORT, .worker = loop->o->rank,
        .iteration = loop->progress.iteration, .n = loop->share.n,
        .total = pace_max_batch(loop->pace),
        .seconds = pace_elapsed(loop->pace),
    };
    double cpu, memory;

    loop->progress.step_s = m.seconds;
    if (e->role & SYNC_ROLE_TRANSFERS) {
        m.seconds += ps_client_transfer_s(e->client);
    }
    if (e->role & SYNC_ROLE_REPORTS) {
        pace_use(loop->pace, &cpu, &memory);
        m.cpu = cpu;
        m.memory = memory;
        ps_client_send(e->client, &m);
    }
}

static enum loop_result
server_finish(struct loop *loop, const struct loop_step *step)
{
    struct ps_client *client = loop->exchange->client;
    double loss = step->n ? step->loss / step->n : 0;
    enum ps_result result;

    report_step_time(loop);
    result = ps_client_exchange(client, &loop->progress.iteration,
                                loop->model->gradient, step->n, &loss,
                                loop->model->weights, &loop->error);
    loop->progress.step_s += ps_client_transfer_s(client);
    loop->progress.batch_loss = loss;
    return take_weights(loop, result);
}

static enum loop_result
server_idle(struct loop *loop)
{
    enum ps_result result;

    if (control_input_closed(loop->control)) {
        return LOOP_ENDED;
    }
    result = ps_client_idle(loop->exchange->client, loop->model->weights,
                            &loop->progress.iteration, &loop->error);
    model_weights_changed(loop->model);
    return result_from_client(result);
}

static enum loop_result
server_resume(struct loop *loop)
{
    return take_weights(loop, ps_client_resume(loop->exchange->client,
                                               loop->model->weights,
                                               &loop->progress.iteration,
                                               &loop->error));
}

static void
server_end(struct loop *loop, uint64_t *sent, uint64_t *received)
{
    *sent = ps_client_bytes_sent(loop->exchange->client);
    *received = ps_client_bytes_received(loop->exchange->client);
}

const struct exchange_class exchange_server = {
    .size = sizeof(struct exchange), .uninit = server_uninit,
    .start = server_start, .compute = server_compute,
    .finish = server_finish, .idle = server_idle, .resume = server_resume,
    .end = server_end,
};
