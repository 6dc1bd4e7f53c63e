/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/gossip/peer-pull.h"

#include <string.h>

#include "base/clock.h"
#include "trainer/net/frame.h"
#include "trainer/process/report.h"
#include "trainer/gossip/peer.h"

#define CHUNK 2048              /* Floats. */
#define MAX_SLOW 50             /* Times longer than it has taken. */

void
pull_start(struct pull *pull, struct sync_peer *peer, int with, size_t wanted,
           float *buffer)
{
    pull->peer = peer;
    pull->with = with;
    pull->id++;
    pull->buffer = buffer;
    pull->wanted = wanted;
    pull->got = 0;
    pull->done = false;
    pull->began_us = clock_monotonic_us();
    pull->bytes = peer_net_received_from(peer->net, with);
    sync_peer_say(peer, with, &(struct frame_peer) {
        .message = PEER_PULL, .wanted = wanted, .pull = pull->id,
    });
}

void
pull_take(struct pull *pull, int from, const struct frame *frame,
          const float *body)
{
    if (from != pull->with || frame->peer.pull != pull->id || pull->done
        || frame->peer.first != pull->got
        || frame->peer.n > pull->wanted - pull->got) {
        return;
    }
    if (pull->buffer) {
        memcpy(pull->buffer + pull->got, body, frame->peer.n * sizeof *body);
    }
    pull->got += frame->peer.n;
    if (pull->got == pull->wanted) {
        pull->done = true;
        pull->ended_us = clock_monotonic_us();
        peer_net_notify(pull->peer->net);
    }
}

void
pull_give_up(struct pull *pull)
{
    sync_peer_say(pull->peer, pull->with, &(struct frame_peer) {
        .message = PEER_GIVE_UP, .pull = pull->id,
    });
    pull->ended_us = clock_monotonic_us();
}

/* Of a pull that is not done, what the parts of messages that came would make
 * of it; of which there is no telling if nearly none came. */
double
pull_seconds(const struct pull *pull)
{
    const struct sync_peer *peer = pull->peer;
    double least = (double) peer->n_parameters / MAX_SLOW;
    double part, seconds = (pull->ended_us - pull->began_us) * 1e-6;
    uint64_t bytes = peer_net_received_from(peer->net, pull->with)
                     - pull->bytes;

    if (pull->done) {
        part = pull->wanted;
    } else {
        part = (double) bytes / sizeof(float);
        part = part > least ? part : least;
        part = part < pull->wanted ? part : pull->wanted;
    }
    return seconds * (part < peer->n_parameters ? peer->n_parameters / part
                                                : 1);
}

static void
send_chunk(struct pull_serving *serving, struct sync_peer *peer, int to)
{
    size_t left = serving->end - serving->next;
    struct frame frame = {
        .peer = {
            .message = PEER_PULLED, .first = serving->next,
            .n = left < CHUNK ? left : CHUNK, .pull = serving->id,
        },
    };

    peer_net_send_copy(peer->net, to, &frame, peer->x + serving->next);
    serving->next += frame.peer.n;
}

void
pull_room(struct pull_serving *serving, struct sync_peer *peer, int to)
{
    if (serving->next < serving->end
        && peer_net_has_room(peer->net, to, CHUNK)) {
        send_chunk(serving, peer, to);
    }
}

void
pull_serve(struct pull_serving *serving, struct sync_peer *peer, int from,
           const struct frame *frame)
{
    if (frame->peer.message == PEER_GIVE_UP) {
        serving->end = serving->next;
        return;
    }
    serving->id = frame->peer.pull;
    serving->next = 0;
    serving->end = frame->peer.wanted < peer->n_parameters
                   ? frame->peer.wanted : peer->n_parameters;
    if (!peer_net_busy(peer->net, from)) {
        pull_room(serving, peer, from);
    }
}
