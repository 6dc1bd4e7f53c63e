/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/server-private.h"

#include "base/memory.h"
#include "trainer/net/keys.h"
#include "trainer/ps/sparse.h"
#include "trainer/ps/store.h"

static bool
in_shard(const struct shard *shard, const struct frame *frame)
{
    return frame->first >= shard->first
           && frame->first - shard->first <= shard->n
           && frame->n <= shard->n - (frame->first - shard->first);
}

/* The values that a frame of keys asks for are copied into the link. */
static char *
begin_frame(void *conn_, struct link *link)
{
    const struct server *server = ((struct conn *) conn_)->server;
    const struct frame *frame = &link->frame;
    uint32_t width = server->store->width;
    bool right = server->begun && frame->n
                 && frame->body_length <= FRAME_MAX_UPDATE;

    if (frame->type == FRAME_UPDATE || frame->type == FRAME_READ) {
        right = right && in_shard(&server->shard, frame);
    } else {
        right = right
                && frame->width == (frame->type == FRAME_READ_KEYS ? 0 : width)
                && (size_t) frame->n * width * sizeof(float)
                   <= FRAME_MAX_UPDATE;
    }
    link_keep_body(link);
    return right ? NULL
                 : message("%s: %u values from %llu: not allowed here",
                           frame_type_name(frame->type), frame->n,
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

static char *
end_frame(void *conn_, struct link *link)
{
    struct conn *conn = conn_;
    struct server *server = conn->server;
    const struct frame *frame = &link->frame;
    bool update = frame->type == FRAME_UPDATE
                  || frame->type == FRAME_UPDATE_KEYS;
    bool keys = frame->type == FRAME_UPDATE_KEYS
                || frame->type == FRAME_READ_KEYS;
    char *error = keys ? take_keys(server, link) : NULL;

    if (!error && update) {
        make_update(server, conn);
    }
    if (!error && (!update || frame->flags & FRAME_ANSWER)) {
        answer_values(server, conn);
    }
    return error;
}

const struct dispatcher store_dispatcher = {
    .may_receive = conn_may_receive,
    .handlers = {
        [FRAME_UPDATE] = { begin_frame, end_frame },
        [FRAME_READ] = { begin_frame, end_frame },
        [FRAME_UPDATE_KEYS] = { begin_frame, end_frame },
        [FRAME_READ_KEYS] = { begin_frame, end_frame },
        [FRAME_BYE] = { .end = conn_end_bye },
    },
};

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
