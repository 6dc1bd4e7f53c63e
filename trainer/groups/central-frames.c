/* SPDX-License-Identifier: Apache-2.0 */

/* What group servers say to a central server, and workers of them. */

#include "trainer/groups/central-private.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "trainer/process/report.h"
#include "trainer/schemes/group-plan.h"
#include "trainer/schemes/groups.h"

static char *
begin_push(struct server *server, struct peer *peer)
{
    const struct frame *frame = &peer->link.frame;
    const struct central *c = server->central;
    const struct host *host = central_host(server, peer);

    if (host->group < 0 || host->owed || frame->n != server->shard.n
        || c->groups[host->group].generation != frame->iteration
        || !groups_ready(server->sync, host->group)) {
        return message("mean of %u values, generation %"PRIu64": not allowed "
                       "now", frame->n, frame->iteration);
    }
    link_set_body(&peer->link, groups_inbox(server->sync, host->group));
    return NULL;
}

char *
central_begin_frame(struct server *server, struct peer *peer, bool *known)
{
    const struct frame *frame = &peer->link.frame;
    bool right = false;

    *known = true;
    switch (frame->type) {
    case FRAME_ENLIST:
        right = peer->rank < 0 && !peer->host && frame->body_length;
        link_keep_body(&peer->link);
        break;
    case FRAME_PUSH:
        *known = peer->host;
        return peer->host ? begin_push(server, peer) : NULL;
    case FRAME_HEARTBEAT:
        *known = right = peer->host;
        break;
    case FRAME_LOST:
    case FRAME_REST:
        right = peer->rank >= 0 && peer->channel == FRAME_TRAINING
                && server->begun && server_complete(server)
                && (frame->type == FRAME_LOST || !peer->waiting);
        break;
    default:
        *known = false;
        break;
    }
    return right || !*known ? NULL
           : message("frame of type %d: not allowed now", frame->type);
}

static char *
enlist(struct server *server, struct peer *peer)
{
    struct central *c = server->central;
    const struct link *link = &peer->link;

    for (int i = 0; i < c->n_hosts; i++) {
        if (!c->hosts[i].peer) {
            c->hosts[i] = (struct host) {
                .peer = peer, .group = -1, .pid = link->frame.first,
                .address = message("%.*s", (int) link->frame.body_length,
                                   (const char *) link->body),
                .heard_us = report_monotonic_us(),
            };
            peer->host = i + 1;
            fprintf(stderr, "server: group server at %s is there\n",
                    c->hosts[i].address);
            return NULL;
        }
    }
    return message("there are %d group servers already", c->n_hosts);
}

static char *
end_push(struct server *server, struct peer *peer)
{
    const struct frame *frame = &peer->link.frame;
    struct host *host = central_host(server, peer);
    char *error;

    if (server->ending) {
        return NULL;
    }
    error = groups_push(server->sync, host->group, frame->samples,
                        frame->value);
    host->owed = !error;
    if (!error) {
        training_keep(server);
    }
    return error;
}

/* 'rank' cannot reach the group server of 'generation'. */
static void
take_lost(struct server *server, int rank, uint64_t generation)
{
    struct central *c = server->central;
    const struct group_plan *p = groups_plan(server->sync);
    const struct hosting *hosting = &c->groups[p->group[rank]];

    if (c->n_plans == groups_n_plans(server->sync) && hosting->host >= 0
        && hosting->generation == generation) {
        central_drop(server, c->hosts[hosting->host].peer,
                     message("worker %d lost it", rank));
    }
}

/* A worker asks for weights.  If it rested it does no more: then it gets them
 * when its group's next step begins. */
static char *
take_pull(struct server *server, struct peer *peer)
{
    peer->waiting = !peer->bye;
    return groups_rests(server->sync, peer->rank) && !server->ending
           ? groups_wake(server->sync, peer->rank) : NULL;
}

char *
central_end_frame(struct server *server, struct peer *peer, bool *known)
{
    const struct frame *frame = &peer->link.frame;
    char *error = NULL;

    *known = true;
    if (peer->host) {
        central_host(server, peer)->heard_us = report_monotonic_us();
    }
    if (frame->type == FRAME_ENLIST) {
        error = enlist(server, peer);
    } else if (frame->type == FRAME_LOST) {
        take_lost(server, peer->rank, frame->iteration);
    } else if (frame->type == FRAME_PULL && peer->rank >= 0) {
        error = take_pull(server, peer);
    } else if (frame->type == FRAME_REST) {
        error = server->ending ? NULL
                               : groups_rest(server->sync, peer->rank);
    } else if (!peer->host) {
        *known = false;
    } else if (frame->type == FRAME_PUSH) {
        error = end_push(server, peer);
    } else {
        peer_send_heartbeat(server, peer);
    }
    if (!error && *known) {
        central_run(server);
    }
    return error;
}
