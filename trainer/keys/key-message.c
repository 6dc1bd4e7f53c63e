/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/keys/key-message.h"

#include <string.h>

#include "trainer/keys/local-store.h"

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
