/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/keys/key-message.h"

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

static bool
has_key(enum item_kind kind)
{
    return kind < ITEM_FLUSH;
}

static bool
has_offset(enum item_kind kind)
{
    return kind == ITEM_PULL || kind == ITEM_PULLED || kind == ITEM_READ;
}

static bool
has_values(enum item_kind kind)
{
    return kind == ITEM_PUSH || kind == ITEM_TRANSFER || kind == ITEM_PULLED
           || kind == ITEM_DELTA || kind == ITEM_ROW;
}

void
key_message_begin(struct key_message *m, uint8_t *body)
{
    memset(m, 0, sizeof *m);
    m->body = body;
    m->frame.type = FRAME_KEY_ITEMS;
    m->frame.items.kind = ITEM_N_KINDS;
}

static bool
is_of_message(const struct key_message *m, const struct key_item *item)
{
    return has_key(item->kind) && m->frame.items.kind == item->kind
           && m->frame.items.origin == (uint32_t) item->origin
           && m->frame.items.op == item->op
           && m->frame.items.clock == item->clock;
}

static uint8_t *
put(uint8_t *to, const void *from, size_t n)
{
    memcpy(to, from, n);
    return to + n;
}

bool
key_message_add(struct key_message *m, const struct key_item *item,
                uint32_t width)
{
    uint32_t length = !has_key(item->kind) ? 0
                      : 8 + (has_offset(item->kind) ? 4 : 0)
                        + (has_values(item->kind) ? 4 * width : 0);
    uint8_t *to = m->body + m->frame.items.n * sizeof(float);

    if (m->frame.items.kind == ITEM_N_KINDS) {
        m->frame.items.kind = item->kind;
        m->frame.items.origin = item->origin;
        m->frame.items.op = item->op;
        m->frame.items.clock = item->clock;
    } else if (!is_of_message(m, item)
               || m->frame.items.n * sizeof(float) + length
                  > FRAME_MAX_UPDATE) {
        return false;
    }
    if (length) {
        to = put(to, &item->key, 8);
        to = has_offset(item->kind) ? put(to, &item->offset, 4) : to;
        if (has_values(item->kind)) {
            put(to, item->values, 4 * width);
        }
    }
    m->frame.items.n += length / sizeof(float);
    return true;
}

void
key_message_open(struct key_message *m, const struct frame *frame,
                 const void *body)
{
    memset(m, 0, sizeof *m);
    m->frame = *frame;
    m->at = body;
    m->end = m->at + (size_t) frame->items.n * sizeof(float);
}

/* Reads a key and what belongs to it. */
static bool
get_key(struct key_message *m, const struct local_store *store,
        struct key_item *item)
{
    size_t left = m->end - m->at, offset = has_offset(item->kind) ? 4 : 0;
    size_t wanted = 8 + offset;

    if (left < wanted) {
        return false;
    }
    memcpy(&item->key, m->at, 8);
    if (item->key >= store->n_keys) {
        return false;
    }
    memcpy(&item->offset, m->at + 8, offset);
    if (has_values(item->kind)) {
        item->values = (const float *) (m->at + wanted);
        wanted += 4 * (size_t) local_store_width(store, item->key);
    }
    m->at += wanted;
    return left >= wanted;
}

bool
key_message_next(struct key_message *m, const struct local_store *store,
                 int n_nodes, struct key_item *item)
{
    const struct frame_key_items *items = &m->frame.items;

    memset(item, 0, sizeof *item);
    if (m->wrong || !m->at) {
        return false;
    }
    m->wrong = items->kind >= ITEM_N_KINDS
               || items->origin >= (uint32_t) n_nodes;
    if (m->wrong) {
        return false;
    }
    item->kind = items->kind;
    item->origin = items->origin;
    item->op = items->op;
    item->clock = items->clock;
    if (!has_key(item->kind)) {
        m->wrong = m->at < m->end;
        m->at = NULL;           /* There is one item, and no more. */
    } else if (m->at == m->end) {
        return false;
    } else {
        m->wrong = !get_key(m, store, item);
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
