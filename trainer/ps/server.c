/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/server.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "trainer/backend/backend.h"
#include "trainer/control.h"
#include "trainer/message.h"
#include "trainer/ps/address.h"
#include "trainer/ps/link.h"
#include "trainer/ps/shard.h"
#include "trainer/report.h"
#include "trainer/sync/sync.h"

#define MAX_STRANGERS 8         /* Connections without a hello. */
#define HELLO_US 10000000       /* A stranger must say hello in so long. */
#define JOIN_US 60000000        /* After the first hello all must come. */

struct peer {
    struct link link;           /* Without a socket if the peer is unused. */
    char *name;                 /* For messages. */
    int rank;                   /* -1 until its hello. */
    int64_t since_us;           /* When it connected. */
    bool waiting;               /* For weights. */
    bool bye;                   /* It, or we, have said so. */
    uint8_t hello[FRAME_HELLO_LENGTH];
    struct sync_message message;        /* Of FRAME_SCHEME. */
};

_Static_assert(sizeof(struct sync_message) == FRAME_SCHEME_LENGTH,
               "messages are sent as they lie in memory");

struct server {
    const struct ps_server_config *config;
    const struct sync_class *class;
    struct backend *backend;
    struct sync *sync;          /* NULL until the first hello. */
    struct frame_hello hello;   /* The first one. */
    struct shard shard;
    int64_t first_hello_us;

    int listener;               /* -1 when all workers are there. */
    struct peer *peers;
    int n_peers;                /* Workers and MAX_STRANGERS. */
    int n_joined;               /* Workers. */
    bool begun;                 /* The first weights are there. */
    bool ending;                /* A worker has said bye. */
    bool over;
    uint64_t iteration;         /* Of the weights sent last. */
    uint64_t n_sent, n_received;        /* Bytes, of closed connections. */
    char *failure;              /* Why the training cannot go on. */
};

static void
peer_close(struct server *server, struct peer *peer)
{
    server->n_sent += peer->link.n_sent;
    server->n_received += peer->link.n_received;
    link_close(&peer->link);
    free(peer->name);
    memset(peer, 0, sizeof *peer);
    peer->link.fd = -1;
    peer->rank = -1;
}

/* Sends a last frame, as far as it goes without waiting. */
static void
peer_send_last(struct peer *peer, enum frame_type type, const char *text)
{
    struct frame frame = {
        .type = type,
        .body_length = text ? strlen(text) : 0,
    };

    peer->bye = true;
    peer->waiting = false;
    if (link_idle(&peer->link)) {
        link_send(&peer->link, &frame, text);
        link_flush(&peer->link);
    }
}

/* Ends the training for everybody; takes ownership of 'why'. */
static void
server_fail(struct server *server, char *why)
{
    if (server->failure) {
        free(why);
        return;
    }
    server->failure = why;
    server->over = true;
    for (int i = 0; i < server->n_peers; i++) {
        if (server->peers[i].rank >= 0) {
            peer_send_last(&server->peers[i], FRAME_ABORT, why);
        }
    }
}

static struct peer *
find_rank(struct server *server, int rank)
{
    for (int i = 0; i < server->n_peers; i++) {
        if (server->peers[i].rank == rank) {
            return &server->peers[i];
        }
    }
    return NULL;
}

/* Sends what the scheme has to say. */
static void
server_post(struct server *server)
{
    struct sync_message body;
    int rank;

    while (server->class->take(server->sync, &rank, &body)) {
        struct peer *peer = find_rank(server, rank);
        struct frame frame = {
            .type = FRAME_SCHEME, .body_length = sizeof body,
        };

        if (!peer || peer->bye) {
            continue;
        }
        if (!link_post(&peer->link, &frame, &body)) {
            server_fail(server, message("worker %d does not read its "
                                        "messages", rank));
            return;
        }
        link_flush(&peer->link);        /* An error shows when receiving. */
    }
}

/* True if 'peer' may wait for something else than weights. */
static bool
may_listen(const struct server *server, const struct peer *peer)
{
    return server->class->message && peer->rank >= 0 && !peer->bye;
}

/* Sends weights to all whom the scheme lets have them. */
static void
server_answer(struct server *server)
{
    bool complete = server->n_joined == server->config->n_workers;

    if (server->begun && complete && !server->ending) {
        server_post(server);
    }
    for (int i = 0; i < server->n_peers; i++) {
        struct peer *peer = &server->peers[i];
        struct frame frame = {
            .type = FRAME_WEIGHTS,
            .first = server->shard.first,
            .n = server->shard.n,
        };

        if (!peer->waiting && !(server->ending && may_listen(server, peer))) {
            continue;
        }
        if (server->ending) {
            peer_send_last(peer, FRAME_BYE, NULL);
        } else if (server->begun && complete
                   && server->class->ready(server->sync, peer->rank,
                                           &frame.iteration, &frame.value)) {
            peer->waiting = false;
            server->iteration = frame.iteration;
            link_send(&peer->link, &frame,
                      server->class->weights(server->sync));
            link_flush(&peer->link);    /* An error shows when receiving. */
        }
    }
}

/* All but the rank must be the same. */
static bool
hello_agrees(const struct frame_hello *a, const struct frame_hello *b)
{
    return a->n_workers == b->n_workers && a->shard == b->shard
           && a->n_shards == b->n_shards
           && a->n_parameters == b->n_parameters
           && a->learning_rate == b->learning_rate
           && a->momentum == b->momentum && a->seed == b->seed;
}

static void
server_prepare(struct server *server)
{
    const struct frame_hello *hello = &server->hello;

    server->shard = shard_range(hello->n_parameters, hello->shard,
                                hello->n_shards);
    server->sync = server->class->create(&(struct sync_config) {
        .backend = server->backend,
        .n_workers = server->config->n_workers,
        .n = server->shard.n,
        .learning_rate = hello->learning_rate,
        .momentum = hello->momentum,
        .spec = server->config->sync,
        .follows = hello->shard > 0,
    });
    server->first_hello_us = report_monotonic_us();
}

static char *
take_hello(struct server *server, struct peer *peer)
{
    struct frame_hello hello;
    char *error = frame_hello_decode(peer->hello, &hello);

    if (error) {
        return error;
    }
    if (hello.n_workers != server->config->n_workers) {
        return message("hello: one of %u workers, %d are expected",
                       hello.n_workers, server->config->n_workers);
    }
    if (!server->sync) {
        server->hello = hello;
        server_prepare(server);
    } else if (!hello_agrees(&hello, &server->hello)) {
        return message("hello: worker %u's model, data or servers differ "
                       "from those of worker %u", hello.rank,
                       server->hello.rank);
    }
    if (find_rank(server, hello.rank)) {
        return message("hello: there is a worker %u already", hello.rank);
    }
    peer->rank = hello.rank;
    peer->waiting = true;
    if (++server->n_joined == server->config->n_workers) {
        close(server->listener);
        server->listener = -1;
    }
    return NULL;
}

static bool
fits_shard(const struct server *server, const struct frame *frame)
{
    return frame->first == server->shard.first
           && frame->n == server->shard.n;
}

/* A header has come.  Says where the body belongs, or what is wrong. */
static char *
begin_frame(struct server *server, struct peer *peer)
{
    const struct frame *frame = &peer->link.frame;
    bool known = peer->rank >= 0, right = false;

    switch (frame->type) {
    case FRAME_HELLO:
        right = !known && server->n_joined < server->config->n_workers;
        link_set_body(&peer->link, peer->hello);
        break;
    case FRAME_INIT:
        right = known && !peer->rank && !server->begun
                && fits_shard(server, frame);
        link_set_body(&peer->link, right
                      ? server->class->weights(server->sync) : NULL);
        break;
    case FRAME_PUSH:
        right = known && server->begun && !peer->waiting
                && link_idle(&peer->link) && fits_shard(server, frame);
        link_set_body(&peer->link, right
                      ? server->class->inbox(server->sync, peer->rank)
                      : NULL);
        break;
    case FRAME_BYE:
        right = known;
        break;
    case FRAME_SCHEME:
        right = known && server->begun && server->class->message
                && server->n_joined == server->config->n_workers;
        link_set_body(&peer->link, &peer->message);
        break;
    case FRAME_WEIGHTS:
    case FRAME_ABORT:
    case FRAME_N_TYPES:
        break;
    }
    return right ? NULL
                 : message("frame of type %d, %u values from %llu: not "
                           "allowed now", frame->type, frame->n,
                           (unsigned long long) frame->first);
}

/* A whole frame has come. */
static char *
end_frame(struct server *server, struct peer *peer)
{
    const struct frame *frame = &peer->link.frame;
    char *error = NULL;

    switch (frame->type) {
    case FRAME_HELLO:
        error = take_hello(server, peer);
        break;
    case FRAME_INIT:
        server->begun = true;
        break;
    case FRAME_PUSH:
        peer->waiting = !peer->bye;
        if (!server->ending) {
            error = server->class->push(server->sync, peer->rank,
                                        frame->iteration, frame->samples,
                                        frame->value);
        }
        break;
    case FRAME_BYE:
        peer->bye = true;
        peer->waiting = false;
        server->ending = true;
        break;
    case FRAME_SCHEME:
        if (!server->ending) {
            error = server->class->message(server->sync, peer->rank,
                                           &peer->message);
        }
        break;
    case FRAME_WEIGHTS:
    case FRAME_ABORT:
    case FRAME_N_TYPES:
        break;
    }
    if (!error) {
        server_answer(server);
    }
    return error;
}

static bool
all_gone(const struct server *server)
{
    for (int i = 0; i < server->n_peers; i++) {
        if (server->peers[i].rank >= 0) {
            return false;
        }
    }
    return true;
}

/* The connection of 'peer' has ended, or must; takes ownership of 'error',
 * which is NULL for one that the peer closed in good order. */
static void
peer_lost(struct server *server, struct peer *peer, char *error)
{
    int rank = peer->rank;

    if (rank < 0) {
        if (error) {
            fprintf(stderr, "server: %s: %s, closed\n", peer->name, error);
            peer_send_last(peer, FRAME_ABORT, error);
        }
        peer_close(server, peer);
    } else if (peer->bye || server->ending) {
        server->ending = true;
        peer_close(server, peer);
        server->over = server->over || all_gone(server);
        server_answer(server);
    } else {
        char *why = message("worker %d at %s is gone at iteration %llu (%s)",
                            rank, peer->name,
                            (unsigned long long) server->iteration,
                            error ? error : "closed");

        peer_close(server, peer);
        server_fail(server, why);
    }
    free(error);
}

static void
peer_run(struct server *server, struct peer *peer)
{
    while (peer->link.fd >= 0 && !server->over) {
        char *error;

        switch (link_receive(&peer->link, &error)) {
        case LINK_AGAIN:
            return;
        case LINK_HEADER:
            error = begin_frame(server, peer);
            break;
        case LINK_FRAME:
            error = end_frame(server, peer);
            break;
        case LINK_END:
            peer_lost(server, peer, error);
            return;
        }
        if (error) {
            peer_lost(server, peer, error);
        }
    }
}

static struct peer *
unused_peer(struct server *server)
{
    for (int i = 0; i < server->n_peers; i++) {
        if (server->peers[i].link.fd < 0) {
            return &server->peers[i];
        }
    }
    return NULL;
}

static void
server_accept(struct server *server)
{
    struct peer *peer = unused_peer(server);
    int fd = peer ? accept4(server->listener, NULL, NULL, SOCK_CLOEXEC) : -1;
    int error;

    if (fd < 0) {
        return;
    }
    error = link_tune(fd, server->config->congestion);
    if (error) {
        close(fd);
        server_fail(server, message("connection: %s", strerror(error)));
        return;
    }
    link_init(&peer->link, fd);
    peer->name = address_peer(fd);
    peer->since_us = report_monotonic_us();
}

/* Ends strangers that say nothing, and a job that never becomes complete. */
static void
server_expire(struct server *server)
{
    int64_t now = report_monotonic_us();

    for (int i = 0; i < server->n_peers; i++) {
        struct peer *peer = &server->peers[i];

        if (peer->link.fd >= 0 && peer->rank < 0
            && now - peer->since_us > HELLO_US) {
            peer_lost(server, peer, message("no hello"));
        }
    }
    if (server->sync && server->listener >= 0 && !server->over
        && now - server->first_hello_us > JOIN_US) {
        server_fail(server, message("only %d of %d workers came in %d s",
                                    server->n_joined,
                                    server->config->n_workers,
                                    JOIN_US / 1000000));
    }
}

static void
server_loop(struct server *server, struct pollfd *fds)
{
    struct control *control = server->config->control;

    while (!server->over) {
        fds[0].fd = control_signal_fd(control);
        fds[1].fd = control_input_fd(control);
        fds[2].fd = unused_peer(server) ? server->listener : -1;
        for (int i = 0; i < 3; i++) {
            fds[i].events = POLLIN;
        }
        for (int i = 0; i < server->n_peers; i++) {
            fds[3 + i].fd = server->peers[i].link.fd;
            fds[3 + i].events = link_events(&server->peers[i].link);
            fds[3 + i].revents = 0;
        }
        poll(fds, 3 + server->n_peers, 1000);

        control_run(control);
        if (control_ended(control)) {
            break;
        }
        for (int i = 0; i < server->n_peers && !server->over; i++) {
            struct peer *peer = &server->peers[i];

            if (peer->link.fd >= 0 && fds[3 + i].revents) {
                link_flush(&peer->link);
                peer_run(server, peer);
            }
        }
        if (server->listener >= 0 && fds[2].fd >= 0 && fds[2].revents) {
            server_accept(server);
        }
        server_expire(server);
    }
}

static void
server_uninit(struct server *server)
{
    for (int i = 0; i < server->n_peers; i++) {
        peer_close(server, &server->peers[i]);
    }
    free(server->peers);
    if (server->listener >= 0) {
        close(server->listener);
    }
    if (server->sync) {
        server->class->destroy(server->sync);
    }
    backend_close(server->backend);
}

char *
ps_server_run(const struct ps_server_config *config)
{
    struct server server = {
        .config = config,
        .class = config->sync->class,
        .listener = -1,
        .n_peers = config->n_workers + MAX_STRANGERS,
    };
    struct pollfd *fds;
    uint16_t port;
    char *error;

    if (backend_open(&backend_cpu, 0, config->n_threads, &server.backend)) {
        return message("server: no backend");
    }
    server.peers = allocate(server.n_peers, sizeof *server.peers);
    for (int i = 0; i < server.n_peers; i++) {
        server.peers[i].link.fd = -1;
        server.peers[i].rank = -1;
    }
    error = address_listen(config->address, config->port, &server.listener,
                           &port);
    if (!error) {
        report_listening(config->address, port);
        fds = allocate(3 + server.n_peers, sizeof *fds);
        server_loop(&server, fds);
        free(fds);
        error = server.failure;
    }
    server_uninit(&server);
    if (!error) {
        report_done(&(struct report_progress) {
            .iteration = server.iteration, .loss = NAN, .accuracy = NAN,
        }, server.n_sent, server.n_received);
    }
    return error;
}
