/* SPDX-License-Identifier: Apache-2.0 */

/* The exchange with parameter servers.
 *
 * A worker pushes its gradient to all servers, which each have a range of the
 * vector, and receives the next weights.  The scheme, which runs at the
 * first server, may change the worker's share of the batch and may ask for
 * the time of its steps.
 *
 * Under a scheme that moves samples between workers (schemes/steal.h), or that
 * sends a message when a gradient is not needed any more, a worker must
 * receive messages during an iteration.  It computes a piece of a few samples
 * at a time, in a thread of its own, and receives meanwhile.  The gradients of
 * the pieces are added up, weighted by their samples.  Small pieces cost more,
 * because the weights are read for each; large ones leave less to take
 * over. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/backend/backend.h"
#include "trainer/balance/batch-size-manager.h"
#include "trainer/data/dataset.h"
#include "trainer/loop/loop.h"
#include "trainer/process/control.h"
#include "trainer/process/options.h"
#include "trainer/process/pace.h"
#include "trainer/ps/client.h"
#include "trainer/schemes/optimiser.h"
#include "trainer/schemes/steal.h"
#include "trainer/schemes/sync.h"

/* While a piece is computed, its end is polled for after this time, and later
 * at intervals of a part of the time since its begin. */
#define POLL_US 200
#define POLL_PART 64

struct exchange {
    struct ps_client *client;
    uint32_t role;              /* Flags of SYNC_ROLE. */
    bool overlaps;              /* Parts of the gradient are sent while the
                                 * rest is being computed. */

    /* A gradient in pieces. */
    uint32_t n_pieces;          /* Of a share; 0 if the scheme needs none. */
    bool steals;                /* This worker takes samples of others, and
                                 * gives its own. */
    struct steal steal;
    float *sum;                 /* Sum of the gradients of 'step.n' samples. */
    struct loop_step step;      /* Samples computed so far. */
    bool skipped;               /* The scheme would drop the gradient. */
    uint32_t first, n;          /* Samples of the piece. */
    atomic_bool done;           /* The piece is computed. */
};

static void
server_uninit(struct exchange *e)
{
    ps_client_destroy(e->client);       /* It may still send 'sum'. */
    free(e->sum);
}

static void
set_role(struct loop *loop, const struct sync_message *m)
{
    struct exchange *e = loop->exchange;
    const struct backend_class *device = loop->backend->class;

    e->role = m->n;
    if ((e->role & (SYNC_ROLE_REPORTS | SYNC_ROLE_TRANSFERS))
        == SYNC_ROLE_REPORTS) {         /* lbbsp-gpu does not use it. */
        char bus_id[32];

        if (device->bus_id) {
            device->bus_id(loop->backend, bus_id, sizeof bus_id);
        }
        pace_measure(loop->pace, device->bus_id ? bus_id : NULL);
    }
    if (e->role & SYNC_ROLE_PIPELINE) {
        ps_client_set_max_in_flight(e->client, m->total);
    }

    /* A worker that receives only between gradients receives too late. */
    if (!e->n_pieces && (e->role & SYNC_ROLE_STEALS
                         || (e->role & SYNC_ROLE_SKIPS
                             && (m->total > 1
                                 || pace_emulates(loop->pace))))) {
        e->n_pieces = m->total ? m->total : 1;
        e->steals = e->role & SYNC_ROLE_STEALS;
        e->sum = allocate(loop->model->n_parameters, sizeof *e->sum);
    }
}

static void
send_posts(struct exchange *e)
{
    struct sync_message m;

    while (steal_post(&e->steal, &m)) {
        ps_client_send(e->client, &m);
    }
}

/* Takes a message about the pieces of this or another worker. */
static void
take_piece_message(struct exchange *e, const struct sync_message *m)
{
    if (m->kind == SYNC_SKIP) {
        e->skipped = e->skipped || m->iteration > e->steal.iteration;
    } else {
        steal_take(&e->steal, m);
        send_posts(e);
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
            loop->error = loop->error ? loop->error : loop_check_share(loop);
        } else if (e->n_pieces) {
            take_piece_message(e, &m);
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

/* Sends first weights while others are being made. */
static void
first_weights_are_final(void *loop_, size_t first, size_t n)
{
    struct loop *loop = loop_;

    ps_client_first_part(loop->exchange->client, loop->model->weights, first,
                         n);
    report_weights(loop->report, first + n, loop->model->n_parameters);
}

static enum loop_result
server_start(struct loop *loop)
{
    const struct options *o = loop->o;
    struct exchange *e = loop->exchange;
    float *weights = loop->model->weights;

    e->overlaps = !strcmp(o->overlap, "on") && !pace_emulates(loop->pace);
    loop->error = ps_client_create(
        &(struct ps_client_config){
            .servers = o->servers,
            .n_servers = o->n_servers,
            .rank = o->rank,
            .n_workers = o->n_workers,
            .n_parameters = loop->model->n_parameters,
            .seed = o->seed,
            .learning_rate = o->learning_rate,
            .momentum = o->momentum,
            .optimiser = optimiser_find(o->optimiser),
            .schedule = o->schedule,
            .congestion = o->congestion,
            .control = loop->control,
            .whole = !strcmp(o->overlap, "off"),
            .statistics = loop->model->statistics,
            .n_statistics = loop->model->n_statistics,
            .reconnect_timeout_us = o->reconnect_timeout * 1e6,
            .heartbeat_timeout_us = o->heartbeat_timeout * 1e6,
        },
        &e->client);
    if (loop->error) {
        return LOOP_FAILED;
    }
    if (ps_client_lacks_weights(e->client)) {
        model_init_parts(loop->model, o->seed, weights,
                         first_weights_are_final, loop);
    }
    return take_weights(loop, ps_client_begin(e->client, weights,
                                              &loop->progress.iteration,
                                              &loop->error));
}

/* Returns true if the gradient will not be used. */
static bool
is_obsolete(const struct exchange *e)
{
    return e->skipped || ps_client_has_rewound(e->client);
}

/* Receives messages until 'until_us', and takes at least those that have
 * arrived. */
static enum ps_result
receive_messages(struct loop *loop, int64_t until_us)
{
    struct exchange *e = loop->exchange;
    struct sync_message m;
    enum ps_result result;

    send_posts(e);
    result = ps_client_wait(e->client, until_us, &loop->error);
    while (result == PS_OK && ps_client_receive(e->client, &m)) {
        take_piece_message(e, &m);
    }
    return result;
}

/* Adds the gradient of a piece. */
static void *
add_piece(void *loop_)
{
    struct loop *loop = loop_;
    struct exchange *e = loop->exchange;
    struct model *model = loop->model;
    double loss;

    dataset_fill(loop->data, loop->o->seed,
                 loop->progress.iteration * loop->o->batch + e->first, e->n,
                 loop->batch);
    model_gradient(model, loop->batch, NULL, NULL, &loss);
    batch_size_aggregate(model->n_parameters, e->n, model->gradient, e->sum);
    e->step.n += e->n;
    e->step.loss += loss;
    e->done = true;
    return NULL;
}

/* Computes the piece, and takes messages meanwhile and until the emulated
 * machine is done. */
static enum ps_result
compute_piece(struct loop *loop)
{
    struct exchange *e = loop->exchange;
    int64_t now = clock_monotonic_us(), began = now, end;
    enum ps_result result;
    pthread_t thread;

    pace_step(loop->pace);
    end = pace_end_us(loop->pace, e->n);
    e->done = false;
    loop->error = thread_start(&thread, "worker", add_piece, loop);
    if (loop->error) {
        return PS_FAILED;
    }
    do {
        result = receive_messages(
            loop, e->done ? end : now + POLL_US + (now - began) / POLL_PART);
        now = clock_monotonic_us();
    } while (result == PS_OK && (!e->done || now < end) && !is_obsolete(e));
    pthread_join(thread, NULL);
    return result;
}

/* Leaves the mean gradient of the samples that this worker computed in the
 * model: zeros, of no samples, if the scheme would drop it. */
static enum ps_result
compute_pieces(struct loop *loop, struct loop_step *step)
{
    struct exchange *e = loop->exchange;
    struct model *model = loop->model;
    uint32_t piece = (loop->share.n + e->n_pieces - 1) / e->n_pieces;
    size_t bytes = model->n_parameters * sizeof *e->sum;
    enum ps_result result = PS_OK;

    memset(e->sum, 0, bytes);
    e->step = (struct loop_step) { 0 };
    e->skipped = false;
    steal_begin(&e->steal, loop->o->rank, e->steals ? loop->o->n_workers : 1,
                loop->progress.iteration, loop->share.first, loop->share.n);
    while (result == PS_OK && !steal_idle(&e->steal) && !is_obsolete(e)) {
        if (steal_next(&e->steal, piece, &e->first, &e->n)) {
            result = compute_piece(loop);
        } else if (!steal_idle(&e->steal)) {
            result = receive_messages(loop, INT64_MAX);
        }
    }
    if (ps_client_has_rewound(e->client)) {
        send_posts(e);          /* The client drops them. */
    }
    *step = e->skipped ? (struct loop_step) { 0 } : e->step;
    memset(model->gradient, 0, bytes);
    if (step->n) {
        batch_size_aggregate(model->n_parameters, 1. / step->n, e->sum,
                             model->gradient);
    }
    return result;
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

    if (e->n_pieces) {
        return result_from_client(compute_pieces(loop, step));
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
        .kind = SYNC_REPORT,
        .worker = loop->o->rank,
        .iteration = loop->progress.iteration,
        .n = loop->share.n,
        .total = loop->max_batch,
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
        report_load(loop->report, &(struct report_load) {
            .iteration = m.iteration, .samples = m.n, .seconds = m.seconds,
            .cpu = cpu, .memory = memory,
        });
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
    return take_weights(
        loop, ps_client_resume(loop->exchange->client, loop->model->weights,
                               &loop->progress.iteration, &loop->error));
}

static void
server_end(struct loop *loop, uint64_t *sent, uint64_t *received)
{
    ps_client_bytes(loop->exchange->client, sent, received);
}

const struct exchange_class exchange_server = {
    .size = sizeof(struct exchange), .uninit = server_uninit,
    .start = server_start, .compute = server_compute,
    .finish = server_finish, .idle = server_idle, .resume = server_resume,
    .end = server_end,
};
