/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_SERVER_PRIVATE_H
#define PS_SERVER_PRIVATE_H 1

/* What the files of a server share: server.c has connections and members,
 * server-training.c the frames of a scheme.
 *
 * A "conn" is a connection.  A "member" is a worker of the job, which may lose
 * its connection and come back with another one.  What a member sends is
 * numbered, so that what it sends again is not applied twice.
 *
 * A function that returns a message leaves it to the caller to close the
 * connection. */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/net/dispatch.h"
#include "trainer/net/event-loop.h"
#include "trainer/net/frame.h"
#include "trainer/net/heartbeat.h"
#include "trainer/net/link.h"
#include "trainer/ps/server.h"
#include "trainer/schemes/shard.h"
#include "trainer/schemes/sync.h"

struct central;
struct conn;
struct server;

#define MAX_EXTRA_HOSTS 8       /* Group servers beyond one per worker. */

/* What the central server does with group servers, under the scheme "groups":
 * trainer/groups/central.c.  A server with create()d state has 'central'. */
struct central_class {
    char *(*create)(struct server *, uint16_t port);
    void (*destroy)(struct server *); /* All group servers have ended. */
    void (*run)(struct server *);

    /* The connection of a group server has ended; takes ownership of the
     * reason, which may be null. */
    void (*drop)(struct server *, struct conn *, char *why);
    void (*rewind)(struct server *); /* The job has. */
    bool (*has_group)(const struct server *, int rank);

    /* For dispatchers: FRAME_ENLIST, which begins the connection of a group
     * server, and what workers send about their groups. */
    char *(*begin)(void *conn, struct link *);
    char *(*end)(void *conn, struct link *);
};

struct conn {
    struct server *server;
    const struct dispatcher *dispatcher;        /* By what it is for. */
    struct link link;           /* Without a socket if it is unused. */
    char *name;                 /* For messages. */
    int rank;                   /* -1 until its hello. */
    int host;                   /* Number in central.c of a group server; 0:
                                 * it is not one. */
    enum frame_channel channel;
    int64_t since_us;           /* When it connected. */
    uint32_t waiting;           /* Gradients without an answer. */
    size_t sent_from;           /* Its next weights are sent from this
                                 * parameter on, to the shard's end. */
    bool bye;                   /* One side has said bye. */
};

struct member {
    bool joined;                /* Since the server's epoch began. */
    bool present;               /* Has a connection for data. */
    uint64_t sequence;          /* Its last push that was made. */
    size_t from;                /* Its next gradient has arrived from this
                                 * parameter on, to the shard's end. */
    int64_t lost_us;            /* When it lost its connection; 0: it has
                                 * one. */
    struct heartbeat heartbeat; /* Stopped until it sends one. */
};

struct listener {
    struct server *server;
    int fd;                     /* -1: not open. */
    uint16_t port;
};

struct server {
    const struct ps_server_config *config;
    const struct sync_class *class;
    struct backend *backend;
    struct sync *sync;          /* Of a training that is prepared, or NULL. */
    struct central *central;    /* Under the scheme "groups", or NULL. */
    bool prepared;              /* The first hello, or a checkpoint, came. */
    struct frame_hello hello;   /* The first one; others must agree. */
    struct shard shard;         /* Of the model's vector. */
    int64_t first_hello_us;
    uint64_t epoch;

    struct listener listeners[2];       /* For gradients; for heartbeats. */
    int64_t registered_us;      /* When the port for heartbeats was registered
                                 * last. */
    struct conn *conns;
    int n_conns;
    uint64_t n_strangers; /* Closed, because they said no hello. */
    int64_t told_us;      /* When a line said so last. */
    struct member *members;
    bool begun;                 /* The first weights are there. */
    size_t n_first;             /* First weights that have arrived, from the
                                 * shard's first one on. */
    bool ending;                /* A worker said bye. */
    bool over;
    uint64_t iteration;         /* Of the weights. */
    uint64_t saved;             /* Iteration of the last checkpoint. */
    uint64_t n_sent, n_received;        /* Bytes, of closed connections. */
    struct event_loop loop;
    char *failure;              /* Why the job cannot go on, or NULL. */
};

/* server.c */

/* Ends the job with an abort to all; takes ownership of 'why'. */
void server_fail(struct server *, char *why);

/* Whether all workers have joined since the server's epoch began. */
bool server_complete(const struct server *);

/* The connection that 'rank' has for heartbeats if 'control', else for data,
 * or NULL. */
struct conn *server_find_conn(struct server *, int rank, bool control);

void conn_close(struct server *, struct conn *);

/* Sends a last frame, if that is possible without waiting. */
void conn_send_last(struct conn *, enum frame_type, const char *text);

/* Answers a heartbeat, unless its answers are not read. */
void conn_send_heartbeat(struct server *, struct conn *);

/* For dispatchers: whether an answer to the next frame has space in the link.
 * A worker that takes no answers is not listened to either. */
bool conn_may_receive(void *conn, const struct link *);

/* For dispatchers: a worker has sent a bye; a frame is for the central
 * class. */
char *conn_end_bye(void *conn, struct link *);
char *conn_begin_central(void *conn, struct link *);
char *conn_end_central(void *conn, struct link *);

/* server-training.c */
void training_answer(struct server *);
void training_keep(struct server *); /* Writes a checkpoint if one is due. */

/* Writes a last checkpoint, unless the weights are between two iterations. */
void training_save(struct server *);
extern const struct dispatcher training_dispatcher;

#endif /* trainer/ps/server-private.h */
