/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/keys/key-outbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/keys/local-store.h"
#include "trainer/net/mesh.h"

#define BACKLOG_LOW ((size_t) 1 << 20)  /* Below, workers may send again. */

/* A frame that waits for space in a link. */
struct key_backlog {
    struct key_backlog *next;
    struct frame frame;
    float body[];
};

void
key_outbox_init(struct key_outbox *out, const struct local_store *values,
                int n)
{
    memset(out, 0, sizeof *out);
    out->values = values;
    out->n = n;
    for (int i = 0; i < n; i++) {
        key_message_begin(&out->to[i].open, allocate(1, FRAME_MAX_UPDATE));
        out->to[i].last = &out->to[i].first;
    }
}

void
key_outbox_uninit(struct key_outbox *out)
{
    for (int i = 0; i < out->n; i++) {
        while (out->to[i].first) {
            struct key_backlog *next = out->to[i].first->next;

            free(out->to[i].first);
            out->to[i].first = next;
        }
        free(out->to[i].open.body);
    }
}

/* Sends a frame, or keeps a copy until the link has space.  A frame for a node
 * that has died is dropped: the store fails. */
static void
send_or_keep(struct key_outbox *out, int to, struct frame *frame,
             const void *body)
{
    uint32_t n = frame->items.n;
    size_t length = n * sizeof(float);
    struct key_backlog *waiting;

    if (!peer_net_present(out->net, to)) {
        return;
    }
    if (!out->to[to].first && peer_net_has_space(out->net, to, n)) {
        peer_net_send_copy(out->net, to, frame, body);
        return;
    }
    waiting = allocate(1, sizeof *waiting + length);
    waiting->frame = *frame;
    memcpy(waiting->body, body, length);
    *out->to[to].last = waiting;
    out->to[to].last = &waiting->next;
    __atomic_fetch_add(&out->backlog, length, __ATOMIC_RELAXED);
}

static void
close_message(struct key_outbox *out, int to)
{
    struct key_message *m = &out->to[to].open;

    if (m->frame.items.kind != ITEM_N_KINDS) {
        send_or_keep(out, to, &m->frame, m->body);
        key_message_begin(m, m->body);
    }
}

void
key_outbox_send(struct key_outbox *out, int to, const struct key_item *item)
{
    uint32_t width = item->values
                     ? local_store_width(out->values, item->key) : 0;

    if (!key_message_add(&out->to[to].open, item, width)) {
        close_message(out, to);
        key_message_add(&out->to[to].open, item, width);
    }
}

void
key_outbox_wake(struct key_outbox *out)
{
    if (!out->woken) {
        out->woken = true;
        peer_net_wake(out->net);
    }
}

void
key_outbox_flush(struct key_outbox *out)
{
    for (int i = 0; i < out->n; i++) {
        close_message(out, i);
    }
}

void
key_outbox_on_writable(struct key_outbox *out, int to)
{
    struct key_backlog *waiting;

    out->woken = false;
    close_message(out, to);
    while ((waiting = out->to[to].first)
           && peer_net_has_space(out->net, to, waiting->frame.items.n)) {
        peer_net_send_copy(out->net, to, &waiting->frame, waiting->body);
        __atomic_fetch_sub(&out->backlog,
                           waiting->frame.items.n * sizeof(float),
                           __ATOMIC_RELAXED);
        out->to[to].first = waiting->next;
        out->to[to].last = waiting->next ? out->to[to].last
                                         : &out->to[to].first;
        free(waiting);
        if (out->backlog < BACKLOG_LOW) {
            peer_net_notify(out->net);
        }
    }
}
