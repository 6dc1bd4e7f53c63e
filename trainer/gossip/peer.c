/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/gossip/peer.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/backend/backend.h"
#include "trainer/process/control.h"
#include "base/memory.h"
#include "trainer/process/options.h"
#include "trainer/process/pace.h"
#include "trainer/net/address.h"
#include "trainer/schemes/shard.h"
#include "trainer/process/report.h"
#include "trainer/process/source.h"
#include "trainer/data/dataset.h"
#include "trainer/models/model.h"

#define MIN_BUFFER 64           /* Samples: evaluation goes by so many. */
#define CONNECT_US 30000000     /* Peers are started one after the other. */
#define LOOK_US 100000          /* Between looks for signals. */
#define BYE_US 1000000          /* For others to hear that we end. */
#define STREAM_PEERS 1000       /* Of random numbers: one more for each. */

static const struct peer_scheme_class *const classes[] = {
    &peer_allreduce, &peer_allreduce_tree, &peer_adpsgd, &peer_adpsgd_atomic,
    &peer_prague, &peer_netmax, NULL,
};

/* What only this file needs. */
struct run {
    struct sync_peer peer;
    char *names[PEER_NET_MAX];
    struct backend *backend;
    struct dataset *data;
    struct model *model;
    struct batch *batch;
    struct report *report;
    struct pace *pace;
    struct shard share;
    struct report_progress progress;
    uint64_t evaluated;         /* Iteration of progress.loss. */
};

void
sync_peer_step(struct sync_peer *peer, const float *gradient)
{
    peer->optimiser.class->step(&peer->optimiser, peer->n_parameters,
                                gradient, peer->state, peer->x);
}

int
sync_peer_choose(struct sync_peer *peer)
{
    int there[PEER_NET_MAX], n = 0;

    for (int i = 0; i < peer->n; i++) {
        if (peer_net_present(peer->net, i)) {
            there[n++] = i;
        }
    }
    return n ? there[seeded_below(&peer->random, n)] : -1;
}

void
sync_peer_say(struct sync_peer *peer, int to, enum peer_kind kind,
              uint64_t iteration, uint64_t sequence)
{
    struct frame frame = {
        .samples = kind, .iteration = iteration, .sequence = sequence,
    };

    if (peer_net_has_room(peer->net, to, 0)) {
        peer_net_send_copy(peer->net, to, &frame, NULL);
    }
}

void
sync_peer_tell(struct sync_peer *peer, int to, enum peer_kind kind,
               uint64_t iteration, const float *floats, uint32_t n)
{
    struct frame frame = {
        .samples = kind, .iteration = iteration, .n = n,
    };

    if (peer_net_has_room(peer->net, to, n)) {
        peer_net_send_copy(peer->net, to, &frame, floats);
    }
}

/* Whether there is anything to go on for. */
static enum peer_result
look(struct sync_peer *peer)
{
    control_run(peer->control);
    return peer->error ? PEER_FAILED
           : peer->ended || control_stopped(peer->control) ? PEER_ENDED
           : PEER_OK;
}

enum peer_result
sync_peer_wait(struct sync_peer *peer, int64_t until_us)
{
    int64_t soon = report_monotonic_us() + LOOK_US;
    enum peer_result result = look(peer);

    if (result == PEER_OK) {
        peer_net_wait(peer->net, until_us < soon ? until_us : soon);
        result = look(peer);
    }
    return result;
}

static bool
take(void *run_, int from, const struct frame *frame, const float *body)
{
    struct sync_peer *peer = &((struct run *) run_)->peer;

    if (frame->samples == PEER_DONE) {
        peer->done[from] = true;
        peer_net_notify(peer->net);
        return true;
    }
    return peer->class->take(peer->scheme, from, frame, body);
}

static void
room(void *run_, int to)
{
    struct sync_peer *peer = &((struct run *) run_)->peer;

    peer->class->room(peer->scheme, to);
}

static void
gone(void *run_, int i, bool died)
{
    struct run *run = run_;
    struct sync_peer *peer = &run->peer;

    peer->done[i] = true;
    if (peer->class->gone) {
        peer->class->gone(peer->scheme, i);
    }
    if (died && peer->class->survives) {
        fprintf(stderr, "peer %d (%s) died: training goes on without it\n",
                i, run->names[i]);
    } else if (died && !peer->error) {
        peer->error = message("peer %d (%s) died", i, run->names[i]);
    } else if (!peer->class->survives) {
        peer->ended = true;
    }
}

static char *
parse_names(struct run *run, const struct options *o)
{
    char *why = address_list(o->peers, o->port, PEER_NET_MAX, run->names,
                             &run->peer.n);

    if (why) {
        char *error = message("--peers: %s", why);

        free(why);
        return error;
    }
    return o->rank < run->peer.n ? NULL
           : message("--rank: %lld is not 0 to %d, one of --peers",
                     (long long) o->rank, run->peer.n - 1);
}

static char *
open_model(struct run *run, const struct options *o)
{
    char *error = source_open_data(o, &run->data);

    error = error ? error : backend_open_named(o->backend, o->n_threads,
                                               &run->backend);
    error = error ? error : pace_create(o, &run->pace);
    if (error) {
        return error;
    }
    report_backend(run->backend->class->name);
    if (run->backend->class->set_tf32) {
        run->backend->class->set_tf32(run->backend, !strcmp(o->tf32, "on"));
    }
    run->share = shard_range(o->batch, o->rank, run->peer.n);
    run->batch = batch_create();
    return source_open_model(o, run->data, run->backend,
                             run->share.n > MIN_BUFFER ? run->share.n
                                                       : MIN_BUFFER,
                             &run->model);
}

static char *
open_net(struct run *run, const struct options *o)
{
    struct sync_peer *peer = &run->peer;
    int scheme = 0;

    while (strcmp(classes[scheme]->name, o->scheme)) {
        scheme++;
    }
    peer->class = classes[scheme];
    return peer_net_create(&(struct peer_net_config) {
        .rank = peer->rank, .n = peer->n,
        .names = (const char *const *) run->names, .address = o->address,
        .port = o->port ? o->port : address_port(run->names[o->rank]),
        .congestion = o->congestion,
        .connect_us = CONNECT_US, .deadline_us = o->deadline * 1e6,
        .control = peer->control,
        .hello = {
            .rank = peer->rank, .n_workers = peer->n, .n_shards = peer->n,
            .n_parameters = peer->n_parameters,
            .learning_rate = o->learning_rate, .momentum = o->momentum,
            .seed = o->seed, .key_space = o->batch, .width = 1 + scheme,
            .optimiser = optimiser_number(peer->optimiser.class),
            .channel = FRAME_PEERS,
        },
    }, &peer->net);
}

static char *
run_init(struct run *run, const struct options *o)
{
    static const struct peer_net_class class = { take, room, gone };
    struct sync_peer *peer = &run->peer;
    char *error = parse_names(run, o);

    peer->rank = o->rank;
    error = error ? error : open_model(run, o);
    if (error) {
        return error;
    }
    peer->n_parameters = run->model->n_parameters;
    if (peer->n > peer->n_parameters) {
        return message("--peers: more peers than parameters");
    }
    peer->gradient = run->model->gradient;
    peer->x = allocate(peer->n_parameters, sizeof *peer->x);
    peer->optimiser = optimiser_defaults(optimiser_find(o->optimiser),
                                         o->learning_rate, o->momentum);
    for (int i = 0; i < peer->optimiser.class->n_states; i++) {
        peer->state[i] = allocate(peer->n_parameters, sizeof(float));
    }
    seeded_init(&peer->random, o->seed, STREAM_PEERS + o->rank);
    model_init_weights(run->model, o->seed, peer->x);
    error = open_net(run, o);
    if (error) {
        return error;
    }
    run->report = report_create(!o->rank);
    run->progress.loss = run->progress.accuracy = NAN;
    run->progress.batch_loss = NAN;
    run->evaluated = UINT64_MAX;
    peer->scheme = peer->class->create(peer);
    return peer_net_start(peer->net, &class, run);
}

static void
run_uninit(struct run *run)
{
    struct sync_peer *peer = &run->peer;

    peer_net_destroy(peer->net);
    if (peer->scheme) {
        peer->class->destroy(peer->scheme);
    }
    for (int i = 0; i < OPTIMISER_MAX_STATES; i++) {
        free(peer->state[i]);
    }
    for (int i = 0; i < peer->n; i++) {
        free(run->names[i]);
    }
    free(peer->x);
    model_destroy(run->model);
    backend_close(run->backend);
    dataset_destroy(run->data);
    batch_destroy(run->batch);
    report_destroy(run->report);
    pace_destroy(run->pace);
}

/* Gives the model this peer's weights. */
static void
copy_weights(struct run *run)
{
    memcpy(run->model->weights, run->peer.x,
           run->peer.n_parameters * sizeof *run->peer.x);
    model_weights_changed(run->model);
}

static void
evaluate(struct run *run)
{
    if (run->evaluated != run->peer.iteration) {
        peer_net_lock(run->peer.net);
        copy_weights(run);
        peer_net_unlock(run->peer.net);
        model_evaluate(run->model, run->data, &run->progress.loss,
                       &run->progress.accuracy);
        run->evaluated = run->peer.iteration;
    }
}

/* Without the lock. */
static enum peer_result
compute(struct run *run)
{
    struct sync_peer *peer = &run->peer;
    const struct options *o = peer->o;
    uint64_t position = peer->iteration * o->batch + run->share.first;
    const char *failure;

    pace_step(run->pace);
    dataset_fill(run->data, o->seed, position, run->share.n, run->batch);
    model_gradient(run->model, run->batch, NULL, NULL, &peer->loss);
    peer->n_samples = run->share.n;
    pace_wait(run->pace, run->share.n, peer->control);
    peer->compute_s = pace_elapsed(run->pace);
    failure = backend_failure(run->backend);
    if (failure) {
        peer_net_lock(peer->net);
        free(peer->error);
        peer->error = message("backend %s: %s", run->backend->class->name,
                              failure);
        peer_net_unlock(peer->net);
        return PEER_FAILED;
    }
    return control_stopped(peer->control) ? PEER_ENDED : PEER_OK;
}

static enum peer_result
iterate(struct run *run)
{
    struct sync_peer *peer = &run->peer;
    uint64_t every = peer->o->eval_every, before = peer->iteration;
    enum peer_result result;

    peer_net_lock(peer->net);
    copy_weights(run);
    if (peer->class->begin) {
        peer->class->begin(peer->scheme);
    }
    peer_net_unlock(peer->net);
    result = compute(run);
    peer_net_lock(peer->net);
    /* A scheme that finds nobody left does not wait, and so does not look. */
    result = result == PEER_OK ? look(peer) : result;
    if (result == PEER_OK) {
        result = peer->class->finish(peer->scheme);
    }
    peer->iteration += result == PEER_OK;
    peer_net_unlock(peer->net);
    if (result == PEER_OK) {
        run->progress.iteration = peer->iteration;
        run->progress.batch_loss = peer->n_samples
                                   ? peer->loss / peer->n_samples : NAN;
        if (before / every != peer->iteration / every) {
            evaluate(run);
            report_progress(run->report, &run->progress, true);
        } else {
            report_progress(run->report, &run->progress, false);
        }
    }
    return result;
}

static bool
all_done(const struct sync_peer *peer)
{
    for (int i = 0; i < peer->n; i++) {
        if (i != peer->rank && !peer->done[i]) {
            return false;
        }
    }
    return true;
}

/* Reached its target: serves the others until there is another, or the end. */
static enum peer_result
pause_for_orders(struct run *run)
{
    struct sync_peer *peer = &run->peer;
    enum peer_result result = PEER_OK;

    report_progress(run->report, &run->progress, true);
    report_paused(peer->iteration);
    peer_net_lock(peer->net);
    peer->done[peer->rank] = true;
    for (int i = 0; i < peer->n; i++) {
        if (peer_net_present(peer->net, i)) {
            sync_peer_say(peer, i, PEER_DONE, peer->iteration, 0);
        }
    }
    while (result == PEER_OK
           && control_target(peer->control) <= peer->iteration) {
        if (control_silent(peer->control) && all_done(peer)) {
            result = PEER_ENDED;
        } else {
            result = sync_peer_wait(peer, INT64_MAX);
        }
        if (result == PEER_OK && peer->class->idle) {
            result = peer->class->idle(peer->scheme);
        }
    }
    peer->done[peer->rank] = false;
    peer_net_unlock(peer->net);
    return result;
}

static enum peer_result
train(struct run *run)
{
    struct sync_peer *peer = &run->peer;
    enum peer_result result = PEER_OK;

    pace_begin(run->pace);
    evaluate(run);
    while (result == PEER_OK) {
        control_run(peer->control);
        if (control_stopped(peer->control)) {
            return PEER_ENDED;
        }
        run->progress.stage = control_n_targets(peer->control) > 0
                              ? control_n_targets(peer->control) - 1 : 0;
        if (peer->iteration >= control_target(peer->control)) {
            evaluate(run);
            result = pause_for_orders(run);
        } else {
            result = iterate(run);
        }
    }
    return result;
}

static void
end(struct sync_peer *peer, uint64_t *sent, uint64_t *received)
{
    peer_net_lock(peer->net);
    peer_net_bye(peer->net, report_monotonic_us() + BYE_US);
    *sent = peer_net_sent(peer->net);
    *received = peer_net_received(peer->net);
    peer_net_unlock(peer->net);
}

char *
sync_peer_run(const struct options *o, struct control *control)
{
    struct run *run = allocate(1, sizeof *run);
    struct sync_peer *peer = &run->peer;
    uint64_t sent, received;
    char *error;

    peer->o = o;
    peer->control = control;
    error = run_init(run, o);
    if (!error && train(run) != PEER_FAILED) {
        end(peer, &sent, &received);
        report_done(&run->progress, sent, received);
    } else if (!error) {
        error = peer->error;
    }
    run_uninit(run);
    free(run);
    if (error && control_stopped(control)) {
        free(error);            /* Not a failure: we were told to end. */
        error = NULL;
    }
    return error;
}
