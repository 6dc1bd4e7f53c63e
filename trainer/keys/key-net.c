/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/keys/key-store-private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/keys/replica.h"

#define BACKLOG_LOW ((size_t) 1 << 20)  /* Below, workers may send again. */

/* Sends a frame, or keeps it until there is room. */
static void
transmit(struct key_store *store, int to, struct frame *frame,
         const void *body)
{
    struct key_outbox *out = &store->outboxes[to];
    size_t length = frame->n * sizeof(float);
    struct key_backlog *waiting;

    if (!peer_net_present(store->net, to)) {
        return;                 /* Whoever waits for an answer is told why. */
    }
    if (!out->first && peer_net_has_room(store->net, to, frame->n)) {
        peer_net_send_copy(store->net, to, frame, body);
        return;
    }
    waiting = allocate(1, sizeof *waiting + length);
    waiting->frame = *frame;
    memcpy(waiting->body, body, length);
    *out->last = waiting;
    out->last = &waiting->next;
    __atomic_fetch_add(&store->backlog, length, __ATOMIC_RELAXED);
}

static void
close_message(struct key_store *store, int to)
{
    struct key_message *m = &store->outboxes[to].open;

    if (m->frame.samples != ITEM_N_KINDS) {
        transmit(store, to, &m->frame, m->body);
        key_message_begin(m, m->body);
    }
}

void
key_net_send(struct key_store *store, int to, const struct key_item *item)
{
    uint32_t width = item->values
                     ? local_store_width(&store->values, item->key) : 0;
    struct key_message *m = &store->outboxes[to].open;

    if (!key_message_add(m, item, width)) {
        close_message(store, to);
        key_message_add(m, item, width);
    }
}

void
key_net_say(struct key_store *store, int to, enum item_kind kind, uint64_t op,
            uint64_t clock)
{
    key_net_send(store, to, &(struct key_item) {
        .kind = kind, .origin = store->config.rank, .op = op, .clock = clock,
    });
}

void
key_net_wake(struct key_store *store)
{
    if (!store->woken) {
        store->woken = true;
        peer_net_wake(store->net);
    }
}

void
key_net_flush(struct key_store *store)
{
    for (int i = 0; i < store->config.n_nodes; i++) {
        close_message(store, i);
    }
}

static void
lose(struct key_store *store, int i, const char *why)
{
    key_store_fail(store, message("node %d (%s) %s", i,
                                  store->config.names[i], why));
}

static bool
take_item(struct key_store *store, int from, const struct key_item *item)
{
    if (item->kind == ITEM_ARRIVED || item->kind == ITEM_RELEASED) {
        return key_barrier_take(store, item);
    }
    if (item->kind == ITEM_LOST) {
        lose(store, item->origin, "died");
        return true;
    }
    return store->replica ? replica_take(store->replica, from, item)
                          : localize_take(&store->localize, from, item);
}

static bool
take(void *store_, int from, const struct frame *frame, const float *body)
{
    struct key_store *store = store_;
    struct key_message m;
    struct key_item item;

    key_message_open(&m, frame, body);
    while (key_message_next(&m, &store->values, store->config.n_nodes,
                            &item)) {
        m.wrong = !take_item(store, from, &item);
    }
    if (m.wrong) {
        lose(store, from, "sent what is not allowed");
    }
    return true;
}

/* Sends what waits for room, and what was gathered since the last turn: the
 * more there is to do, the more keys are in a message. */
static void
room(void *store_, int to)
{
    struct key_store *store = store_;
    struct key_outbox *out = &store->outboxes[to];
    struct key_backlog *waiting;

    store->woken = false;
    close_message(store, to);
    while ((waiting = out->first)
           && peer_net_has_room(store->net, to, waiting->frame.n)) {
        peer_net_send_copy(store->net, to, &waiting->frame, waiting->body);
        __atomic_fetch_sub(&store->backlog,
                           waiting->frame.n * sizeof(float),
                           __ATOMIC_RELAXED);
        out->first = waiting->next;
        out->last = out->first ? out->last : &out->first;
        free(waiting);
        if (store->backlog < BACKLOG_LOW) {
            peer_net_notify(store->net);
        }
    }
}

/* Tells the others: they might else hear first that this node ends. */
static void
tell_who_died(struct key_store *store, int i)
{
    for (int to = 0; to < store->config.n_nodes; to++) {
        if (to != store->config.rank && to != i) {
            key_net_send(store, to, &(struct key_item) {
                .kind = ITEM_LOST, .origin = i,
            });
        }
    }
}

static void
gone(void *store_, int i, bool died)
{
    struct key_store *store = store_;

    if (i == store->config.rank || (!died && store->finishing)) {
        return;
    }
    if (died && !store->error) {
        tell_who_died(store, i);
    }
    if (died) {
        lose(store, i, "died");
    } else {
        key_store_end(store, message("node %d (%s) has ended", i,
                                     store->config.names[i]));
    }
}

static uint64_t
mix(uint64_t sum, uint64_t x)
{
    x = (sum ^ x) * 0x9e3779b97f4a7c15;
    return x ^ x >> 29;
}

/* Of all that nodes must agree in and that has no member of a hello. */
static uint64_t
identity(const struct key_store_config *c)
{
    uint64_t sum = mix(c->identity, c->staleness * 2 + c->caches);

    for (int i = 0; i < c->n_ranges; i++) {
        sum = mix(mix(sum, c->ranges[i].n), c->ranges[i].width);
    }
    return sum;
}

char *
key_net_open(struct key_store *store)
{
    static const struct peer_net_class class = { take, room, gone };
    const struct key_store_config *c = &store->config;
    char *error;

    for (int i = 0; i < c->n_nodes; i++) {
        struct key_outbox *out = &store->outboxes[i];

        key_message_begin(&out->open, allocate(1, FRAME_MAX_UPDATE));
        out->last = &out->first;
    }
    error = peer_net_create(&(struct peer_net_config) {
        .rank = c->rank, .n = c->n_nodes, .names = c->names,
        .address = c->address, .port = c->port, .congestion = c->congestion,
        .connect_us = c->connect_us, .deadline_us = c->deadline_us,
        .control = c->control,
        .loop = c->variant == KEY_CLASSIC,
        .hello = {
            .rank = c->rank, .n_workers = c->n_nodes, .n_shards = c->n_nodes,
            .seed = identity(c), .key_space = store->values.n_keys,
            .width = 1 + c->variant, .channel = FRAME_NODES,
        },
    }, &store->net);
    return error ? error : peer_net_start(store->net, &class, store);
}

void
key_net_close(struct key_store *store)
{
    peer_net_destroy(store->net);
    for (int i = 0; i < store->config.n_nodes; i++) {
        struct key_outbox *out = &store->outboxes[i];

        while (out->first) {
            struct key_backlog *next = out->first->next;

            free(out->first);
            out->first = next;
        }
        free(out->open.body);
    }
}
