/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/server-private.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "trainer/ps/checkpoint.h"

_Static_assert(sizeof(struct sync_message) == FRAME_SCHEME_LENGTH,
               "messages are sent as they lie in memory");

/* Sends what the scheme has to say. */
static void
send_messages(struct server *server)
{
    struct sync_message body;
    int rank;

    while (!server->over
           && server->class->take(server->sync, &rank, &body)) {
        struct conn *conn = server_find_conn(server, rank, false);
        struct frame frame = { .type = FRAME_SCHEME };

        if (!conn || conn->bye) {
            continue;
        }
        if (!link_has_room(&conn->link, sizeof body)) {
            server_fail(server, message("worker %d does not read its "
                                        "messages", rank));
            return;
        }
        link_send_copy(&conn->link, &frame, &body);
    }
}

/* Sends 'conn' the weights from frame->first on that it does not have. */
static void
send_range(struct server *server, struct conn *conn, struct frame *frame)
{
    const float *weights = server->class->weights(server->sync);

    frame->type = FRAME_WEIGHTS;
    frame->n = conn->sent_from - frame->first;
    link_send(&conn->link, frame,
              weights + (frame->first - server->shard.first));
    conn->sent_from = frame->first;
}

/* Sends what there is already of the weights that follow those which 'conn'
 * has, but not so much that the rest has no room. */
static void
send_fresh(struct server *server, struct conn *conn)
{
    struct frame frame = { .first = server->shard.first };

    frame.first += server->class->fresh(server->sync, &frame.iteration);
    if (frame.first < conn->sent_from
        && conn->link.n_pieces < LINK_MAX_PIECES / 2) {
        send_range(server, conn, &frame);
    }
}

/* Sends weights to 'conn' if the scheme lets it have them. */
static void
send_weights(struct server *server, struct conn *conn)
{
    struct frame frame = { .first = server->shard.first };

    if (conn->waiting
        && (!server->central || central_has_group(server, conn->rank))
        && server->class->ready(server->sync, conn->rank, &frame.iteration,
                                &frame.value)) {
        conn->waiting--;
        send_range(server, conn, &frame);
        conn->sent_from = shard_end(&server->shard);
        if (server->class->sent) {
            server->class->sent(server->sync, conn->rank);
        }
    } else if (server->class->fresh) {
        send_fresh(server, conn);
    }
}

/* Whether 'conn' may wait for something, be it a message. */
static bool
listens(const struct server *server, const struct conn *conn)
{
    return conn->waiting || (server->ending && server->class->message);
}

static bool
may_go_on(const struct server *server)
{
    return server->begun && !server->ending && server_complete(server);
}

void
training_answer(struct server *server)
{
    if (server->class->take && may_go_on(server)) {
        send_messages(server);
    }
    for (int i = 0; i < server->n_conns; i++) {
        struct conn *conn = &server->conns[i];

        if (conn->rank < 0 || conn->channel != FRAME_TRAINING || conn->bye) {
            continue;
        }
        if (server->ending && listens(server, conn)) {
            conn_send_last(conn, FRAME_BYE, NULL);
        } else if (may_go_on(server)) {
            send_weights(server, conn);
        }
        link_flush(&conn->link);        /* An error shows when receiving. */
    }
}

static bool
fits_shard(const struct server *server, const struct frame *frame)
{
    return frame->first == server->shard.first
           && frame->n == server->shard.n;
}

/* Whether a part of a gradient, the last one if 'last', ends where the one
 * before began, and leaves something to come if it is not the last. */
static bool
fits_gradient(const struct server *server, const struct member *member,
              const struct frame *frame, bool last)
{
    return frame->n && frame->first <= member->from
           && frame->n == member->from - frame->first
           && (last ? frame->first == server->shard.first
                    : frame->first > server->shard.first);
}

/* How many of a worker's gradients may wait for weights. */
static uint32_t
max_waiting(const struct server *server)
{
    return server->class->ahead
           ? server->class->ahead(server->sync) + 1 : 1;
}

/* A gradient goes to the inbox.  Of a part that a lost connection has left
 * there unfinished, nothing counts until the worker sends it again. */
static char *
begin_push(struct server *server, struct conn *conn)
{
    const struct frame *frame = &conn->link.frame;
    const struct member *member = &server->members[conn->rank];
    float *inbox = server->class->inbox(server->sync, conn->rank);

    if (!server->begun || server->central
        || conn->waiting >= max_waiting(server)
        || frame->sequence != member->sequence + 1
        || !fits_gradient(server, member, frame, frame->type == FRAME_PUSH)) {
        return message("gradient %llu of %u values from %llu: not allowed "
                       "now", (unsigned long long) frame->sequence, frame->n,
                       (unsigned long long) frame->first);
    }
    link_set_body(&conn->link, inbox + (frame->first - server->shard.first));
    return NULL;
}

/* Says where the body belongs, or what is wrong. */
char *
training_begin_frame(struct server *server, struct conn *conn, bool *known)
{
    const struct frame *frame = &conn->link.frame;
    bool right = true;

    *known = true;
    switch (frame->type) {
    case FRAME_PART:
    case FRAME_PUSH:
        return begin_push(server, conn);
    case FRAME_INIT:
        right = !conn->rank && !server->begun && fits_shard(server, frame);
        link_set_body(&conn->link, right
                      ? server->class->weights(server->sync) : NULL);
        break;
    case FRAME_SCHEME:
        right = server->begun && server->class->message
                && server_complete(server);
        link_set_body(&conn->link, &conn->message);
        break;
    case FRAME_PULL:
        right = server->begun && server->central && !conn->waiting;
        break;
    default:
        *known = false;
        break;
    }
    return right ? NULL
                 : message("frame of type %d, %u values from %llu: not "
                           "allowed now", frame->type, frame->n,
                           (unsigned long long) frame->first);
}

/* Keeps what the weights are now if it is time for it. */
void
training_keep(struct server *server)
{
    const struct ps_server_config *config = server->config;
    uint64_t iteration = server->class->iteration(server->sync);
    char *error;

    server->iteration = iteration;
    if (!config->checkpoint || iteration == server->saved
        || iteration % config->checkpoint_every) {
        return;
    }
    error = checkpoint_write(config->checkpoint, &server->hello,
                             server->class, server->sync, iteration);
    if (error) {
        server_fail(server, error);
        return;
    }

    /* Another server may still be one behind, and ask us to go back. */
    checkpoint_remove(config->checkpoint, &server->hello,
                      server->saved - config->checkpoint_every);
    server->saved = iteration;
}

static char *
end_part(struct server *server, struct conn *conn)
{
    const struct frame *frame = &conn->link.frame;

    server->members[conn->rank].from = frame->first;
    return server->ending || !server->class->part
           ? NULL
           : server->class->part(server->sync, conn->rank, frame->iteration,
                                 frame->samples,
                                 frame->first - server->shard.first);
}

static char *
end_push(struct server *server, struct conn *conn)
{
    const struct frame *frame = &conn->link.frame;
    struct member *member = &server->members[conn->rank];
    char *error = NULL;

    conn->waiting += !conn->bye;
    member->sequence++;
    member->from = shard_end(&server->shard);
    if (!server->ending) {
        error = server->class->push(server->sync, conn->rank,
                                    frame->iteration, frame->samples,
                                    frame->value);
    }
    if (!error) {
        training_keep(server);
    }
    return error;
}

/* A whole frame has come. */
char *
training_end_frame(struct server *server, struct conn *conn)
{
    const struct frame *frame = &conn->link.frame;
    char *error = NULL;

    switch (frame->type) {
    case FRAME_PART:
        error = end_part(server, conn);
        break;
    case FRAME_PUSH:
        error = end_push(server, conn);
        break;
    case FRAME_INIT:
        server->begun = true;
        training_keep(server);
        break;
    case FRAME_SCHEME:
        if (!server->ending) {
            error = server->class->message(server->sync, conn->rank,
                                           &conn->message);
        }
        break;
    default:
        break;
    }
    if (!error && !server->over) {
        training_answer(server);
    }
    return error;
}
