/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/server-private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/directory.h"
#include "base/memory.h"
#include "trainer/backend/backend.h"
#include "trainer/net/address.h"
#include "trainer/process/control.h"
#include "trainer/process/report.h"
#include "trainer/ps/checkpoint.h"
#include "trainer/schemes/optimiser.h"
#include "trainer/schemes/sync.h"

#define HELLO_US 1000000        /* Time limit for a hello. */
#define JOIN_US 60000000        /* Time limit for all hellos after the
                                 * first. */
#define MAX_UNKNOWN 64          /* Connections without a hello, at least. */
#define TELL_US 1000000         /* Between lines about strangers. */
#define POLL_US 500000          /* Longest time between checks of timeouts. */

static const struct dispatcher hello_dispatcher, control_dispatcher;

void
conn_close(struct server *server, struct conn *conn)
{
    server->n_sent += conn->link.n_sent;
    server->n_received += conn->link.n_received;
    link_close(&conn->link);
    free(conn->name);
    memset(conn, 0, sizeof *conn);
    conn->server = server;
    conn->dispatcher = &hello_dispatcher;
    conn->link.fd = -1;
    conn->rank = -1;
}

void
conn_send_last(struct conn *conn, enum frame_type type, const char *text)
{
    struct frame frame = { .type = type,
                           .payload_length = text ? strlen(text) : 0 };

    conn->bye = true;
    conn->waiting = false;
    if (link_has_space(&conn->link, FRAME_MAX_TEXT)) {
        link_send_copy(&conn->link, &frame, text);
        link_flush(&conn->link);
    }
}

/* Registers the port for heartbeats now and then. */
static void
register_port(struct server *server)
{
    int64_t now = clock_monotonic_us();

    if (now - server->registered_us >= HEARTBEAT_REGISTER_US) {
        server->registered_us = now;
        report_control_port(server->listeners[1].port);
    }
}

void
conn_send_heartbeat(struct server *server, struct conn *conn)
{
    struct frame frame = { .type = FRAME_HEARTBEAT,
                           .heartbeat.iteration = server->iteration };

    register_port(server);
    if (link_has_space(&conn->link, 0)) {
        link_send(&conn->link, &frame, NULL);
        link_flush(&conn->link);        /* An error shows when receiving. */
    }
}

/* Begins an epoch, in which all workers must join again and count from 1.  It
 * gets a number that no earlier state of this or another server had. */
static void
begin_epoch(struct server *server, int64_t lost_us)
{
    do {
        if (getrandom(&server->epoch, sizeof server->epoch, 0)
            != sizeof server->epoch) {
            server->epoch = clock_monotonic_us();
        }
    } while (server->epoch == FRAME_NONE);
    server->first_hello_us = clock_monotonic_us();
    for (int i = 0; i < server->config->n_workers; i++) {
        struct member *member = &server->members[i];

        member->joined = member->present = false;
        member->sequence = 0;
        member->from = shard_end(&server->shard);
        member->lost_us = lost_us;
        heartbeat_stop(&member->heartbeat);
    }
}

static char *
prepare(struct server *server, const struct frame_hello *hello)
{
    const struct ps_server_config *config = server->config;
    struct sync_config sync = {
        .backend = server->backend,
        .n_workers = config->n_workers,
        .n_statistics = hello->n_statistics,
        .optimiser = optimiser_defaults(optimiser_by_number(hello->optimiser),
                                        hello->learning_rate, hello->momentum),
        .spec = config->sync,
        .follows = hello->shard > 0,
    };
    uint64_t last = FRAME_NONE;
    char *error;

    server->hello = *hello;
    server->prepared = true;
    server->shard =
        shard_range(hello->n_parameters, hello->shard, hello->n_shards);
    begin_epoch(server, 0);
    if (server->central && hello->n_shards > 1) {
        return message("scheme %s: expected one server", server->class->name);
    }
    sync.n = server->shard.n;
    sync.optimiser.schedule = hello->schedule;
    server->sync = sync_create(server->class, &sync);
    if (config->checkpoint && !config->resume) {
        checkpoint_prune(config->checkpoint, hello, 0, UINT64_MAX);
    } else if (config->checkpoint) {
        last = checkpoint_last(config->checkpoint, hello->shard,
                               hello->n_shards);
    }
    if (last == FRAME_NONE) {
        return NULL;
    }
    error = checkpoint_read(config->checkpoint, hello, config->new_rate, &last,
                            server->class, server->sync);
    if (!error) {
        server->begun = true;
        server->iteration = server->saved = last;
        report_resumed(last);
    }
    return error;
}

bool
server_complete(const struct server *server)
{
    for (int i = 0; i < server->config->n_workers; i++) {
        if (!server->members[i].joined) {
            return false;
        }
    }
    return true;
}

/* Goes back to the checkpoint of 'iteration'.  Closes all connections: workers
 * come back and are welcomed to a new epoch. */
static char *
server_rewind(struct server *server, uint64_t iteration)
{
    const struct ps_server_config *config = server->config;
    char *error = NULL;

    if (!config->checkpoint) {
        return message("there are no checkpoints to go back to");
    }

    /* Another server may have a later checkpoint: then it must go back
     * further. */
    if (server->saved != FRAME_NONE && iteration > server->saved) {
        iteration = server->saved;
    }
    error =
        checkpoint_read(config->checkpoint, &server->hello, config->new_rate,
                        &iteration, server->class, server->sync);
    if (error) {
        return error;
    }
    fprintf(stderr, "server: rewound to iteration %"PRIu64"\n", iteration);
    checkpoint_prune(config->checkpoint, &server->hello, iteration + 1,
                     UINT64_MAX);
    server->begun = true;
    server->iteration = server->saved = iteration;
    begin_epoch(server, clock_monotonic_us());
    if (server->central) {
        config->central->rewind(server);
    }
    for (int i = 0; i < server->n_conns; i++) {
        if (server->conns[i].rank >= 0
            && server->conns[i].channel == FRAME_TRAINING) {
            conn_close(server, &server->conns[i]);
        }
    }
    return NULL;
}

struct conn *
server_find_conn(struct server *server, int rank, bool control)
{
    for (int i = 0; i < server->n_conns; i++) {
        struct conn *conn = &server->conns[i];

        if (conn->link.fd >= 0 && conn->rank == rank
            && (conn->channel == FRAME_CONTROL) == control) {
            return conn;
        }
    }
    return NULL;
}

/* Brings the server and the worker to the same epoch.  A lost connection may
 * have lost a message of the scheme, which is not repeated unless the job
 * rewinds.  Returns NULL or a message. */
static char *
reconcile(struct server *server, const struct frame_hello *hello)
{
    const struct member *member = &server->members[hello->rank];
    bool cannot_lose = server->class->needs_messages;
    bool ours = hello->epoch == server->epoch;
    struct conn *other = server_find_conn(server, hello->rank, false);

    if (ours && hello->rewind != FRAME_NONE) {
        return server_rewind(server, hello->rewind);
    }
    if (ours && cannot_lose && server->config->checkpoint) {
        return server_rewind(server, server->saved);
    }
    if (ours && cannot_lose) {
        return message("hello: worker %u: scheme %s cannot reconnect without "
                       "checkpoints", hello->rank, server->class->name);
    }
    if (ours && hello->sequence > member->sequence + 1) {
        return message("hello: worker %u: sequence %" PRIu64
                       " is ahead of the "
                       "server's; expected at most %" PRIu64 "",
                       hello->rank, hello->sequence, member->sequence + 1);
    }
    if (!ours && other) {
        return message("hello: there is a worker %u already", hello->rank);
    }
    if (!ours && member->joined) {
        /* The worker was started again. */
        return server->config->checkpoint
                   ? server_rewind(server, server->saved)
                   : message(
                       "hello: worker %u was started again, and there are "
                       "no checkpoints",
                       hello->rank);
    }
    if (other) {
        conn_close(server, other);      /* The worker has given it up. */
    }
    return NULL;
}

/* If the worker 'begins' an epoch it gets the statistics of the weights. */
static void
send_welcome(struct server *server, struct conn *conn, bool begins)
{
    struct frame frame = {
        .type = FRAME_WELCOME,
        .welcome = {
            .epoch = server->epoch,
            .sequence = server->members[conn->rank].sequence,
            .iteration = server->iteration,
            .from = server->members[conn->rank].from,
            .begun = server->begun,
            .control_port = server->listeners[1].port,
        },
    };

    link_send(&conn->link, &frame, NULL);
    if (begins && server->begun && server->hello.n_statistics) {
        frame = (struct frame){ .type = FRAME_STATISTICS,
                                .values.n = server->hello.n_statistics };
        link_send_copy(&conn->link, &frame, sync_statistics(server->sync));
    }
    link_flush(&conn->link);            /* An error shows when receiving. */
}

/* A heartbeat of worker 'rank' has arrived. */
static void
hear_member(struct server *server, int rank)
{
    if (server->members[rank].present) {
        heartbeat_start(&server->members[rank].heartbeat,
                        server->config->heartbeat_timeout_us,
                        clock_monotonic_us());
    }
}

static char *
join_control(struct server *server, struct conn *conn,
             const struct frame_hello *hello)
{
    struct conn *other = server_find_conn(server, hello->rank, true);

    if (hello->epoch != server->epoch || !server->prepared) {
        return message("hello: heartbeats of an unknown worker");
    }
    if (other) {
        conn_close(server, other);
    }
    conn->rank = hello->rank;
    conn->channel = FRAME_CONTROL;
    conn->dispatcher = &control_dispatcher;
    hear_member(server, hello->rank);
    link_mark_control(conn->link.fd);
    return NULL;
}

static char *
server_take_hello(struct server *server, struct conn *conn,
                  const struct frame_hello *hello)
{
    struct member *member;
    bool begins;
    char *error;

    if (hello->channel == FRAME_PEERS) {
        return message("hello: of a peer, which trains without servers");
    }
    if (hello->n_workers != server->config->n_workers) {
        return message("hello: one of %u workers, %d are expected",
                       hello->n_workers, server->config->n_workers);
    }
    if (hello->channel > FRAME_CONTROL) {
        return message("hello: this is a server, not a peer or a node");
    }
    if (hello->channel == FRAME_CONTROL) {
        return join_control(server, conn, hello);
    }
    if (server->prepared
        && (hello->shard != server->hello.shard
            || !frame_hello_agrees(hello, &server->hello))) {
        return message("hello: worker %u's model, data or servers differ "
                       "from those of worker %u", hello->rank,
                       server->hello.rank);
    }
    if (!server->prepared) {
        error = prepare(server, hello);
        if (error) {
            server_fail(server, duplicate(error));
            return error;
        }
    }
    error = reconcile(server, hello);
    if (error) {
        return error;
    }
    member = &server->members[hello->rank];
    member->joined = member->present = true;
    member->lost_us = 0;
    conn->rank = hello->rank;
    conn->channel = hello->channel;
    conn->dispatcher = &training_dispatcher;
    begins = hello->epoch != server->epoch || hello->rewind != FRAME_NONE;
    conn->waiting = begins || hello->sequence <= member->sequence;
    conn->sent_from = shard_end(&server->shard);
    send_welcome(server, conn, begins);
    return NULL;
}

/* A worker has lost its connection 'conn'; it may come back. */
static void
server_lose(struct server *server, struct conn *conn, char *why)
{
    struct member *member = &server->members[conn->rank];
    const char *reason = why ? why : "closed";

    if (server->class->needs_messages && !server->config->checkpoint) {
        server_fail(server, message(
            "worker %d at %s lost its connection (%s) at iteration %"PRIu64
            ": scheme %s cannot reconnect without checkpoints", conn->rank,
            conn->name, reason, server->iteration, server->class->name));
    } else {
        member->present = false;
        member->lost_us = clock_monotonic_us();
        heartbeat_stop(&member->heartbeat);     /* Until the next one. */
        fprintf(stderr, "server: worker %d at %s: connection lost (%s), "
                "waiting %"PRId64" s for a reconnect\n", conn->rank,
                conn->name, reason,
                server->config->reconnect_timeout_us / 1000000);
    }
    conn_close(server, conn);
    free(why);
}

static void
expire_member(struct server *server, int rank, int64_t now)
{
    const struct ps_server_config *config = server->config;
    struct member *member = &server->members[rank];

    if (member->lost_us
        && now - member->lost_us > config->reconnect_timeout_us) {
        server_fail(server, message("worker %d did not reconnect, iteration "
                                    "%"PRIu64,
                                    rank, server->iteration));
    } else if (heartbeat_is_silent(&member->heartbeat, now)) {
        server_fail(server, message(
            "worker %d is silent for %"PRId64" s at iteration %"PRIu64, rank,
            heartbeat_silence_s(&member->heartbeat, now),
            server->iteration));
    }
}

static bool
is_stranger(const struct conn *conn)
{
    return conn->link.fd >= 0 && conn->rank < 0 && !conn->host;
}

/* Closes a connection without a hello.  Strangers can open many: one line a
 * second names one of them. */
static void
close_stranger(struct server *server, struct conn *conn)
{
    int64_t now = clock_monotonic_us();

    server->n_strangers++;
    if (now - server->told_us >= TELL_US) {
        fprintf(stderr, "server: %s: no hello, closed (%" PRIu64 " so far)\n",
                conn->name, server->n_strangers);
        server->told_us = now;
    }
    conn_close(server, conn);
}

/* Checks the timeouts: connections without a hello, lost or silent workers,
 * and a job that does not become complete. */
static void
server_expire(struct server *server)
{
    int64_t now = clock_monotonic_us();
    int n_joined = 0;

    for (int i = 0; i < server->n_conns; i++) {
        struct conn *conn = &server->conns[i];

        if (is_stranger(conn) && now - conn->since_us > HELLO_US) {
            close_stranger(server, conn);
        }
    }
    for (int i = 0; i < server->config->n_workers && !server->ending; i++) {
        expire_member(server, i, now);
        n_joined += server->members[i].joined;
    }
    if (server->prepared && !server->over && !server->ending
        && n_joined < server->config->n_workers
        && now - server->first_hello_us > JOIN_US) {
        server_fail(server, message("only %d of %d workers joined within %d s",
                                    n_joined, server->config->n_workers,
                                    JOIN_US / 1000000));
    }
}

static bool
all_gone(const struct server *server)
{
    for (int i = 0; i < server->n_conns; i++) {
        if (server->conns[i].rank >= 0
            && server->conns[i].channel != FRAME_CONTROL) {
            return false;
        }
    }
    return true;
}

/* The other end has closed 'conn', or it broke; takes ownership of 'error',
 * which is NULL if it was closed between two frames. */
static void
conn_lost(struct server *server, struct conn *conn, char *error)
{
    if (conn->host) {
        server->config->central->drop(server, conn, error);
        return;
    }
    if (conn->rank >= 0 && conn->channel == FRAME_CONTROL) {
        conn_close(server, conn);       /* The heartbeat timeout handles the
                                         * rest. */
    } else if (conn->rank < 0) {
        if (error) {
            fprintf(stderr, "server: %s: %s, closed\n", conn->name, error);
            conn_send_last(conn, FRAME_ABORT, error);
        }
        conn_close(server, conn);
    } else if (conn->bye || server->ending) {
        server->ending = true;
        conn_close(server, conn);
        server->over = server->over || all_gone(server);
        training_answer(server);
    } else {
        server_lose(server, conn, error);
        return;
    }
    free(error);
}

/* The other end of 'conn' has sent what is not allowed. */
static void
conn_wrong(struct server *server, struct conn *conn, char *error)
{
    if (conn->rank < 0 || conn->channel == FRAME_CONTROL) {
        conn_lost(server, conn, error);
    } else {
        server_fail(server, message("worker %d at %s, iteration %"PRIu64": %s",
                                    conn->rank, conn->name, server->iteration,
                                    error));
        conn_close(server, conn);
        free(error);
    }
}

bool
conn_may_receive(void *conn_, const struct link *link)
{
    const struct conn *conn = conn_;

    return !conn->server->over && link_has_space(&conn->link, 0);
}

/* The dispatcher changes with the hello. */
static bool
may_receive_hello(void *conn_, const struct link *link)
{
    const struct conn *conn = conn_;

    return conn->dispatcher == &hello_dispatcher
           && conn_may_receive(conn_, link);
}

static char *
end_hello(void *conn_, struct link *link)
{
    struct conn *conn = conn_;
    char *error = server_take_hello(conn->server, conn, &link->frame.hello);

    if (!error) {
        training_answer(conn->server);
    }
    return error;
}

static char *
end_heartbeat(void *conn_, struct link *link)
{
    struct conn *conn = conn_;

    hear_member(conn->server, conn->rank);
    conn_send_heartbeat(conn->server, conn);
    return NULL;
}

char *
conn_end_bye(void *conn_, struct link *link)
{
    struct conn *conn = conn_;
    struct server *server = conn->server;

    conn->bye = true;
    conn->waiting = false;
    server->ending = true;
    training_answer(server);
    return NULL;
}

char *
conn_begin_central(void *conn_, struct link *link)
{
    const struct server *server = ((struct conn *) conn_)->server;

    return server->central ? server->config->central->begin(conn_, link)
                           : message("%s: not allowed here",
                                     frame_type_name(link->frame.type));
}

char *
conn_end_central(void *conn_, struct link *link)
{
    const struct server *server = ((struct conn *) conn_)->server;

    return server->config->central->end(conn_, link);
}

static const struct dispatcher hello_dispatcher = {
    .may_receive = may_receive_hello,
    .handlers = {
        [FRAME_HELLO] = { .end = end_hello },
        [FRAME_ENLIST] = { conn_begin_central, conn_end_central },
    },
};

static const struct dispatcher control_dispatcher = {
    .may_receive = conn_may_receive,
    .handlers = {
        [FRAME_HEARTBEAT] = { .end = end_heartbeat },
        [FRAME_BYE] = { .end = conn_end_bye },
    },
};

static int
conn_wait(void *conn_, short *events, int64_t *until_us)
{
    const struct conn *conn = conn_;

    return link_wait(&conn->link, link_has_space(&conn->link, 0), events);
}

static void
conn_run(void *conn_, short revents)
{
    struct conn *conn = conn_;
    struct server *server = conn->server;
    const struct dispatcher *dispatcher;
    enum dispatch_result result;
    char *error;

    if (!link_idle(&conn->link)) {
        link_flush(&conn->link);
    }
    do {
        dispatcher = conn->dispatcher;
        result = dispatch_frames(&conn->link, dispatcher, conn, &error);
    } while (result == DISPATCH_AGAIN && conn->dispatcher != dispatcher
             && conn->link.fd >= 0);
    if (result == DISPATCH_CLOSED) {
        conn_lost(server, conn, error);
    } else if (result == DISPATCH_REFUSED) {
        conn_wrong(server, conn, error);
    } else if (conn->link.fd >= 0 && !link_has_space(&conn->link, 0)) {
        link_flush(&conn->link);
    }
    if (server->over) {
        event_loop_break(&server->loop);
    }
}

void
server_fail(struct server *server, char *why)
{
    if (server->failure) {
        free(why);
        return;
    }
    server->failure = why;
    server->over = true;
    for (int i = 0; i < server->n_conns; i++) {
        if (server->conns[i].rank >= 0) {
            conn_send_last(&server->conns[i], FRAME_ABORT, why);
        }
    }
}

/* Returns a place for a connection.  If all are taken, the oldest connection
 * without a hello gives up its own: a worker sends its hello at once. */
static struct conn *
make_place(struct server *server)
{
    struct conn *oldest = NULL;

    for (int i = 0; i < server->n_conns; i++) {
        struct conn *conn = &server->conns[i];

        if (conn->link.fd < 0) {
            return conn;
        }
        if (is_stranger(conn)
            && (!oldest || conn->since_us < oldest->since_us)) {
            oldest = conn;
        }
    }
    close_stranger(server, oldest);
    return oldest;
}

static void
listener_run(void *listener_, short revents)
{
    const struct listener *listener = listener_;
    struct server *server = listener->server;
    struct link link;
    int error = link_accept(&link, listener->fd, server->config->congestion);

    if (!error) {
        struct conn *conn = make_place(server);

        conn->link = link;
        conn->name = address_of_peer(link.fd);
        conn->since_us = clock_monotonic_us();
    } else if (error != EAGAIN) {
        server_fail(server, message("connection: %s", strerror(error)));
    }
}

static int
listener_wait(void *listener_, short *events, int64_t *until_us)
{
    const struct listener *listener = listener_;

    return listener->fd;
}

static void
server_loop(struct server *server)
{
    while (!server->over
           && event_loop_run(&server->loop, clock_monotonic_us() + POLL_US)
              != ECANCELED) {
        server_expire(server);
        if (server->central) {
            server->config->central->run(server);
        }
    }
}

static void
server_uninit(struct server *server)
{
    if (server->central) {
        server->config->central->destroy(server);
    }
    event_loop_uninit(&server->loop);
    for (int i = 0; i < server->n_conns; i++) {
        conn_close(server, &server->conns[i]);
    }
    free(server->conns);
    free(server->members);
    for (int i = 0; i < 2; i++) {
        if (server->listeners[i].fd >= 0) {
            close(server->listeners[i].fd);
        }
    }
    sync_destroy(server->sync);
    backend_close(server->backend);
}

static void
server_init(struct server *server, const struct ps_server_config *config)
{
    static const struct event_class conn_class = { conn_wait, conn_run };
    static const struct event_class listener_class = { listener_wait,
                                                       listener_run };

    server->config = config;
    server->class = config->sync->class;
    server->saved = FRAME_NONE;

    /* A worker has two connections, and two more while it reconnects; others
     * never have all places. */
    server->n_conns = 4 * config->n_workers + MAX_UNKNOWN;
    if (server->class == &sync_groups) {
        server->n_conns += config->n_workers + MAX_EXTRA_HOSTS;
    }
    server->conns = allocate(server->n_conns, sizeof *server->conns);
    server->members = allocate(config->n_workers, sizeof *server->members);
    event_loop_init(&server->loop, config->control, control_ended);
    server->loop.input = true;
    for (int i = 0; i < server->n_conns; i++) {
        server->conns[i].link.fd = -1;
        conn_close(server, &server->conns[i]);
        event_loop_add(&server->loop, &conn_class, &server->conns[i]);
    }
    for (int i = 0; i < 2; i++) {
        server->listeners[i] = (struct listener) { server, -1, 0 };
        event_loop_add(&server->loop, &listener_class, &server->listeners[i]);
    }
}

char *
ps_server_run(const struct ps_server_config *config)
{
    struct server server = { .over = false };
    struct listener *data = &server.listeners[0];
    struct listener *control = &server.listeners[1];
    char *error;

    backend_open(&backend_cpu, 0, config->n_threads, &server.backend);
    server_init(&server, config);
    error = config->checkpoint ? directory_create(config->checkpoint) : NULL;
    if (!error) {
        error = address_listen(config->address, config->port, &data->fd,
                               &data->port);
    }
    if (!error) {
        error = address_listen(config->address, config->control_port,
                               &control->fd, &control->port);
    }
    if (!error && server.class == &sync_groups) {
        error = config->central->create(&server, data->port);
    }
    if (!error) {
        report_listening(config->address, data->port);
        register_port(&server);
        server_loop(&server);
        if (server.sync && !server.failure) {
            training_save(&server);
        }
        error = server.failure;
    }
    server_uninit(&server);
    if (!error) {
        report_done(&(struct report_progress){ .iteration = server.iteration,
                                               .loss = NAN,
                                               .accuracy = NAN },
                    server.n_sent, server.n_received, NAN);
    }
    return error;
}
