/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FUZZ_SERVER_WORLD_H
#define FUZZ_SERVER_WORLD_H 1

/* A server of the trainer, the other ends of its connections, and a clock, in
 * one thread: what a fuzz target of its state machines needs.
 *
 * An input is a sequence of events.  A frame is correct for the present state
 * of the server, except for the bytes that the input replaces; so a short
 * input gets far.  After each event the server must be consistent and every
 * frame that it has sent must be well-formed.
 *
 *    server_world_run("bsp", data, size);
 *
 * Includes the server itself, because its state machine is private to it, and
 * link.c, because its sockets are in memory here: those of the kernel would
 * take most of the time of an input. */

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "tests/fuzz/must.h"
#include "trainer/net/frame.h"

#define WORLD_FD 1000           /* The descriptor of the first socket. */
#define WORLD_SOCKETS 64        /* More than a server has connections. */
#define WORLD_ROOM 65536        /* Bytes that wait at a socket. */

/* A connection between a peer and the server. */
struct world_socket {
    bool server, peer;          /* Whether these have their end open. */
    size_t begin, end;          /* Of the data that the server may receive. */
    uint8_t data[WORLD_ROOM];
};

static struct world_socket world_sockets[WORLD_SOCKETS];
static int64_t world_now_us;
static uint64_t world_random;

/* What a server prints is one line. */
static inline int __attribute__((format(printf, 2, 3)))
world_print(FILE *stream, const char *format, ...)
{
    char line[2048];
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    must(n > 0 && n < (int) sizeof line);
    must(strchr(line, '\n') == line + n - 1);
    return n;
}

/* Numbers that do not differ between runs. */
static inline ssize_t
world_getrandom(void *p, size_t n, unsigned int flags)
{
    must(n == sizeof world_random);
    world_random = world_random * UINT64_C(6364136223846793005) + 1;
    memcpy(p, &world_random, n);
    return n;
}

static inline struct world_socket *
world_socket(int fd)
{
    must(fd >= WORLD_FD && fd < WORLD_FD + WORLD_SOCKETS);
    must(world_sockets[fd - WORLD_FD].server);
    return &world_sockets[fd - WORLD_FD];
}

static inline int
world_close(int fd)
{
    world_socket(fd)->server = false;
    return 0;
}

static inline ssize_t
world_recvmsg(int fd, struct msghdr *msg, int flags)
{
    struct world_socket *s = world_socket(fd);
    size_t total = 0;

    for (size_t i = 0; i < msg->msg_iovlen; i++) {
        size_t n = msg->msg_iov[i].iov_len;

        n = n < s->end - s->begin ? n : s->end - s->begin;
        memcpy(msg->msg_iov[i].iov_base, s->data + s->begin, n);
        s->begin += n;
        total += n;
    }
    if (!total && s->peer) {
        errno = EAGAIN;
        return -1;
    }
    return total;
}

/* What the server sends at once are whole frames. */
static inline ssize_t
world_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    static uint8_t bytes[1 << 20];
    size_t n = 0, at = 0;

    for (size_t i = 0; i < msg->msg_iovlen; i++) {
        must(msg->msg_iov[i].iov_len <= sizeof bytes - n);
        memcpy(bytes + n, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
        n += msg->msg_iov[i].iov_len;
    }
    while (at < n) {
        struct frame frame;
        size_t head;

        must(n - at >= FRAME_ENVELOPE_LENGTH);
        must(!frame_check_envelope(bytes + at, &head));
        must(n - at >= head);
        must(!frame_decode(bytes + at, &frame));
        must(n - at >= head + frame.payload_length);
        at += head + frame.payload_length;
    }
    if (!world_socket(fd)->peer) {
        errno = EPIPE;
        return -1;
    }
    return n;
}

static inline int
world_setsockopt(int fd, int level, int option, const void *value,
                 socklen_t size)
{
    return 0;
}

#define close world_close
#define recvmsg world_recvmsg
#define sendmsg world_sendmsg
#define setsockopt world_setsockopt
#include "trainer/net/link.c"
#undef setsockopt
#undef sendmsg
#undef recvmsg
#undef close

#define fprintf world_print
#define getrandom world_getrandom
#define clock_monotonic_us() world_now_us
#include "trainer/ps/server.c"
#define end_heartbeat end_host_heartbeat
#include "trainer/groups/central.c"
#undef end_heartbeat
#undef clock_monotonic_us
#undef getrandom
#undef fprintf

#define WORLD_PEERS 8
#define WORLD_WORKERS 3
#define WORLD_PARAMETERS 6
#define WORLD_MAX_PAYLOAD 4096  /* Bytes that are sent of it. */
#define WORLD_MAX_PARAMETERS 4096       /* A larger model only takes time. */

struct world {
    struct server server;
    struct world_socket *peers[WORLD_PEERS];    /* NULL: closed. */
    struct conn *conns[WORLD_PEERS];    /* That they were opened to. */
    const uint8_t *data;        /* Rest of the input. */
    size_t size;
};

static uint8_t
world_byte(struct world *world)
{
    if (!world->size) {
        return 0;
    }
    world->size--;
    return *world->data++;
}

/* Returns the server's end of peer 'i', NULL if it is closed. */
static struct conn *
world_conn(const struct world *world, int i)
{
    struct conn *conn = world->conns[i];

    return (conn && conn->name && conn->name[strlen("peer ")] == '0' + i
            ? conn : NULL);
}

/* Opens a connection as peer 'i'. */
static void
world_open(struct world *world, int i)
{
    struct conn *conn;
    int n = 0;

    if (world->peers[i]) {
        return;
    }
    conn = make_place(&world->server);
    while (world_sockets[n].server || world_sockets[n].peer) {
        n++;
        must(n < WORLD_SOCKETS);
    }
    world->peers[i] = &world_sockets[n];
    world->peers[i]->server = world->peers[i]->peer = true;
    world->peers[i]->begin = world->peers[i]->end = 0;
    world->conns[i] = conn;
    link_init(&conn->link, WORLD_FD + n);
    conn->name = message("peer %d", i);
    conn->since_us = world_now_us;
}

/* Closes peer 'i'. */
static void
world_end(struct world *world, int i)
{
    world->peers[i]->peer = false;
    world->peers[i] = NULL;
}

/* Sends as peer 'i' what its socket has room for. */
static void
world_write(struct world *world, int i, const void *p, size_t n)
{
    struct world_socket *s = world->peers[i];

    if (!s->server) {
        return;
    }
    if (s->begin == s->end) {
        s->begin = s->end = 0;
    }
    n = n < WORLD_ROOM - s->end ? n : WORLD_ROOM - s->end;
    memcpy(s->data + s->end, p, n);
    s->end += n;
}

/* The members of a frame that fit the state of 'conn', which may be null. */
static struct frame
world_frame(struct world *world, struct conn *conn, enum frame_type type,
            uint8_t choice)
{
    struct server *server = &world->server;
    const struct host *host = (conn && conn->host
                               ? central_host(server, conn) : NULL);
    int rank = conn && conn->rank >= 0 ? conn->rank
                                       : choice % WORLD_WORKERS;
    uint64_t generation = server->central ? server->central->generation : 0;
    struct frame frame = { .type = type };

    if (host && host->group >= 0) {
        generation = server->central->groups[host->group].generation;
    }
    switch (type) {
    case FRAME_HELLO:
        frame.hello = (struct frame_hello) {
            .rank = rank, .n_workers = WORLD_WORKERS, .n_shards = 1,
            .n_parameters = WORLD_PARAMETERS, .learning_rate = 0.1,
            .optimiser = optimiser_number(optimiser_find("sgd")),
            .epoch = choice & 0x80 ? server->epoch : FRAME_NONE,
            .sequence = choice & 0x80 ? server->members[rank].sequence : 0,
            .rewind = FRAME_NONE,
        };
        if (choice & 0x40) {
            frame.hello.channel = FRAME_CONTROL;
            frame.hello.epoch = server->epoch;
        }
        break;
    case FRAME_INIT:
        frame.range.n = WORLD_PARAMETERS;
        break;
    case FRAME_PUSH:
    case FRAME_PART:
        frame.gradient = (struct frame_gradient) {
            .iteration = server->iteration, .n_samples = 1, .loss = 1,
            .first = type == FRAME_PART ? choice % WORLD_PARAMETERS : 0,
        };
        frame.gradient.n = (server->members[rank].from
                            - frame.gradient.first);
        frame.sequence = server->members[rank].sequence + 1;
        break;
    case FRAME_ENLIST:
        frame.enlist.pid = 0;
        frame.payload_length = 12;
        break;
    case FRAME_MEAN:
        frame.mean = (struct frame_mean) {
            .generation = generation, .n = WORLD_PARAMETERS,
            .n_samples = 1, .loss = 1,
        };
        break;
    case FRAME_LOST:
        frame.lost.generation = generation;
        break;
    default:
        break;
    }
    return frame;
}

/* Sends a frame as peer 'i'. */
static void
world_send(struct world *world, int i, enum frame_type type)
{
    static uint8_t payload[WORLD_MAX_PAYLOAD];
    uint8_t choice = world_byte(world), n_patches = world_byte(world);
    struct conn *conn = world_conn(world, i);
    struct frame frame = world_frame(world, conn, type, choice);
    uint8_t head[FRAME_MAX_HEAD];
    size_t n;

    if (!world->peers[i]) {
        return;
    }
    for (int j = 0; j < n_patches % 4; j++) {
        size_t at = world_byte(world) % sizeof frame.hello;

        ((uint8_t *) &frame.hello)[at] = world_byte(world);
    }
    if (n_patches & 4) {
        frame.sequence += (int8_t) world_byte(world);
    }
    if (type == FRAME_HELLO) {
        frame.hello.n_parameters %= WORLD_MAX_PARAMETERS;
    }
    frame_encode(&frame, head);
    n = (frame.payload_length < sizeof payload ? frame.payload_length
                                               : sizeof payload);
    memset(payload, n_patches & 8 ? world_byte(world) : 0, n);
    if (type == FRAME_ENLIST && n == 12) {
        memcpy(payload, "127.0.0.1:99", n);
    } else if (type == FRAME_SCHEME) {
        for (size_t j = 0; j < n && j < 24; j += 4) {
            payload[j] = world_byte(world);
        }
    }
    world_write(world, i, head, frame_head_length(type));
    world_write(world, i, payload, n);
}

static void
world_check(struct world *world)
{
    struct server *server = &world->server;
    const struct central *c = server->central;

    must(!server->failure || (server->over && server->failure[0]
                              && !strchr(server->failure, '\n')));
    for (int i = 0; i < server->n_conns; i++) {
        const struct conn *conn = &server->conns[i];

        must(conn->rank >= -1 && conn->rank < WORLD_WORKERS);
        must(conn->link.fd >= 0 || (conn->rank < 0 && !conn->host));
        must(!conn->host || (c && c->hosts[conn->host - 1].conn == conn));
        must(conn->rank < 0 || !conn->host);
    }
    for (int i = 0; i < WORLD_WORKERS; i++) {
        must(!server->members[i].present || server->members[i].joined);
        must(!server->members[i].joined || server->prepared);
    }
    for (int i = 0; c && i < c->n_hosts; i++) {
        const struct host *host = &c->hosts[i];

        must(!host->conn || host->conn->host == i + 1);
        must(!host->conn || host->group < 0
             || c->groups[host->group].host == i);
        must(host->conn || !host->address);
    }
}

/* Runs the server until it has read what peers have sent. */
static void
world_run_server(struct world *world)
{
    struct server *server = &world->server;

    for (int i = 0; i < server->n_conns && !server->over; i++) {
        if (server->conns[i].link.fd >= 0) {
            conn_run(&server->conns[i], POLLIN);
        }
    }
    if (!server->over && server->central) {
        central_run(server);
    }
    world_check(world);
}

static void
world_pass_time(struct world *world, uint8_t choice)
{
    static const int64_t times_us[] = { 1000, 900000, 4000000, 11000000,
                                        61000000 };

    world_now_us += times_us[choice % 5];
    server_expire(&world->server);
    world_check(world);
}

/* Handles the next event. */
static void
world_step(struct world *world)
{
    uint8_t byte = world_byte(world);
    int i = byte % WORLD_PEERS, kind = world_byte(world) % 32;

    if (kind > 0 && kind < FRAME_N_TYPES) {
        world_send(world, i, kind);
    } else if (kind == FRAME_N_TYPES && world->peers[i]) {
        world_end(world, i);
    } else if (kind == FRAME_N_TYPES + 1) {
        world_pass_time(world, byte / WORLD_PEERS);
    } else {
        world_open(world, i);
    }
    if (!world->server.over) {
        world_run_server(world);
    }
}

/* Runs a server with the scheme 'scheme' on the events of 'data'. */
static inline void
server_world_run(const char *scheme, const uint8_t *data, size_t size)
{
    struct sync_spec spec;
    struct ps_server_config config = {
        .address = "127.0.0.1",
        .n_workers = WORLD_WORKERS,
        .n_threads = 1,
        .reconnect_timeout_us = 3000000,
        .heartbeat_timeout_us = 10000000,
        .sync = &spec,
        .central = &central_server,
    };
    struct world world = { .data = data, .size = size };

    world_now_us = 1000000000;
    world_random = 1;
    must(!sync_spec_parse(scheme, &spec));
    must(!backend_open(&backend_cpu, 0, 1, &world.server.backend));
    server_init(&world.server, &config);
    if (world.server.class == &sync_groups) {
        must(!central_create(&world.server, 1));
    }
    while (world.size && !world.server.over) {
        world_step(&world);
    }
    server_uninit(&world.server);
    free(world.server.failure);
    for (int i = 0; i < WORLD_PEERS; i++) {
        if (world.peers[i]) {
            world_end(&world, i);
        }
    }
    for (int i = 0; i < WORLD_SOCKETS; i++) {
        must(!world_sockets[i].server);
    }
}

#endif /* tests/fuzz/trainer/server-world.h */
