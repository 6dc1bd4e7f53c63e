/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/gossip/peer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/loop/loop.h"
#include "trainer/net/address.h"
#include "trainer/process/control.h"
#include "trainer/process/options.h"
#include "trainer/process/pace.h"

#define CONNECT_US 30000000     /* Without a peer that connects. */
#define CHECK_US 100000         /* Between checks for signals. */
#define BYE_US 1000000          /* Longest wait for the byes of others. */
#define STREAM_PEERS 1000       /* Random stream of rank 0; one per rank. */

static const struct peer_scheme_class *const classes[] = {
    &peer_allreduce, &peer_allreduce_tree,   &peer_adpsgd, &peer_prague,
    &peer_netmax,    &peer_netmax_published, NULL,
};

/* An exchange of the training loop: one scheme, and the network to all other
 * peers. */
struct exchange {
    struct sync_peer peer;      /* First: sync_peer_name() casts. */
    char *names[PEER_NET_MAX];  /* HOST:PORT of each rank. */
    int listener;               /* Socket for higher ranks, 0: none yet. */
};

const char *
sync_peer_name(const struct sync_peer *peer, int rank)
{
    return ((const struct exchange *) peer)->names[rank];
}

void
sync_peer_step(struct sync_peer *peer, const float *gradient)
{
    optimiser_step(&peer->optimiser, peer->iteration, peer->n_parameters,
                   gradient, peer->state, peer->x);
}

void
sync_peer_send(struct sync_peer *peer, int to,
               const struct frame_peer *message)
{
    struct frame frame = { .peer = *message };

    if (peer_net_has_space(peer->net, to, 0)) {
        peer_net_send_copy(peer->net, to, &frame, NULL);
    }
}

void
sync_peer_send_floats(struct sync_peer *peer, int to, enum peer_kind kind,
                      uint64_t round, const float *floats, uint32_t n)
{
    struct frame frame = { .peer = {
                               .message = kind, .round = round, .n = n } };

    if (peer_net_has_space(peer->net, to, n)) {
        peer_net_send_copy(peer->net, to, &frame, floats);
    }
}

/* Returns LOOP_OK if training is to continue. */
static enum loop_result
check_end(struct sync_peer *peer)
{
    control_run(peer->control);
    return peer->error ? LOOP_FAILED
           : peer->ended || control_stopped(peer->control) ? LOOP_ENDED
           : LOOP_OK;
}

enum loop_result
sync_peer_wait(struct sync_peer *peer, int64_t until_us)
{
    int64_t soon = clock_monotonic_us() + CHECK_US;
    enum loop_result result = check_end(peer);

    if (result == LOOP_OK) {
        peer_net_wait(peer->net, until_us < soon ? until_us : soon);
        result = check_end(peer);
    }
    return result;
}

enum loop_result
sync_peer_send_waiting(struct sync_peer *peer, int to,
                       const struct frame_peer *message)
{
    struct frame frame = { .peer = *message };
    enum loop_result result = LOOP_OK;

    while (!peer_net_has_space(peer->net, to, 0) && result == LOOP_OK) {
        result = sync_peer_wait(peer, INT64_MAX);
    }
    if (result == LOOP_OK) {
        peer_net_send_copy(peer->net, to, &frame, NULL);
    }
    return result;
}

static bool
take_message(void *e_, int from, const struct frame *frame, const float *body)
{
    struct exchange *e = e_;
    struct sync_peer *peer = &e->peer;

    if (frame->peer.message == PEER_DONE
        || frame->peer.message == PEER_RESUMED) {
        peer->done[from] = frame->peer.message == PEER_DONE;
        peer_net_notify(peer->net);
        return true;
    }
    return peer->class->take(peer->scheme, from, frame, body);
}

static void
on_writable(void *e_, int to)
{
    struct exchange *e = e_;

    e->peer.class->on_writable(e->peer.scheme, to);
}

static void
on_gone(void *e_, int i, bool died)
{
    struct exchange *e = e_;
    struct sync_peer *peer = &e->peer;

    peer->done[i] = true;
    if (peer->class->gone) {
        peer->class->gone(peer->scheme, i);
    }
    if (died && peer->class->survives) {
        fprintf(stderr, "peer %d (%s) died: training goes on without it\n",
                i, e->names[i]);
    } else if (died && !peer->error) {
        peer->error = message("peer %d (%s) died", i, e->names[i]);
    } else if (!peer->class->survives) {
        peer->ended = true;
    }
}

static const struct peer_scheme_class *
find_class(const char *name)
{
    int i = 0;

    while (strcmp(classes[i]->name, name)) {
        i++;
    }
    return classes[i];
}

static char *
start_listening(struct exchange *e, const char *address, uint16_t port)
{
    char *error = address_listen(address, port, &e->listener, &port);

    if (!error) {
        report_listening(address, port);
    }
    return error;
}

/* Waits for the addresses of all peers on standard input. */
static char *
await_peers(struct loop *loop)
{
    struct control *control = loop->control;

    control_run(control);
    while (!control_peers(control)) {
        if (control_stopped(control) || control_input_closed(control)) {
            return message("standard input: ended before \"peers\", the "
                           "addresses of all");
        }
        control_wait(control);
    }
    return NULL;
}

static char *
peers_init(struct loop *loop)
{
    struct exchange *e = loop->exchange;
    struct sync_peer *peer = &e->peer;
    const char *names = loop->o->peers;
    char *error;

    peer->o = loop->o;
    peer->control = loop->control;
    peer->rank = loop->o->rank;
    peer->class = find_class(loop->o->scheme);
    if (!strcmp(names, "-")) {
        error = start_listening(e, loop->o->address, loop->o->port);
        error = error ? error : await_peers(loop);
        if (error) {
            return error;
        }
        names = control_peers(loop->control);
    }
    error = loop_parse_names(loop->o, "peers", names, PEER_NET_MAX,
                             e->names, &peer->n);
    loop->n_workers = peer->n;
    /* Peers that load their data sooner need not connect repeatedly. */
    return error || e->listener
           ? error : start_listening(e, loop->o->address,
                                     loop_own_port(loop->o, e->names));
}

static void
peers_uninit(struct exchange *e)
{
    struct sync_peer *peer = &e->peer;

    peer_net_destroy(peer->net);
    if (e->listener > 0 && !peer->net) {
        close(e->listener);
    }
    if (peer->scheme) {
        peer->class->destroy(peer->scheme);
    }
    for (int i = 0; i < OPTIMISER_MAX_STATES; i++) {
        free(peer->state[i]);
    }
    for (int i = 0; i < peer->n; i++) {
        free(e->names[i]);
    }
    free(peer->x);
    free(peer->error);
}

static char *
open_net(struct exchange *e, const struct options *o)
{
    struct sync_peer *peer = &e->peer;
    int scheme = 0;

    while (classes[scheme] != peer->class) {
        scheme++;
    }
    return peer_net_create(&(struct peer_net_config) {
        .rank = peer->rank, .n = peer->n,
        .names = (const char *const *) e->names, .listener = e->listener,
        .congestion = o->congestion,
        .connect_us = CONNECT_US,
        .heartbeat_timeout_us = o->heartbeat_timeout * 1e6,
        .control = peer->control,
        .hello = {
            .rank = peer->rank, .n_workers = peer->n, .n_shards = peer->n,
            .n_parameters = peer->n_parameters,
            .learning_rate = o->learning_rate, .momentum = o->momentum,
            .seed = o->seed, .batch = o->batch, .scheme = scheme,
            .optimiser = optimiser_number(peer->optimiser.class),
            .schedule = o->schedule,
            .identity = options_by_label(o),
            .channel = FRAME_PEERS,
        },
    }, &peer->net);
}

static enum loop_result
peers_start(struct loop *loop)
{
    static const struct peer_net_class class = { take_message, on_writable,
                                                 on_gone };
    const struct options *o = loop->o;
    struct sync_peer *peer = &loop->exchange->peer;

    peer->n_parameters = loop->model->n_parameters;
    if (peer->n > peer->n_parameters) {
        loop->error = message("--peers: more peers than parameters");
        return LOOP_FAILED;
    }
    peer->gradient = loop->model->gradient;
    peer->x = allocate(peer->n_parameters, sizeof *peer->x);
    peer->optimiser = optimiser_defaults(optimiser_find(o->optimiser),
                                         o->learning_rate, o->momentum);
    peer->optimiser.schedule = o->schedule;
    for (int i = 0; i < peer->optimiser.class->n_states; i++) {
        peer->state[i] = allocate(peer->n_parameters, sizeof(float));
    }
    seeded_init(&peer->random, o->seed, STREAM_PEERS + o->rank);
    model_init_weights(loop->model, o->seed, peer->x);
    loop->error = open_net(loop->exchange, o);
    if (loop->error) {
        return LOOP_FAILED;
    }
    peer->scheme = peer->class->create(peer);
    loop->error = peer_net_start(peer->net, &class, loop->exchange);
    return loop->error ? LOOP_FAILED : LOOP_OK;
}

/* Gives the model this peer's weights.  With the lock. */
static void
copy_weights(struct loop *loop)
{
    const struct sync_peer *peer = &loop->exchange->peer;

    memcpy(loop->model->weights, peer->x,
           peer->n_parameters * sizeof *peer->x);
    model_weights_changed(loop->model);
}

static enum loop_result
peers_load(struct loop *loop)
{
    struct peer_net *net = loop->exchange->peer.net;

    peer_net_lock(net);
    copy_weights(loop);
    peer_net_unlock(net);
    return LOOP_OK;
}

static void
peers_begin(struct loop *loop)
{
    struct sync_peer *peer = &loop->exchange->peer;

    peer_net_lock(peer->net);
    copy_weights(loop);
    if (peer->class->begin) {
        peer->class->begin(peer->scheme);
    }
    peer_net_unlock(peer->net);
    pace_step(loop->pace);
}

/* Hands the message of a failure, if there is one, to the loop.  With the
 * lock. */
static enum loop_result
pass_error(struct loop *loop, enum loop_result result)
{
    struct sync_peer *peer = &loop->exchange->peer;

    if (result == LOOP_FAILED) {
        loop->error = peer->error;
        peer->error = NULL;
    }
    return result;
}

static enum loop_result
peers_finish(struct loop *loop, const struct loop_step *step)
{
    struct sync_peer *peer = &loop->exchange->peer;
    enum loop_result result;

    peer->compute_s = pace_elapsed(loop->pace);
    peer_net_lock(peer->net);
    peer->n_samples = step->n;
    peer->loss = step->loss;
    /* A scheme without peers left does not wait, and so does not check. */
    result = check_end(peer);
    if (result == LOOP_OK) {
        result = peer->class->finish(peer->scheme);
    }
    peer->iteration += result == LOOP_OK;
    loop->progress.iteration = peer->iteration;
    loop->progress.batch_loss = step->n ? peer->loss / step->n : NAN;
    result = pass_error(loop, result);
    peer_net_unlock(peer->net);
    return result;
}

/* Informs the other peers, which wait for it, whether this one is paused. */
static void
set_done(struct sync_peer *peer, bool done)
{
    peer_net_lock(peer->net);
    peer->done[peer->rank] = done;
    for (int i = 0; i < peer->n; i++) {
        if (peer_net_present(peer->net, i)) {
            sync_peer_send_waiting(peer, i, &(struct frame_peer) {
                .message = done ? PEER_DONE : PEER_RESUMED,
                .round = peer->iteration,
            });
        }
    }
    peer_net_unlock(peer->net);
}

static void
peers_pause(struct loop *loop)
{
    set_done(&loop->exchange->peer, true);
}

static bool
all_done(const struct sync_peer *peer)
{
    for (int i = 0; i < peer->n; i++) {
        if (!peer->done[i]) {
            return false;
        }
    }
    return true;
}

/* Serves the other peers meanwhile. */
static enum loop_result
peers_idle(struct loop *loop)
{
    struct sync_peer *peer = &loop->exchange->peer;
    enum loop_result result = LOOP_OK;

    peer_net_lock(peer->net);
    if (peer->class->idle) {
        result = peer->class->idle(peer->scheme);
    }
    if (result == LOOP_OK) {
        result = control_input_closed(loop->control) && all_done(peer)
                 ? LOOP_ENDED : sync_peer_wait(peer, INT64_MAX);
    }
    result = pass_error(loop, result);
    peer_net_unlock(peer->net);
    return result;
}

static enum loop_result
peers_resume(struct loop *loop)
{
    set_done(&loop->exchange->peer, false);
    return LOOP_OK;
}

static void
peers_end(struct loop *loop, uint64_t *sent, uint64_t *received)
{
    struct peer_net *net = loop->exchange->peer.net;

    peer_net_lock(net);
    peer_net_bye(net, clock_monotonic_us() + BYE_US);
    peer_net_bytes(net, sent, received);
    peer_net_unlock(net);
}

const struct exchange_class exchange_peers = {
    .own_weights = true, .size = sizeof(struct exchange),
    .init = peers_init, .uninit = peers_uninit,
    .start = peers_start, .begin = peers_begin, .finish = peers_finish,
    .load = peers_load, .pause = peers_pause, .idle = peers_idle,
    .resume = peers_resume, .end = peers_end,
};
