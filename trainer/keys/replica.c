/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/keys/replica.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/keys/key-store-private.h"

#define NO_KEY UINT64_MAX

/* A set of nodes: a bit for each. */
struct node_set {
    uint64_t bits[(KEY_STORE_MAX_NODES + 63) / 64];
};

/* A node's copy of a row, guarded by the lock of its key. */
struct replica_row {
    uint64_t clock;             /* ssp: clock of the home when it sent the
                                 * row. */
    uint64_t barrier;           /* ssp: number of barriers before that. */
    uint64_t flush;             /* Number of the flush that contains 'sent'. */
    uint64_t next_dirty;        /* Next dirty key, or NO_KEY. */
    bool cached;                /* The row has arrived at least once. */
    bool dirty;                 /* 'pending' is not 0. */
    float *sent;                /* Deltas of the last flush; memory after
                                 * 'seen'. */
    float *pending;             /* Deltas not flushed yet; memory after
                                 * 'sent'. */
    float seen[];               /* Values for the workers. */
};

/* An ITEM_READ that the home cannot answer yet. */
struct replica_reader {
    struct replica_reader *next;
    struct key_item item;
    int node;
};

struct replica {
    struct key_store *store;
    bool pushes;                /* The variant is essp. */

    /* As a node. */
    struct replica_row **rows;
    uint64_t dirty;             /* First dirty key, or NO_KEY; atomic. */
    uint64_t clock;             /* Of the last flush. */
    uint64_t flush;             /* Number of the last flush. */
    int n_unmade;               /* Homes that have not applied it. */
    uint64_t made[KEY_STORE_MAX_NODES]; /* Last flush that each home has
                                         * applied. */
    uint64_t home_clocks[KEY_STORE_MAX_NODES];  /* essp: last ITEM_CLOCK;
                                                 * atomic. */
    uint64_t home_barriers[KEY_STORE_MAX_NODES];        /* essp: barriers
                                                         * before that;
                                                         * atomic. */

    /* As a home. */
    uint64_t clocks[KEY_STORE_MAX_NODES];       /* Of each node's last
                                                 * flush. */
    uint64_t slowest;           /* The least of 'clocks'. */
    struct replica_reader *readers;     /* In the order of arrival. */
    struct node_set *subscribers;       /* essp: per key, the nodes that get
                                         * its changes. */
    uint8_t *changed;           /* Per key: it is in 'changes'. */
    uint64_t *changes;          /* Keys to send when the clock advances. */
    size_t n_changes;
};

static bool
node_set_has(const struct node_set *set, int i)
{
    return set->bits[i / 64] >> i % 64 & 1;
}

static void
node_set_add(struct node_set *set, int i)
{
    set->bits[i / 64] |= (uint64_t) 1 << i % 64;
}

static bool
node_set_is_empty(const struct node_set *set)
{
    uint64_t any = 0;

    for (size_t i = 0; i < sizeof set->bits / sizeof set->bits[0]; i++) {
        any |= set->bits[i];
    }
    return !any;
}

static int
replica_home(const struct replica *r, uint64_t key)
{
    return localize_home(key, r->store->config.n_nodes);
}

static uint32_t
replica_width(const struct replica *r, uint64_t key)
{
    return local_store_width(&r->store->values, key);
}

/* Sends an item, or takes it if it is for this node. */
static void
replica_deliver(struct replica *r, int to, const struct key_item *item)
{
    if (to == r->store->config.rank) {
        replica_take(r, to, item);
    } else {
        key_outbox_send(&r->store->outbox, to, item);
    }
}

static void
replica_say(struct replica *r, int to, enum item_kind kind, uint64_t op,
            uint64_t clock)
{
    replica_deliver(r, to, &(struct key_item) {
        .kind = kind, .origin = r->store->config.rank, .op = op, .clock = clock
    });
}

/* The home's values of 'key' have changed. */
static void
replica_note_change(struct replica *r, uint64_t key)
{
    if (r->pushes && !node_set_is_empty(&r->subscribers[key])
        && !r->changed[key]) {
        r->changed[key] = true;
        r->changes[r->n_changes++] = key;
    }
}

/* Sends the changed rows to their subscribers, then the clock to all. */
static void
push_changes(struct replica *r)
{
    int n = r->store->config.n_nodes;

    for (size_t i = 0; i < r->n_changes; i++) {
        uint64_t key = r->changes[i];

        r->changed[key] = false;
        for (int to = 0; to < n; to++) {
            if (node_set_has(&r->subscribers[key], to)) {
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
answer_reader(struct replica *r, int to, const struct key_item *read)
{
    if (r->pushes) {
        node_set_add(&r->subscribers[read->key], to);
    }
    replica_deliver(r, to, &(struct key_item) {
        .kind = ITEM_PULLED, .origin = to, .op = read->op,
        .clock = r->slowest, .key = read->key, .offset = read->offset,
        .values = local_store_peek(&r->store->values, read->key),
    });
}

/* Answers the readers that waited for the clock. */
static void
answer_readers(struct replica *r)
{
    struct replica_reader **p = &r->readers;

    while (*p) {
        struct replica_reader *reader = *p;

        if (reader->item.clock <= r->slowest) {
            *p = reader->next;
            answer_reader(r, reader->node, &reader->item);
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
        answer_reader(r, from, item);
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

struct replica *
replica_create(struct key_store *store)
{
    struct replica *r = allocate(1, sizeof *r);
    uint64_t n = store->values.n_keys;

    r->store = store;
    r->pushes = store->config.variant == KEY_ESSP;
    r->rows = allocate(n, sizeof *r->rows);
    r->dirty = NO_KEY;
    if (r->pushes) {
        r->subscribers = allocate(n, sizeof *r->subscribers);
        r->changed = allocate(n, sizeof *r->changed);
        r->changes = allocate(n, sizeof *r->changes);
    }
    return r;
}

void
replica_destroy(struct replica *r)
{
    if (!r) {
        return;
    }
    for (uint64_t key = 0; key < r->store->values.n_keys; key++) {
        free(r->rows[key]);
    }
    while (r->readers) {
        struct replica_reader *next = r->readers->next;

        free(r->readers);
        r->readers = next;
    }
    free(r->subscribers);
    free(r->changed);
    free(r->changes);
    free(r->rows);
    free(r);
}

/* Locks and returns the row of 'key'; creates it if necessary. */
static struct replica_row *
lock_row(struct replica *r, uint64_t key)
{
    struct replica_row *row;

    local_store_lock_key(&r->store->values, key);
    row = r->rows[key];
    if (!row) {
        uint32_t width = replica_width(r, key);

        row = allocate(1, sizeof *row + 3 * width * sizeof(float));
        row->sent = row->seen + width;
        row->pending = row->sent + width;
        r->rows[key] = row;
    }
    return row;
}

static void
unlock_row(struct replica *r, uint64_t key)
{
    local_store_unlock(&r->store->values, key);
}

void
replica_push(struct replica *r, uint64_t key, const float *deltas)
{
    struct replica_row *row = lock_row(r, key);
    uint32_t width = replica_width(r, key);

    local_store_sum(row->seen, deltas, width);
    local_store_sum(row->pending, deltas, width);
    if (!row->dirty) {
        row->dirty = true;
        row->next_dirty = __atomic_load_n(&r->dirty, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&r->dirty, &row->next_dirty, key,
                                            true, __ATOMIC_RELEASE,
                                            __ATOMIC_RELAXED)) {
            continue;
        }
    }
    unlock_row(r, key);
}

/* essp: whether the clock of home 'h' is new enough for 'worker'. */
static bool
home_is_there(const struct replica *r, const struct key_worker *worker, int h)
{
    return __atomic_load_n(&r->home_clocks[h], __ATOMIC_ACQUIRE)
           + r->store->config.staleness >= worker->clock
           && __atomic_load_n(&r->home_barriers[h], __ATOMIC_ACQUIRE)
              >= r->store->barrier;
}

static bool
is_fresh(const struct replica *r, const struct key_worker *worker,
         const struct replica_row *row)
{
    return row->cached
           && (r->pushes
               || (row->barrier >= r->store->barrier
                   && row->clock + r->store->config.staleness
                      >= worker->clock));
}

bool
replica_pull(struct replica *r, struct key_worker *worker, uint64_t key,
             float *values)
{
    int home = replica_home(r, key);
    struct replica_row *row;
    bool fresh;

    if (r->pushes && !home_is_there(r, worker, home)) {
        peer_net_lock(r->store->net);
        while (!home_is_there(r, worker, home) && key_store_wait(worker)) {
            continue;
        }
        peer_net_unlock(r->store->net);
    }
    row = lock_row(r, key);
    fresh = is_fresh(r, worker, row);
    if (fresh) {
        memcpy(values, row->seen, replica_width(r, key) * sizeof *values);
    }
    unlock_row(r, key);
    return fresh;
}

void
replica_read(struct replica *r, struct key_worker *worker,
             const struct key_item *item)
{
    struct key_item read = *item;
    uint64_t staleness = r->store->config.staleness;

    read.kind = ITEM_READ;
    read.clock = worker->clock > staleness ? worker->clock - staleness : 0;
    replica_deliver(r, replica_home(r, item->key), &read);
}

/* Sends the pending deltas of 'key' to its home.  Its row is locked. */
static void
flush_row(struct replica *r, uint64_t key, struct replica_row *row)
{
    uint32_t width = replica_width(r, key);
    int home = replica_home(r, key);

    memcpy(row->sent, row->pending, width * sizeof *row->sent);
    memset(row->pending, 0, width * sizeof *row->pending);
    row->flush = r->flush;
    row->dirty = false;
    if (home != r->store->config.rank) {
        key_outbox_send(&r->store->outbox, home, &(struct key_item) {
            .kind = ITEM_DELTA, .origin = r->store->config.rank,
            .op = r->flush, .key = key, .values = row->sent,
        });
        return;
    }
    local_store_sum(local_store_peek(&r->store->values, key), row->sent,
                    width);
    replica_note_change(r, key);
}

/* Flushes all dirty rows, and sends 'clock' to all homes. */
static void
flush_rows(struct replica *r, uint64_t clock)
{
    uint64_t key;

    r->flush++;
    r->clock = clock;
    r->n_unmade = r->store->config.n_nodes;
    key = __atomic_exchange_n(&r->dirty, NO_KEY, __ATOMIC_ACQUIRE);
    while (key != NO_KEY) {
        struct replica_row *row = lock_row(r, key);
        uint64_t next = row->next_dirty;

        flush_row(r, key, row);
        unlock_row(r, key);
        key = next;
    }
    for (int i = 0; i < r->store->config.n_nodes; i++) {
        replica_say(r, i, ITEM_FLUSH, r->flush, clock);
    }
    key_outbox_wake(&r->store->outbox);
}

static uint64_t
slowest_worker(const struct replica *r)
{
    uint64_t clock = UINT64_MAX;

    for (int i = 0; i < r->store->config.n_workers; i++) {
        const struct key_worker *worker = &r->store->workers[i];

        clock = worker->clock < clock ? worker->clock : clock;
    }
    return clock;
}

void
replica_clock(struct replica *r, struct key_worker *worker)
{
    worker->clock++;
    while (slowest_worker(r) > r->clock) {
        if (!r->n_unmade) {
            flush_rows(r, slowest_worker(r));
        } else if (!key_store_wait(worker)) {
            return;
        }
    }
}

void
replica_settle(struct replica *r, struct key_worker *worker)
{
    while (r->n_unmade && key_store_wait(worker)) {
        continue;
    }
    flush_rows(r, r->clock);
    while (r->n_unmade && key_store_wait(worker)) {
        continue;
    }
}

/* Stores new values of its home in the row of a key, and locks it. */
static struct replica_row *
lock_new_row(struct replica *r, int from, const struct key_item *item,
             uint64_t barrier)
{
    struct replica_row *row = lock_row(r, item->key);
    uint32_t width = replica_width(r, item->key);

    memcpy(row->seen, item->values, width * sizeof *row->seen);
    if (row->flush > r->made[from]) {
        local_store_sum(row->seen, row->sent, width);
    }
    if (row->dirty) {
        local_store_sum(row->seen, row->pending, width);
    }
    row->clock = item->clock;
    row->barrier = barrier;
    row->cached = true;
    return row;
}

/* The row for an operation of this node. */
static bool
take_pulled(struct replica *r, int from, const struct key_item *item)
{
    struct key_item answer = *item;
    bool ok;

    answer.values = lock_new_row(r, from, item, r->store->barrier)->seen;
    ok = key_store_answer(r->store, &answer);
    unlock_row(r, item->key);
    return ok;
}

static bool
take_made(struct replica *r, int from, const struct key_item *item)
{
    if (item->op != r->flush || r->made[from] == r->flush) {
        return false;
    }
    r->made[from] = r->flush;
    if (!--r->n_unmade) {
        peer_net_notify(r->store->net);
    }
    return true;
}

static bool
take_clock(struct replica *r, int from, const struct key_item *item)
{
    __atomic_store_n(&r->home_clocks[from], item->clock, __ATOMIC_RELEASE);
    __atomic_store_n(&r->home_barriers[from], item->op, __ATOMIC_RELEASE);
    peer_net_notify(r->store->net);
    return true;
}

bool
replica_take(struct replica *r, int from, const struct key_item *item)
{
    int home = item->kind < ITEM_FLUSH ? replica_home(r, item->key) : from;
    int me = r->store->config.rank;

    switch (item->kind) {
    case ITEM_READ:
        return home == me && take_read(r, from, item);
    case ITEM_DELTA:
        if (home != me) {
            return false;
        }
        local_store_add(&r->store->values, item->key, item->values);
        replica_note_change(r, item->key);
        return true;
    case ITEM_FLUSH:
        return take_flush(r, from, item);
    case ITEM_PULLED:
        return home == from && take_pulled(r, from, item);
    case ITEM_ROW:
        if (home != from || !r->pushes) {
            return false;
        }
        lock_new_row(r, from, item, item->op);
        unlock_row(r, item->key);
        return true;
    case ITEM_FLUSHED:
        return take_made(r, from, item);
    case ITEM_CLOCK:
        return r->pushes && take_clock(r, from, item);
    default:
        return false;
    }
}
