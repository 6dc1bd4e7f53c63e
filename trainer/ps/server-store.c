/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/server-private.h"

#include "base/memory.h"
#include "trainer/net/keys.h"
#include "trainer/ps/sparse.h"
#include "trainer/ps/store.h"

/* The longest frame of values that is copied into a link. */
#define MAX_COPIED FRAME_MAX_UPDATE

static bool
in_shard(const struct shard *shard, const struct frame *frame)
{
    return frame->first >= shard->first
           && frame->first - shard->first <= shard->n
           && frame->n <= shard->n - (frame->first - shard->first);
}

/* Values that the answer to 'frame' copies, in bytes. */
static size_t
copied(const struct server *server, const struct frame *frame)
{
    switch (frame->type) {
    case FRAME_UPDATE_KEYS:
    case FRAME_READ_KEYS:
        return (size_t) frame->n * server->store->width * sizeof(float);
    default:
        return 0;
    }
}

char *
store_begin_frame(struct server *server, struct peer *peer, bool *known)
{
    const struct frame *frame = &peer->link.frame;
    bool right = server->begun && frame->n
                 && frame->body_length <= FRAME_MAX_UPDATE
                 && copied(server, frame) <= MAX_COPIED;

    *known = true;
    switch (frame->type) {
    case FRAME_UPDATE:
    case FRAME_READ:
        right = right && in_shard(&server->shard, frame);
        break;
    case FRAME_UPDATE_KEYS:
        right = right && frame->width == server->store->width;
        break;
    case FRAME_READ_KEYS:
        right = right && !frame->width;
        break;
    default:
        *known = false;
        return NULL;
    }
    link_keep_body(&peer->link);
    return right ? NULL
                 : message("frame of type %d, %u values from %llu: not "
                           "allowed here", frame->type, frame->n,
                           (unsigned long long) frame->first);
}

/* Decodes the keys of the frame and checks that they are ours. */
static char *
take_keys(struct server *server, const struct link *link)
{
    const struct frame *frame = &link->frame;
    uint64_t last;

    if (!keys_decode(frame->first, link->body, frame->n, frame->key_size,
                     server->scratch)) {
        return message("keys do not ascend");
    }
    last = server->scratch[frame->n - 1];
    if (frame->first < server->keys.first
        || last - server->keys.first >= server->keys.n) {
        return message("keys %llu to %llu are of another server",
                       (unsigned long long) frame->first,
                       (unsigned long long) last);
    }
    return NULL;
}

static void
answer_values(struct server *server, struct peer *peer)
{
    const struct frame *request = &peer->link.frame;
    struct frame frame = {
        .type = FRAME_VALUES, .sequence = request->sequence,
        .first = request->first, .n = request->n,
    };

    if (request->type == FRAME_UPDATE || request->type == FRAME_READ) {
        link_send(&peer->link, &frame,
                  store_values(server->store, request->first));
    } else {
        frame.n *= server->store->width;
        sparse_read(server->store->sparse, server->scratch, request->n,
                    link_send_space(&peer->link, &frame));
    }
}

/* Makes an update, unless it was made before its connection was lost: reads
 * and updates are numbered as they are sent, and sent again in that order. */
static void
make_update(struct server *server, struct peer *peer)
{
    struct link *link = &peer->link;
    const struct frame *frame = &link->frame;
    struct member *member = &server->members[peer->rank];

    if (frame->sequence > member->sequence) {
        member->sequence = frame->sequence;
        if (frame->type == FRAME_UPDATE) {
            store_update(server->store, frame->first, frame->n,
                         (const float *) link->body);
        } else {
            size_t skip = keys_length(frame->n, frame->key_size);

            sparse_update(server->store->sparse, server->scratch, frame->n,
                          (const float *) (link->body + skip));
        }
    }
    peer->owes_ack = true;
    peer->more = frame->flags & FRAME_MORE;
}

char *
store_end_frame(struct server *server, struct peer *peer)
{
    const struct frame *frame = &peer->link.frame;
    bool update = frame->type == FRAME_UPDATE
                  || frame->type == FRAME_UPDATE_KEYS;
    bool keys = frame->type == FRAME_UPDATE_KEYS
                || frame->type == FRAME_READ_KEYS;
    char *error = keys ? take_keys(server, &peer->link) : NULL;

    if (!error && update) {
        make_update(server, peer);
    }
    if (!error && (!update || frame->flags & FRAME_ANSWER)) {
        answer_values(server, peer);
    }
    return error;
}

/* What has come has been taken: says so, once for all of it. */
void
store_finish(struct server *server, struct peer *peer)
{
    if (peer->owes_ack && !peer->more) {
        struct frame frame = {
            .type = FRAME_ACK,
            .sequence = server->members[peer->rank].sequence,
        };

        peer->owes_ack = false;
        link_send(&peer->link, &frame, NULL);
    }
    link_flush(&peer->link);            /* An error shows when receiving. */
}
