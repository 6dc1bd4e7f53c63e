/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/keys/replica-private.h"

#include <stdlib.h>

#include "base/memory.h"

void
replica_home_init(struct replica *r)
{
    uint64_t n = r->store->values.n_keys;

    if (r->pushes) {
        r->subscribers = allocate(n, sizeof *r->subscribers);
        r->changed = allocate(n, sizeof *r->changed);
        r->changes = allocate(n, sizeof *r->changes);
    }
}

void
replica_home_uninit(struct replica *r)
{
    while (r->readers) {
        struct replica_reader *next = r->readers->next;

        free(r->readers);
        r->readers = next;
    }
    free(r->subscribers);
    free(r->changed);
    free(r->changes);
}

void
replica_deliver(struct replica *r, int to, const struct key_item *item)
{
    if (to == r->store->config.rank) {
        replica_take(r, to, item);
    } else {
        key_net_send(r->store, to, item);
    }
}

void
replica_say(struct replica *r, int to, enum item_kind kind, uint64_t op,
            uint64_t clock)
{
    replica_deliver(r, to, &(struct key_item) {
        .kind = kind, .origin = r->store->config.rank, .op = op,
        .clock = clock,
    });
}

void
replica_note_change(struct replica *r, uint64_t key)
{
    if (r->pushes && r->subscribers[key] && !r->changed[key]) {
        r->changed[key] = true;
        r->changes[r->n_changes++] = key;
    }
}

/* Sends what has changed to those who have once read it, then the clock. */
static void
push_changes(struct replica *r)
{
    int n = r->store->config.n_nodes;

    for (size_t i = 0; i < r->n_changes; i++) {
        uint64_t key = r->changes[i];

        r->changed[key] = false;
        for (int to = 0; to < n; to++) {
            if (r->subscribers[key] & (uint32_t) 1 << to) {
                replica_deliver(r, to, &(struct key_item) {
                    .kind = ITEM_ROW, .origin = r->store->config.rank,
                    .op = r->store->barrier, .clock = r->slowest, .key = key,
                    .values = local_store_peek(&r->store->values, key),
                });
            }
        }
    }
    r->n_changes = 0;
    for (int to = 0; to < n; to++) {
        replica_say(r, to, ITEM_CLOCK, r->store->barrier, r->slowest);
    }
}

static void
answer(struct replica *r, int to, const struct key_item *read)
{
    if (r->pushes) {
        r->subscribers[read->key] |= (uint32_t) 1 << to;
    }
    replica_deliver(r, to, &(struct key_item) {
        .kind = ITEM_PULLED, .origin = to, .op = read->op,
        .clock = r->slowest, .key = read->key, .offset = read->offset,
        .values = local_store_peek(&r->store->values, read->key),
    });
}

/* Answers those who waited for the clock. */
static void
answer_readers(struct replica *r)
{
    struct replica_reader **p = &r->readers;

    while (*p) {
        struct replica_reader *reader = *p;

        if (reader->item.clock <= r->slowest) {
            *p = reader->next;
            answer(r, reader->node, &reader->item);
            free(reader);
        } else {
            p = &reader->next;
        }
    }
}

static bool
take_read(struct replica *r, int from, const struct key_item *item)
{
    struct replica_reader *reader, **last = &r->readers;

    if (item->origin != from) {
        return false;
    }
    if (item->clock <= r->slowest) {
        answer(r, from, item);
        return true;
    }
    reader = allocate(1, sizeof *reader);
    reader->item = *item;
    reader->node = from;
    while (*last) {
        last = &(*last)->next;
    }
    *last = reader;
    return true;
}

static bool
take_flush(struct replica *r, int from, const struct key_item *item)
{
    uint64_t slowest = UINT64_MAX;

    if (item->clock < r->clocks[from]) {
        return false;
    }
    r->clocks[from] = item->clock;
    replica_say(r, from, ITEM_FLUSHED, item->op, 0);
    for (int i = 0; i < r->store->config.n_nodes; i++) {
        slowest = r->clocks[i] < slowest ? r->clocks[i] : slowest;
    }
    if (slowest > r->slowest) {
        r->slowest = slowest;
        if (r->pushes) {
            push_changes(r);
        }
        answer_readers(r);
    }
    return true;
}

void
replica_settled(struct replica *r)
{
    if (r->pushes) {
        push_changes(r);
    }
}

bool
replica_home_take(struct replica *r, int from, const struct key_item *item)
{
    if (item->kind == ITEM_FLUSH) {
        return take_flush(r, from, item);
    }
    if (replica_home(r, item->key) != r->store->config.rank) {
        return false;
    }
    if (item->kind == ITEM_READ) {
        return take_read(r, from, item);
    }
    local_store_add(&r->store->values, item->key, item->values);
    replica_note_change(r, item->key);
    return true;
}
