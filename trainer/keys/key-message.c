/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/keys/key-message.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/net/mesh.h"

#define BACKLOG_LOW ((size_t) 1 << 20)  /* Below, workers may send again. */

/* A frame that waits for space in a link. */
struct key_backlog {
    struct key_backlog *next;
    struct frame frame;
    float body[];
};

void
key_message_begin(struct key_message *m, void *body)
{
    memset(m, 0, sizeof *m);
    m->body = body;
    m->frame.type = FRAME_KEY_ITEMS;
    m->frame.items.kind = ITEM_N_KINDS;
}

bool
key_message_add(struct key_message *m, const struct key_item *item,
                uint32_t width)
{
    bool first = m->frame.items.kind == ITEM_N_KINDS;

    if (first) {
        m->frame.items.kind = item->kind;
        m->frame.items.origin = item->origin;
        m->frame.items.op = item->op;
        m->frame.items.clock = item->clock;
    }
    if (key_item_has_key(item->kind)) {
        return key_message_append(m, item, width);
    }
    if (item->kind == ITEM_PUSHED && m->frame.items.kind == ITEM_PUSHED
        && m->frame.items.op == item->op
        && m->frame.items.origin == (uint32_t) item->origin) {
        m->body[0] = (first ? 0 : m->body[0]) + item->n_keys;
        m->frame.items.n = 1;
        return true;
    }
    return first;
}

void
key_message_open(struct key_message *m, const struct frame *frame,
                 const void *body)
{
    memset(m, 0, sizeof *m);
    m->frame = *frame;
    m->at = body;
    m->end = m->at + frame->items.n;
}

/* Reads a record of the message. */
static bool
get_record(struct key_message *m, const struct local_store *store,
           struct key_item *item)
{
    const uint32_t *at = m->at;
    uint32_t width = 0, length;

    if (item->kind == ITEM_PUSHED) {
        item->n_keys = *at;
    } else if (*at >= store->n_keys) {
        return false;
    } else {
        item->key = *at;
        width = local_store_width(store, item->key);
    }
    length = key_record_length(item->kind, width);
    if (m->end - at < length) {
        return false;
    }
    m->at += length;
    at++;
    if (key_item_has_offset(item->kind)) {
        item->offset = *at++;
    }
    item->values = key_item_has_values(item->kind) ? (const float *) at : NULL;
    return true;
}

bool
key_message_next(struct key_message *m, const struct local_store *store,
                 int n_nodes, struct key_item *item)
{
    const struct frame_key_items *items = &m->frame.items;

    if (m->wrong || !m->at) {
        return false;
    }
    *item = (struct key_item){
        .kind = items->kind,
        .origin = items->origin,
        .op = items->op,
        .clock = items->clock,
    };
    if (items->kind >= ITEM_N_KINDS || items->origin >= (uint32_t) n_nodes) {
        m->wrong = true;
    } else if (!key_record_length(item->kind, 1)) {
        m->wrong = m->at < m->end;
        m->at = NULL;           /* There is one item, and no more. */
    } else if (m->at == m->end) {
        return false;
    } else {
        m->wrong = !get_record(m, store, item);
    }
    return !m->wrong;
}

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
             const void *body, bool now)
{
    uint32_t n = frame->items.n;
    size_t length = n * sizeof(float);
    struct key_backlog *waiting;

    if (!peer_net_present(out->net, to)) {
        return;
    }
    if (!out->to[to].first && peer_net_has_space(out->net, to, n)) {
        (now ? peer_net_send_now : peer_net_send_copy)(out->net, to, frame,
                                                       body);
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
close_message(struct key_outbox *out, int to, bool now)
{
    struct key_message *m = &out->to[to].open;

    if (m->frame.items.kind != ITEM_N_KINDS) {
        send_or_keep(out, to, &m->frame, m->body, now);
        key_message_begin(m, m->body);
    }
}

void
key_outbox_send(struct key_outbox *out, int to, const struct key_item *item)
{
    uint32_t width = item->values
                     ? local_store_width(out->values, item->key) : 0;

    if (!key_message_add(&out->to[to].open, item, width)) {
        size_t length = out->to[to].open.frame.items.n * sizeof(float);

        close_message(out, to, length > FRAME_MAX_UPDATE / 2);
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
        close_message(out, i, true);
    }
}

void
key_outbox_on_writable(struct key_outbox *out, int to)
{
    struct key_backlog *waiting;

    out->woken = false;
    close_message(out, to, false);
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
