/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/server-private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/process/report.h"

void
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

void
peer_send_last(struct peer *peer, enum frame_type type, const char *text)
{
    struct frame frame = {
        .type = type,
        .body_length = text ? strlen(text) : 0,
    };

    peer->bye = true;
    peer->waiting = false;
    if (link_has_room(&peer->link, FRAME_MAX_TEXT)) {
        link_send_copy(&peer->link, &frame, text);
        link_flush(&peer->link);
    }
}

void
peer_send_heartbeat(const struct server *server, struct peer *peer)
{
    struct frame frame = {
        .type = FRAME_HEARTBEAT, .iteration = server->iteration,
    };

    if (link_has_room(&peer->link, 0)) {
        link_send(&peer->link, &frame, NULL);
        link_flush(&peer->link);        /* An error shows when receiving. */
    }
}

/* Frames of every kind of job. */
static char *
begin_common_frame(struct peer *peer)
{
    const struct frame *frame = &peer->link.frame;
    bool known = peer->rank >= 0, right = false;

    switch (frame->type) {
    case FRAME_HELLO:
        right = !known;
        link_set_body(&peer->link, peer->hello);
        break;
    case FRAME_BYE:
        right = known;
        break;
    case FRAME_HEARTBEAT:
        right = known && peer->channel == FRAME_CONTROL;
        break;
    default:
        break;
    }
    return right ? NULL
                 : message("frame of type %d, %u values from %llu: not "
                           "allowed now", frame->type, frame->n,
                           (unsigned long long) frame->first);
}

/* A header has come.  Says where the body belongs, or what is wrong. */
static char *
begin_frame(struct server *server, struct peer *peer)
{
    bool taken = false;
    char *error = NULL;

    if (server->central) {
        error = central_begin_frame(server, peer, &taken);
    }
    if (taken) {
        return error;
    }
    if (peer->rank >= 0 && peer->channel == FRAME_TRAINING) {
        error = training_begin_frame(server, peer, &taken);
    } else if (peer->rank >= 0 && peer->channel == FRAME_STORE) {
        error = store_begin_frame(server, peer, &taken);
    }
    return taken ? error : begin_common_frame(peer);
}

static void
take_heartbeat(struct server *server, struct peer *peer)
{
    if (server->members[peer->rank].present) {
        server->members[peer->rank].heard_us = report_monotonic_us();
    }
    peer_send_heartbeat(server, peer);
}

/* A whole frame has come. */
static char *
end_frame(struct server *server, struct peer *peer)
{
    bool taken = false;
    char *error = NULL;

    if (server->central) {
        error = central_end_frame(server, peer, &taken);
    }
    if (taken) {
        return error;
    }
    switch (peer->link.frame.type) {
    case FRAME_HELLO:
        error = server_take_hello(server, peer);
        if (!error && server->sync) {
            training_answer(server);
        }
        return error;
    case FRAME_BYE:
        peer->bye = true;
        peer->waiting = false;
        server->ending = true;
        if (server->sync) {
            training_answer(server);
        }
        return NULL;
    case FRAME_HEARTBEAT:
        take_heartbeat(server, peer);
        return NULL;
    default:
        return peer->channel == FRAME_STORE
               ? store_end_frame(server, peer)
               : training_end_frame(server, peer);
    }
}

static bool
all_gone(const struct server *server)
{
    for (int i = 0; i < server->n_peers; i++) {
        if (server->peers[i].rank >= 0
            && server->peers[i].channel != FRAME_CONTROL) {
            return false;
        }
    }
    return true;
}

/* The connection of 'peer' has ended by itself; takes ownership of 'error',
 * which is NULL for one that the peer closed between two frames. */
static void
peer_lost(struct server *server, struct peer *peer, char *error)
{
    if (peer->host) {
        central_drop(server, peer, error);
        return;
    }
    if (peer->rank >= 0 && peer->channel == FRAME_CONTROL) {
        peer_close(server, peer);       /* The deadline sees to the rest. */
    } else if (peer->rank < 0) {
        if (error) {
            fprintf(stderr, "server: %s: %s, closed\n", peer->name, error);
            peer_send_last(peer, FRAME_ABORT, error);
        }
        peer_close(server, peer);
    } else if (peer->bye || server->ending) {
        server->ending = true;
        peer_close(server, peer);
        server->over = server->over || all_gone(server);
        if (server->sync) {
            training_answer(server);
        }
    } else {
        server_lose(server, peer, error);
        return;
    }
    free(error);
}

/* The peer has said what it must not say. */
static void
peer_wrong(struct server *server, struct peer *peer, char *error)
{
    if (peer->rank < 0 || peer->channel == FRAME_CONTROL) {
        peer_lost(server, peer, error);
    } else {
        server_fail(server, message("worker %d at %s, iteration %llu: %s",
                                    peer->rank, peer->name,
                                    (unsigned long long) server->iteration,
                                    error));
        peer_close(server, peer);
        free(error);
    }
}

bool
peer_can_answer(const struct peer *peer)
{
    return link_has_room(&peer->link,
                         peer->channel == FRAME_STORE ? FRAME_MAX_UPDATE : 0);
}

void
peer_run(struct server *server, struct peer *peer)
{
    while (peer->link.fd >= 0 && !server->over && peer_can_answer(peer)) {
        char *error;

        switch (link_receive(&peer->link, &error)) {
        case LINK_AGAIN:
            if (peer->rank >= 0 && peer->channel == FRAME_STORE) {
                store_finish(server, peer);
            }
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
            peer_wrong(server, peer, error);
            return;
        }
        if (!peer_can_answer(peer)) {
            link_flush(&peer->link);
        }
    }
}
