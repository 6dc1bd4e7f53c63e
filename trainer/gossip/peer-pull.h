/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PEER_PULL_H
#define PEER_PULL_H 1

/* Getting another peer's weights, and giving one's own.
 *
 * A pull asks for the first 'wanted' weights of a peer, which come chunk by
 * chunk, each as it is when it leaves.  It may be given up: what came until
 * then says how long the rest would have taken.
 *
 *    pull_start(&pull, peer, with, wanted, buffer);
 *    ...pull_take() for PEER_PULLED until pull.done...
 *    pull_give_up(&pull);                      // Unless it is done.
 *    seconds = pull_seconds(&pull);            // Of all weights.
 *
 *    pull_serve(serving, peer, from, frame);   // For PEER_PULL, _GIVE_UP,
 *    pull_room(serving, peer, to);             // and when there is room.
 *
 * Plain data of a scheme, under the lock of its peer's network. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct frame;
struct sync_peer;

/* What we get. */
struct pull {
    struct sync_peer *peer;
    int with;                   /* -1: nobody is asked. */
    uint64_t id;
    float *buffer;              /* NULL: only the time is of interest. */
    size_t wanted, got;
    bool done;
    int64_t began_us, ended_us;
    uint64_t bytes;             /* That had come from 'with' before. */
};

/* What somebody else gets of us. */
struct pull_serving {
    uint64_t id;
    size_t next, end;
};

void pull_start(struct pull *, struct sync_peer *, int with, size_t wanted,
                float *buffer);
void pull_take(struct pull *, int from, const struct frame *,
               const float *body);
void pull_give_up(struct pull *);
double pull_seconds(const struct pull *);

void pull_serve(struct pull_serving *, struct sync_peer *, int from,
                const struct frame *);
void pull_room(struct pull_serving *, struct sync_peer *, int to);

#endif /* trainer/gossip/peer-pull.h */
