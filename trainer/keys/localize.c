/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/keys/localize.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/keys/local-store.h"

#define PUSHES 1024 /* At most, under one lock. */

static bool
is_home(const struct localize *l, uint64_t key)
{
    return localize_home(key, l->config.n) == l->config.rank;
}

static bool
is_here(const struct localize *l, uint64_t key)
{
    return local_store_peek(l->store, key) != NULL;
}

static void
send_item(struct localize *l, int to, const struct key_item *item)
{
    l->config.class->send(l->config.aux, to, item);
}

/* Sends 'item' as another kind. */
static void
send_kind(struct localize *l, int to, enum item_kind kind, int origin,
          uint64_t key, const float *values)
{
    send_item(l, to, &(struct key_item) {
        .kind = kind, .origin = origin, .key = key, .values = values,
    });
}

void
localize_init(struct localize *l, const struct localize_config *config,
              struct local_store *store)
{
    memset(l, 0, sizeof *l);
    l->config = *config;
    l->store = store;
    l->where = allocate(store->n_keys, sizeof *l->where);
    l->coming = allocate(store->n_keys, sizeof *l->coming);
    if (config->moves && !config->shared) {
        l->round = allocate(store->n_keys, sizeof *l->round);
    }
    for (uint64_t key = 0; key < store->n_keys; key++) {
        if (is_home(l, key)) {
            float *vector = local_store_vector(store, key);
            uint32_t width = local_store_width(store, key);

            memset(vector, 0, width * sizeof *vector);
            local_store_install(store, key, vector);
            l->where[key] = config->rank;
        }
    }
}

static void
free_waiters(struct localize_waiter *w)
{
    while (w) {
        struct localize_waiter *next = w->next;

        free(w);
        w = next;
    }
}

void
localize_uninit(struct localize *l)
{
    for (uint64_t key = 0; l->coming && key < l->store->n_keys; key++) {
        if (l->coming[key]) {
            free_waiters(l->coming[key]->first);
            free(l->coming[key]);
        }
    }
    while (l->free_coming) {
        struct localize_coming *next = l->free_coming->next_free;

        free(l->free_coming);
        l->free_coming = next;
    }
    free_waiters(l->free_waiters);
    free(l->where);
    free(l->round);
    free(l->coming);
}

/* Begins to queue accesses of 'key', which was requested. */
static void
begin_coming(struct localize *l, uint64_t key)
{
    struct localize_coming *coming = l->free_coming;

    if (coming) {
        l->free_coming = coming->next_free;
    } else {
        coming = allocate(1, sizeof *coming);
    }
    coming->first = NULL;
    coming->last = &coming->first;
    coming->next_owner = -1;
    l->coming[key] = coming;
}

static void
add_waiter(struct localize *l, const struct key_item *item)
{
    struct localize_coming *coming = l->coming[item->key];
    struct localize_waiter *w = l->free_waiters;

    if (w) {
        l->free_waiters = w->next;
    } else {
        w = allocate(1, sizeof *w);
    }
    w->item = *item;
    if (item->kind == ITEM_PUSH) {
        float *copy = local_store_vector(l->store, item->key);

        memcpy(copy, item->values,
               local_store_width(l->store, item->key) * sizeof *copy);
        w->item.values = copy;
    }
    w->next = NULL;
    *coming->last = w;
    coming->last = &w->next;
}

/* Ends the ITEM_LOCALIZE 'item'. */
static void
answer_landed(struct localize *l, const struct key_item *item)
{
    struct key_item landed = *item;

    landed.kind = ITEM_LANDED;
    l->config.class->answer(l->config.aux, &landed);
}

/* Sends the answer for 'n' keys to the origin of 'item'. */
static void
reply_to_origin(struct localize *l, const struct key_item *item, size_t n,
                const float *values)
{
    struct key_item answer = *item;

    answer.kind = item->kind == ITEM_PULL ? ITEM_PULLED : ITEM_PUSHED;
    answer.n_keys = n;
    answer.values = values;
    if (item->origin == l->config.rank && l->config.shared) {
        l->config.class->answer(l->config.aux, &answer);
    } else {
        send_item(l, item->origin, &answer);
    }
}

/* Executes an access of a key that is here. */
static void
perform_access(struct localize *l, const struct key_item *item)
{
    if (item->kind == ITEM_PUSH) {
        local_store_add(l->store, item->key, item->values);
        reply_to_origin(l, item, 1, NULL);
    } else {
        /* Locked, because workers may write it meanwhile. */
        reply_to_origin(l, item, 1, local_store_lock(l->store, item->key));
        local_store_unlock(l->store, item->key);
    }
}

/* Executes a queued access on 'vector', which is not visible to other threads
 * yet. */
static void
perform_waiter(struct localize *l, const struct localize_waiter *w,
               float *vector)
{
    const struct key_item *item = &w->item;

    if (item->kind == ITEM_LOCALIZE) {
        answer_landed(l, item);
        return;
    }
    if (item->kind == ITEM_PUSH) {
        local_store_sum(vector, item->values,
                        local_store_width(l->store, item->key));
        local_store_recycle(l->store, item->key, (float *) item->values);
    }
    reply_to_origin(l, item, 1, item->kind == ITEM_PULL ? vector : NULL);
}

static void
land(struct localize *l, const struct key_item *item)
{
    struct localize_coming *coming = l->coming[item->key];
    float *vector = local_store_vector(l->store, item->key);
    struct localize_waiter *w;

    memcpy(vector, item->values,
           local_store_width(l->store, item->key) * sizeof *vector);
    while ((w = coming->first)) {
        perform_waiter(l, w, vector);
        coming->first = w->next;
        w->next = l->free_waiters;
        l->free_waiters = w;
    }
    if (coming->next_owner < 0) {
        local_store_install(l->store, item->key, vector);
    } else {
        send_kind(l, coming->next_owner, ITEM_TRANSFER, coming->next_owner,
                  item->key, vector);
        local_store_recycle(l->store, item->key, vector);
    }
    l->n_landed++;
    l->coming[item->key] = NULL;
    coming->next_free = l->free_coming;
    l->free_coming = coming;
}

/* Transfers 'key' to 'to', now or when it has arrived. */
static bool
hand_over(struct localize *l, uint64_t key, int to)
{
    struct localize_coming *coming = l->coming[key];

    if (is_here(l, key)) {
        float *vector = local_store_remove(l->store, key);

        send_kind(l, to, ITEM_TRANSFER, to, key, vector);
        local_store_recycle(l->store, key, vector);
        return true;
    }
    if (!coming || coming->next_owner >= 0) {
        return false;
    }
    coming->next_owner = to;
    return true;
}

/* At the home: makes 'to' the owner. */
static bool
move_key(struct localize *l, uint64_t key, int to)
{
    int owner = l->where[key];

    if (owner == to) {
        return false;
    }
    l->where[key] = to;
    if (owner == l->config.rank) {
        return hand_over(l, key, to);
    }
    send_kind(l, owner, ITEM_HAND_OVER, to, key, NULL);
    return true;
}

static void
request(struct localize *l, const struct key_item *item)
{
    int home = localize_home(item->key, l->config.n);

    if (!l->config.moves || is_here(l, item->key)) {
        answer_landed(l, item);
    } else if (l->coming[item->key]) {
        add_waiter(l, item);
    } else {
        begin_coming(l, item->key);
        add_waiter(l, item);
        if (home == l->config.rank) {
            move_key(l, item->key, home);
        } else {
            send_kind(l, home, ITEM_LOCALIZE, l->config.rank, item->key, NULL);
        }
    }
}

/* Whether an access by this node is a message to itself.  If an earlier one of
 * the same key is on that way, this one must not overtake it. */
static bool
goes_round(const struct localize *l, uint64_t key)
{
    return !l->config.shared
           && (is_here(l, key) || (l->round && l->round[key]));
}

void
localize_access(struct localize *l, const struct key_item *item)
{
    int home = localize_home(item->key, l->config.n);

    if (item->kind == ITEM_LOCALIZE) {
        request(l, item);
    } else if (!l->config.moves
               && (!l->config.shared || home != l->config.rank)) {
        send_item(l, home, item);
    } else if (goes_round(l, item->key)) {
        if (l->round) {
            l->round[item->key]++;
        }
        send_item(l, l->config.rank, item);
    } else if (l->coming[item->key]) {
        add_waiter(l, item);
    } else if (is_here(l, item->key)) {
        perform_access(l, item);
    } else {
        send_item(l, home == l->config.rank ? l->where[item->key] : home,
                  item);
    }
}

bool
localize_take_pushes(struct localize *l, struct key_message *m,
                     const struct key_item *item)
{
    const uint32_t *records;
    size_t length, n;

    if (item->kind != ITEM_PUSH || l->round) {
        return false;
    }
    records = (const uint32_t *) item->values - 1;
    length = m->at - records;
    n = (m->end - records) / length;
    n = local_store_add_records(l->store,
                                local_store_range(l->store, item->key),
                                records, n < PUSHES ? n : PUSHES);
    if (n) {
        m->at = records + n * length;
        reply_to_origin(l, item, n, NULL);
    }
    return n;
}

/* An access by another node, or one of this node that comes back. */
static bool
take_access(struct localize *l, int from, const struct key_item *item)
{
    int home = localize_home(item->key, l->config.n);
    bool ours = from == l->config.rank && l->round && l->round[item->key];

    if (ours) {
        l->round[item->key]--;
    }
    if (l->coming[item->key]) {
        add_waiter(l, item);
    } else if (is_here(l, item->key)) {
        perform_access(l, item);
    } else if (home == l->config.rank) {
        send_item(l, l->where[item->key], item);
    } else if (ours) {
        send_item(l, home, item);
    } else {
        return false;
    }
    return true;
}

bool
localize_take(struct localize *l, int from, const struct key_item *item)
{
    int home = localize_home(item->key, l->config.n);
    int me = l->config.rank;

    switch (item->kind) {
    case ITEM_PULL:
    case ITEM_PUSH:
        return take_access(l, from, item);
    case ITEM_PULLED:
    case ITEM_PUSHED:
        if (item->origin != me) {
            return false;
        }
        l->config.class->answer(l->config.aux, item);
        return true;
    case ITEM_LOCALIZE:
        return l->config.moves && home == me && from != me
               && item->origin == from && move_key(l, item->key, from);
    case ITEM_HAND_OVER:
        return home == from && from != me && item->origin != me
               && hand_over(l, item->key, item->origin);
    case ITEM_TRANSFER:
        if (!l->coming[item->key]) {
            return false;
        }
        land(l, item);
        return true;
    default:
        return false;
    }
}
