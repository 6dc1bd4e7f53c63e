/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/server-private.h"

#include "base/memory.h"
#include "trainer/net/keys.h"
#include "trainer/ps/store.h"

/* Values that are read are copied into the link. */
static char *
begin_keys(void *conn_, struct link *link)
{
    const struct server *server = ((struct conn *) conn_)->server;
    const struct frame_keys *keys = &link->frame.keys;
    uint32_t width = server->hello.width;

    if (!server->begun || !keys->n
        || keys->width != (link->frame.type == FRAME_READ_KEYS ? 0 : width)
        || link->frame.payload_length > FRAME_MAX_UPDATE
        || (size_t) keys->n * width * sizeof(float) > FRAME_MAX_UPDATE) {
        return message("%s: %u keys from %llu: not allowed here",
                       frame_type_name(link->frame.type), keys->n,
                       (unsigned long long) keys->first);
    }
    link_keep_payload(link);
    return NULL;
}

/* Decodes the keys of the frame and checks that this server has them. */
static char *
take_keys(struct server *server, const struct link *link)
{
    const struct frame_keys *keys = &link->frame.keys;
    uint64_t last;

    if (!keys_decode(keys->first, link->payload, keys->n, keys->key_size,
                     server->scratch)) {
        return message("keys do not ascend");
    }
    last = server->scratch[keys->n - 1];
    if (keys->first < server->keys.first
        || last - server->keys.first >= server->keys.n) {
        return message("keys %llu to %llu are of another server",
                       (unsigned long long) keys->first,
                       (unsigned long long) last);
    }
    return NULL;
}

/* Returns false for an update that was made before its connection was lost:
 * reads and updates are numbered as they are sent, and sent again in that
 * order. */
static bool
is_new_update(struct conn *conn, int flags)
{
    struct member *member = &conn->server->members[conn->rank];
    bool new = conn->link.frame.sequence > member->sequence;

    conn->owes_ack = true;
    conn->more = flags & FRAME_MORE;
    member->sequence = new ? conn->link.frame.sequence : member->sequence;
    return new;
}

static char *
end_update_keys(void *conn_, struct link *link)
{
    struct conn *conn = conn_;
    struct server *server = conn->server;
    const struct frame_keys *keys = &link->frame.keys;
    char *error = take_keys(server, link);

    if (!error && is_new_update(conn, keys->flags)) {
        size_t skip = keys_length(keys->n, keys->key_size);

        store_update_keys(server->store, server->scratch, keys->n,
                          (const float *) (link->payload + skip));
    }
    return error;
}

static char *
end_read_keys(void *conn_, struct link *link)
{
    struct server *server = ((struct conn *) conn_)->server;
    uint32_t n = link->frame.keys.n;
    struct frame frame = {
        .type = FRAME_VALUES, .sequence = link->frame.sequence,
        .values.n = n * server->hello.width,
    };
    char *error = take_keys(server, link);

    if (!error) {
        store_read_keys(server->store, server->scratch, n,
                        link_send_space(link, &frame));
    }
    return error;
}

const struct dispatcher store_dispatcher = {
    .may_receive = conn_may_receive,
    .handlers = {
        [FRAME_UPDATE_KEYS] = { begin_keys, end_update_keys },
        [FRAME_READ_KEYS] = { begin_keys, end_read_keys },
        [FRAME_BYE] = { .end = conn_end_bye },
    },
};

void
store_finish(struct server *server, struct conn *conn)
{
    if (conn->owes_ack && !conn->more) {
        struct frame frame = {
            .type = FRAME_ACK, .sequence = server->members[conn->rank].sequence
        };

        conn->owes_ack = false;
        link_send(&conn->link, &frame, NULL);
    }
    link_flush(&conn->link);            /* An error shows when receiving. */
}
