/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/server-private.h"

#include <stdio.h>
#include <stdlib.h>

#include "trainer/message.h"
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
        struct peer *peer = server_find_peer(server, rank, false);
        struct frame frame = { .type = FRAME_SCHEME };

        if (!peer || peer->bye) {
            continue;
        }
        if (!link_has_room(&peer->link, sizeof body)) {
            server_fail(server, message("worker %d does not read its "
                                        "messages", rank));
            return;
        }
        link_send_copy(&peer->link, &frame, &body);
    }
}

/* Sends weights to 'peer' if the scheme lets it have them. */
static void
send_weights(struct server *server, struct peer *peer)
{
    struct frame frame = {
        .type = FRAME_WEIGHTS,
        .first = server->shard.first,
        .n = server->shard.n,
    };

    if (server->ending) {
        peer_send_last(peer, FRAME_BYE, NULL);
    } else if (server->begun && server_complete(server)
               && (!server->central || central_has_group(server, peer->rank))
               && server->class->ready(server->sync, peer->rank,
                                       &frame.iteration, &frame.value)) {
        peer->waiting = false;
        if (!server->class->iteration
            && server->iteration < frame.iteration) {
            server->iteration = frame.iteration;
        }
        link_send(&peer->link, &frame, server->class->weights(server->sync));
    }
}

/* Whether 'peer' may wait for something, be it a message. */
static bool
listens(const struct server *server, const struct peer *peer)
{
    return peer->waiting || (server->ending && server->class->message);
}

void
training_answer(struct server *server)
{
    if (server->class->take && server->begun && !server->ending
        && server_complete(server)) {
        send_messages(server);
    }
    for (int i = 0; i < server->n_peers; i++) {
        struct peer *peer = &server->peers[i];

        if (peer->rank < 0 || peer->channel != FRAME_TRAINING || peer->bye) {
            continue;
        }
        if (listens(server, peer)) {
            send_weights(server, peer);
        }
        link_flush(&peer->link);        /* An error shows when receiving. */
    }
}

static bool
fits_shard(const struct server *server, const struct frame *frame)
{
    return frame->first == server->shard.first
           && frame->n == server->shard.n;
}

/* A gradient goes to the inbox.  What a lost connection has left there is
 * replaced when the worker sends it again. */
static char *
begin_push(struct server *server, struct peer *peer)
{
    const struct frame *frame = &peer->link.frame;
    uint64_t next = server->members[peer->rank].sequence + 1;

    if (!server->begun || server->central || peer->waiting
        || !fits_shard(server, frame) || frame->sequence != next) {
        return message("gradient %llu of %u values from %llu: not allowed "
                       "now", (unsigned long long) frame->sequence, frame->n,
                       (unsigned long long) frame->first);
    }
    link_set_body(&peer->link, server->class->inbox(server->sync,
                                                    peer->rank));
    return NULL;
}

/* Says where the body belongs, or what is wrong. */
char *
training_begin_frame(struct server *server, struct peer *peer, bool *known)
{
    const struct frame *frame = &peer->link.frame;
    bool right = true;

    *known = true;
    switch (frame->type) {
    case FRAME_PUSH:
        return begin_push(server, peer);
    case FRAME_INIT:
        right = !peer->rank && !server->begun && fits_shard(server, frame);
        link_set_body(&peer->link, right
                      ? server->class->weights(server->sync) : NULL);
        break;
    case FRAME_SCHEME:
        right = server->begun && server->class->message
                && server_complete(server);
        link_set_body(&peer->link, &peer->message);
        break;
    case FRAME_PULL:
        right = server->begun && server->central && !peer->waiting;
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
static void
keep(struct server *server)
{
    const struct ps_server_config *config = server->config;
    uint64_t iteration;
    char *error;

    if (!server->class->iteration) {
        return;
    }
    iteration = server->class->iteration(server->sync);
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
end_push(struct server *server, struct peer *peer)
{
    const struct frame *frame = &peer->link.frame;
    char *error = NULL;

    peer->waiting = !peer->bye;
    server->members[peer->rank].sequence++;
    if (!server->ending) {
        error = server->class->push(server->sync, peer->rank,
                                    frame->iteration, frame->samples,
                                    frame->value);
    }
    if (!error) {
        keep(server);
    }
    return error;
}

/* A whole frame has come. */
char *
training_end_frame(struct server *server, struct peer *peer)
{
    const struct frame *frame = &peer->link.frame;
    char *error = NULL;

    switch (frame->type) {
    case FRAME_PUSH:
        error = end_push(server, peer);
        break;
    case FRAME_INIT:
        server->begun = true;
        keep(server);
        break;
    case FRAME_PULL:
        peer->waiting = !peer->bye;
        break;
    case FRAME_SCHEME:
        if (!server->ending) {
            error = server->class->message(server->sync, peer->rank,
                                           &peer->message);
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
