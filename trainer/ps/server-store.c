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
store_begin_frame(struct server *server, struct conn *conn, bool *known)
{
    const struct frame *frame = &conn->link.frame;
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
    link_keep_body(&conn->link);
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
answer_values(struct server *server, struct conn *conn)
{
    const struct frame *request = &conn->link.frame;
    struct frame frame = {
        .type = FRAME_VALUES, .sequence = request->sequence,
        .first = request->first, .n = request->n,
    };

    if (request->type == FRAME_UPDATE || request->type == FRAME_READ) {
        link_send(&conn->link, &frame,
                  store_values(server->store, request->first));
    } else {
        frame.n *= server->store->width;
        sparse_read(server->store->sparse, server->scratch, request->n,
                    link_send_space(&conn->link, &frame));
    }
}

/* Makes an update, unless it was made before its connection was lost: reads
 * and updates are numbered as they are sent, and sent again in that order. */
static void
make_update(struct server *server, struct conn *conn)
{
    struct link *link = &conn->link;
    const struct frame *frame = &link->frame;
    struct member *member = &server->members[conn->rank];

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
    conn->owes_ack = true;
    conn->more = frame->flags & FRAME_MORE;
}

char *
store_end_frame(struct server *server, struct conn *conn)
{
    const struct frame *frame = &conn->link.frame;
    bool update = frame->type == FRAME_UPDATE
                  || frame->type == FRAME_UPDATE_KEYS;
    bool keys = frame->type == FRAME_UPDATE_KEYS
                || frame->type == FRAME_READ_KEYS;
    char *error = keys ? take_keys(server, &conn->link) : NULL;

    if (!error && update) {
        make_update(server, conn);
    }
    if (!error && (!update || frame->flags & FRAME_ANSWER)) {
        answer_values(server, conn);
    }
    return error;
}

/* What has come has been taken: says so, once for all of it. */
void
store_finish(struct server *server, struct conn *conn)
{
    if (conn->owes_ack && !conn->more) {
        struct frame frame = {
            .type = FRAME_ACK,
            .sequence = server->members[conn->rank].sequence,
        };

        conn->owes_ack = false;
        link_send(&conn->link, &frame, NULL);
    }
    link_flush(&conn->link);            /* An error shows when receiving. */
}
