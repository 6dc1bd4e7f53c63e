/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/keys/key-store-private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/process/control.h"

#define BYE_US 1000000          /* Time limit for the other nodes to say
                                 * bye. */
#define BACKLOG_HIGH ((size_t) 1 << 24) /* Bytes; above, workers wait. */
#define LOOK_US 100000          /* Longest time between checks of the
                                 * control. */
#define MAX_WORKERS (1 << 15)
#define NO_KEY UINT64_MAX

static const char *const variants[] = {
    [KEY_CLASSIC] = "classic",   [KEY_CLASSIC_LOCAL] = "classic-local",
    [KEY_LOCALIZE] = "localize", [KEY_SSP] = "ssp",
    [KEY_ESSP] = "essp",         [KEY_LOCALIZE_MESSAGES] = "localize-messages"
};

bool
key_variant_find(const char *name, enum key_variant *variantp)
{
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        if (!strcmp(name, variants[i])) {
            *variantp = i;
            return true;
        }
    }
    return false;
}

bool
key_variant_moves(enum key_variant variant)
{
    return variant == KEY_LOCALIZE || variant == KEY_LOCALIZE_MESSAGES;
}

static void
key_store_fail(struct key_store *store, char *error)
{
    if (store->error) {
        free(error);
    } else {
        store->error = error;
        __atomic_store_n(&store->failed, true, __ATOMIC_RELEASE);
    }
    if (store->net) {
        peer_net_notify(store->net);
    }
}

static void
key_store_end(struct key_store *store, char *error)
{
    store->ended = store->ended || !store->error;
    key_store_fail(store, error);
}

void
key_store_abort(struct key_store *store, char *error)
{
    peer_net_lock(store->net);
    key_store_fail(store, error);
    peer_net_unlock(store->net);
}

bool
key_store_ended(struct key_store *store)
{
    bool ended;

    peer_net_lock(store->net);
    ended = store->ended;
    peer_net_unlock(store->net);
    return ended;
}

static struct key_op *
key_op_of(struct key_worker *worker, key_handle handle)
{
    return &worker->ops[handle % KEY_STORE_OPS];
}

/* After a failure values are not written: the worker no longer waits, and
 * their memory may be freed. */
bool
key_store_answer(struct key_store *store, const struct key_item *item)
{
    uint64_t i = item->op >> KEY_WORKER_SHIFT;
    key_handle handle = item->op & (((uint64_t) 1 << KEY_WORKER_SHIFT) - 1);
    struct key_op *op = i < (uint64_t) store->config.n_workers
                        ? key_op_of(&store->workers[i], handle) : NULL;

    if (store->error) {
        return true;
    }
    if (!op || op->handle != handle || !op->left
        || (item->kind == ITEM_PULLED) != (op->values != NULL)) {
        return false;
    }
    if (op->values) {
        uint32_t width = local_store_width(&store->values, item->key);

        if (item->offset > op->n_values
            || op->n_values - item->offset < width) {
            return false;
        }
        memcpy(op->values + item->offset, item->values,
               width * sizeof *op->values);
    }
    /* Only the holder of the lock writes it; the worker reads it without. */
    __atomic_store_n(&op->left, op->left - 1, __ATOMIC_RELEASE);
    if (!op->left) {
        peer_net_notify(store->net);
    }
    return true;
}

static void
answer_item(void *store_, const struct key_item *item)
{
    struct key_store *store = store_;

    if (!key_store_answer(store, item)) {
        key_store_fail(store, message("node %d: received a reply without an "
                                      "outstanding request",
                                      store->config.rank));
    }
}

static void
send_item(void *store_, int to, const struct key_item *item)
{
    struct key_store *store = store_;

    key_outbox_send(&store->outbox, to, item);
}

static void
key_store_look(struct key_worker *worker)
{
    struct control *control = worker->store->config.control;

    if (!worker->index && control) {
        control_run(control);
        if (control_stopped(control)) {
            key_store_end(worker->store, message("told to stop"));
        }
    }
}

/* Waits for a change.  False after a failure. */
static bool
key_store_wait(struct key_worker *worker)
{
    struct key_store *store = worker->store;

    if (!store->error) {
        peer_net_wait(store->net, clock_monotonic_us() + LOOK_US);
        key_store_look(worker);
    }
    return !store->error;
}

/* Bounded staleness: copies of rows at each node, and the clocks of homes.
 *
 * Keys stay at their homes, and nodes work on copies.  A push is added to the
 * node's copy at once, gathered per key, and sent when the slowest worker of
 * the node begins its next clock: a flush.  Homes apply flushes and know the
 * clock that all nodes have reached.  A worker at clock c needs rows that
 * include all clocks before c - staleness:
 *
 *    ssp     a row has the clock at which its home sent it; if it is too old
 *            the node asks again, and the home answers when its clock is there
 *    essp    a node that has asked for a row once gets it again whenever the
 *            home's clock advances and the row has changed, and then the
 *            clock, which is valid for all rows of the home
 *
 * A node always sees its own pushes.  A row that arrives includes the node's
 * flushes up to the home's last ITEM_FLUSHED, since messages stay in order; to
 * these the node adds the one flush that may be under way, and what it has not
 * flushed yet.  A flush waits for the previous one, so that there is one at
 * most.
 *
 * A barrier flushes; rows from before it are not used after it.
 *
 * replica_push() and replica_pull() lock a row; all others require the lock of
 * the key store. */

/* A set of nodes: a bit for each. */
struct node_set {
    uint64_t bits[(KEY_STORE_MAX_NODES + 63) / 64];
};

/* A node's copy of a row, guarded by the lock of its stripe. */
struct replica_row {
    uint64_t clock;      /* ssp: clock of the home when it sent the
                          * row. */
    uint64_t barrier;    /* ssp: number of barriers before that. */
    uint64_t flush;      /* Number of the flush that contains 'sent'. */
    uint64_t next_dirty; /* Next dirty key of the stripe, or NO_KEY. */
    bool cached;         /* The row has arrived at least once. */
    bool dirty;          /* 'pending' is not 0. */
    float *sent;         /* Deltas of the last flush; memory after
                          * 'seen'. */
    float *pending;      /* Deltas not flushed yet; memory after
                          * 'sent'. */
    float seen[];        /* Values for the workers. */
};

/* An ITEM_READ that the home cannot answer yet. */
struct replica_reader {
    struct replica_reader *next;
    struct key_item item;
    int node;
};

struct replica {
    struct key_store *store;
    bool pushes; /* The variant is essp. */

    /* As a node. */
    struct replica_row **rows;
    uint64_t dirty[LOCAL_STORE_STRIPES]; /* Per stripe: its first dirty
                                          * key, or NO_KEY. */
    uint64_t clock;                      /* Of the last flush. */
    uint64_t flush;                      /* Number of the last flush. */
    int n_unmade;                        /* Homes that have not applied it. */
    uint64_t made[KEY_STORE_MAX_NODES];  /* Last flush that each home has
                                          * applied. */
    uint64_t home_clocks[KEY_STORE_MAX_NODES];   /* essp: last ITEM_CLOCK;
                                                  * atomic. */
    uint64_t home_barriers[KEY_STORE_MAX_NODES]; /* essp: barriers
                                                  * before that;
                                                  * atomic. */

    /* As a home. */
    uint64_t clocks[KEY_STORE_MAX_NODES]; /* Of each node's last
                                           * flush. */
    uint64_t slowest;                     /* The least of 'clocks'. */
    struct replica_reader *readers;       /* In the order of arrival. */
    struct node_set *subscribers;         /* essp: per key, the nodes that get
                                           * its changes. */
    uint8_t *changed;                     /* Per key: it is in 'changes'. */
    uint64_t *changes; /* Keys to send when the clock advances. */
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

static bool replica_take(struct replica *, int from, const struct key_item *);

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
    replica_deliver(r, to,
                    &(struct key_item){ .kind = kind,
                                        .origin = r->store->config.rank,
                                        .op = op,
                                        .clock = clock });
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
                replica_deliver(
                    r, to,
                    &(struct key_item){
                        .kind = ITEM_ROW,
                        .origin = r->store->config.rank,
                        .op = r->store->barrier,
                        .clock = r->slowest,
                        .key = key,
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
    replica_deliver(
        r, to,
        &(struct key_item){
            .kind = ITEM_PULLED,
            .origin = to,
            .op = read->op,
            .clock = r->slowest,
            .key = read->key,
            .offset = read->offset,
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

/* After a barrier. */
static void
replica_settled(struct replica *r)
{
    if (r->pushes) {
        push_changes(r);
    }
}

static struct replica *
replica_create(struct key_store *store)
{
    struct replica *r = allocate(1, sizeof *r);
    uint64_t n = store->values.n_keys;

    r->store = store;
    r->pushes = store->config.variant == KEY_ESSP;
    r->rows = allocate(n, sizeof *r->rows);
    for (int i = 0; i < LOCAL_STORE_STRIPES; i++) {
        r->dirty[i] = NO_KEY;
    }
    if (r->pushes) {
        r->subscribers = allocate(n, sizeof *r->subscribers);
        r->changed = allocate(n, sizeof *r->changed);
        r->changes = allocate(n, sizeof *r->changes);
    }
    return r;
}

static void
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

    local_store_lock_stripe(&r->store->values, key);
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

static void
replica_push(struct replica *r, uint64_t key, const float *deltas)
{
    struct replica_row *row = lock_row(r, key);
    uint32_t width = replica_width(r, key);

    local_store_sum(row->seen, deltas, width);
    local_store_sum(row->pending, deltas, width);
    if (!row->dirty) {
        uint64_t *first = &r->dirty[local_store_stripe(key)];

        row->dirty = true;
        row->next_dirty = *first;
        *first = key;
    }
    unlock_row(r, key);
}

/* essp: whether the clock of home 'h' is new enough for 'worker'. */
static bool
home_is_there(const struct replica *r, const struct key_worker *worker, int h)
{
    return __atomic_load_n(&r->home_clocks[h], __ATOMIC_ACQUIRE)
                   + r->store->config.staleness
               >= worker->clock
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

/* Returns false if the row must be requested.  Under essp waits while the
 * home's clock is behind. */
static bool
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

/* Requests the row of 'item', an ITEM_PULL. */
static void
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
        key_outbox_send(&r->store->outbox, home,
                        &(struct key_item){
                            .kind = ITEM_DELTA,
                            .origin = r->store->config.rank,
                            .op = r->flush,
                            .key = key,
                            .values = row->sent,
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
    r->flush++;
    r->clock = clock;
    r->n_unmade = r->store->config.n_nodes;
    for (int i = 0; i < LOCAL_STORE_STRIPES; i++) {
        struct local_store *values = &r->store->values;
        pthread_mutex_t *mutex = &values->stripes[i & values->mask].mutex;

        pthread_mutex_lock(mutex);
        for (uint64_t key = r->dirty[i]; key != NO_KEY;
             key = r->rows[key]->next_dirty) {
            flush_row(r, key, r->rows[key]);
        }
        r->dirty[i] = NO_KEY;
        pthread_mutex_unlock(mutex);
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

/* Begins the next clock of the worker.  Waits for the previous flush. */
static void
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

/* Before a barrier: flushes, and waits until the homes have applied it. */
static void
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

/* Returns false for a message that node 'from' must not send. */
static bool
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

static void
key_net_say(struct key_store *store, int to, enum item_kind kind, uint64_t op,
            uint64_t clock)
{
    key_outbox_send(&store->outbox, to, &(struct key_item) {
        .kind = kind, .origin = store->config.rank, .op = op, .clock = clock,
    });
}

/* Ends the barrier of this node. */
static void
end_barrier(struct key_store *store)
{
    store->barrier++;
    if (store->replica) {
        replica_settled(store->replica);
    }
    peer_net_notify(store->net);
}

/* At rank 0: one more node is at the barrier. */
static void
arrive_node(struct key_store *store)
{
    uint64_t barrier = store->barrier;

    if (++store->n_arrived == store->config.n_nodes) {
        store->n_arrived = 0;
        end_barrier(store);
        for (int i = 1; i < store->config.n_nodes; i++) {
            key_net_say(store, i, ITEM_RELEASED, barrier, 0);
        }
    }
}

static bool
key_barrier_take(struct key_store *store, const struct key_item *item)
{
    if (item->op != store->barrier
        || (item->kind == ITEM_ARRIVED) != !store->config.rank) {
        return false;
    }
    if (item->kind == ITEM_ARRIVED) {
        arrive_node(store);
    } else {
        end_barrier(store);
    }
    return true;
}

static void
key_barrier_bye(struct key_store *store)
{
    int64_t until_us = clock_monotonic_us() + BYE_US;

    key_outbox_flush(&store->outbox);
    while (store->outbox.backlog && clock_monotonic_us() < until_us) {
        peer_net_wait(store->net, until_us);
    }
    peer_net_bye(store->net, until_us);
}

static void
fail_by_node(struct key_store *store, int i, const char *why)
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
        fail_by_node(store, item->origin, "died");
        return true;
    }
    return store->replica ? replica_take(store->replica, from, item)
                          : localize_take(&store->localize, from, item);
}

static bool
take_message(void *store_, int from, const struct frame *frame,
             const float *body)
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
        fail_by_node(store, from, "sent what is not allowed");
    }
    return true;
}

static void
on_writable(void *store_, int to)
{
    struct key_store *store = store_;

    key_outbox_on_writable(&store->outbox, to);
}

/* Reports the dead node to the others, before they see this node end. */
static void
tell_who_died(struct key_store *store, int i)
{
    for (int to = 0; to < store->config.n_nodes; to++) {
        if (to != store->config.rank && to != i) {
            key_outbox_send(&store->outbox, to, &(struct key_item) {
                .kind = ITEM_LOST, .origin = i,
            });
        }
    }
}

static void
lose_node(void *store_, int i, bool died)
{
    struct key_store *store = store_;

    if (i == store->config.rank || (!died && store->finishing)) {
        return;
    }
    if (died && !store->error) {
        tell_who_died(store, i);
    }
    if (died) {
        fail_by_node(store, i, "died");
    } else {
        key_store_end(store, message("node %d (%s) has ended", i,
                                     store->config.names[i]));
    }
}

static uint64_t
mix_hash(uint64_t sum, uint64_t x)
{
    x = (sum ^ x) * 0x9e3779b97f4a7c15;
    return x ^ x >> 29;
}

/* Returns a hash of what nodes must agree in and the hello has no member
 * for. */
static uint64_t
hash_identity(const struct key_store_config *c)
{
    uint64_t sum = mix_hash(c->identity, c->staleness * 2 + c->caches);

    for (int i = 0; i < c->n_ranges; i++) {
        sum = mix_hash(mix_hash(sum, c->ranges[i].n), c->ranges[i].width);
    }
    return sum;
}

static char *
key_net_open(struct key_store *store)
{
    static const struct peer_net_class class = { take_message, on_writable,
                                                 lose_node };
    const struct key_store_config *c = &store->config;
    char *error;

    key_outbox_init(&store->outbox, &store->values, c->n_nodes);
    error = peer_net_create(&(struct peer_net_config) {
        .rank = c->rank, .n = c->n_nodes, .names = c->names,
        .address = c->address, .port = c->port, .congestion = c->congestion,
        .connect_us = c->connect_us,
        .heartbeat_timeout_us = c->heartbeat_timeout_us,
        .control = c->control,
        .loop = c->variant == KEY_CLASSIC
                || c->variant == KEY_LOCALIZE_MESSAGES,
        .hello = {
            .rank = c->rank, .n_workers = c->n_nodes, .n_shards = c->n_nodes,
            .identity = hash_identity(c), .key_space = store->values.n_keys,
            .scheme = c->variant, .channel = FRAME_NODES,
        },
    }, &store->net);
    store->outbox.net = store->net;
    return error ? error : peer_net_start(store->net, &class, store);
}

static char *
check_config(const struct key_store_config *c)
{
    if (c->n_nodes < 1 || c->n_nodes > KEY_STORE_MAX_NODES || c->rank < 0
        || c->rank >= c->n_nodes) {
        return message("nodes: rank %d of %d, at most %d are allowed",
                       c->rank, c->n_nodes, KEY_STORE_MAX_NODES);
    }
    if (c->n_ranges < 1 || c->n_ranges > LOCAL_STORE_MAX_RANGES) {
        return message("keys: %d ranges, 1 to %d are allowed", c->n_ranges,
                       LOCAL_STORE_MAX_RANGES);
    }
    for (int i = 0; i < c->n_ranges; i++) {
        if (c->ranges[i].width < 1
            || c->ranges[i].width > KEY_STORE_MAX_WIDTH) {
            return message("keys: %u values each, 1 to %d are allowed",
                           c->ranges[i].width, KEY_STORE_MAX_WIDTH);
        }
    }
    if (c->n_workers < 1 || c->n_workers >= MAX_WORKERS || c->staleness < 0) {
        return message("workers: %d with a staleness of %d: not allowed",
                       c->n_workers, c->staleness);
    }
    return NULL;
}

static void
init_values(struct key_store *store)
{
    const struct key_store_config *c = &store->config;

    for (uint64_t key = 0; c->init && key < store->values.n_keys; key++) {
        if (local_store_peek(&store->values, key)) {
            c->init(c->aux, key, local_store_peek(&store->values, key));
        }
    }
}

static void
init_workers(struct key_store *store)
{
    size_t size = store->config.n_workers * sizeof *store->workers;

    store->workers = memset(allocate_lines(size), 0, size);
    for (int i = 0; i < store->config.n_workers; i++) {
        store->workers[i].store = store;
        store->workers[i].index = i;
    }
}

char *
key_store_create(const struct key_store_config *config,
                 struct key_store **storep)
{
    static const struct localize_class class = { send_item, answer_item };
    enum key_variant variant = config->variant;
    struct key_store *store;
    char *error = check_config(config);

    *storep = NULL;
    if (error) {
        return error;
    }
    store = *storep = allocate(1, sizeof *store);
    store->config = *config;
    store->config.names = store->names;
    memcpy(store->names, config->names,
           config->n_nodes * sizeof *store->names);
    store->shared = variant == KEY_CLASSIC_LOCAL || variant == KEY_LOCALIZE;
    local_store_init(&store->values, config->ranges, config->n_ranges,
                     config->n_workers);
    localize_init(&store->localize, &(struct localize_config) {
        .rank = config->rank, .n = config->n_nodes,
        .moves = key_variant_moves(variant), .shared = store->shared,
        .caches = config->caches && key_variant_moves(variant),
        .class = &class, .aux = store,
    }, &store->values);
    if (variant == KEY_SSP || variant == KEY_ESSP) {
        store->replica = replica_create(store);
    }
    init_values(store);
    init_workers(store);
    error = key_net_open(store);
    if (error) {
        key_store_destroy(store);
        *storep = NULL;
    }
    return error;
}

void
key_store_destroy(struct key_store *store)
{
    if (store) {
        if (store->net) {
            peer_net_lock(store->net);
            if (store->ended) {
                key_barrier_bye(store);
            }
            peer_net_unlock(store->net);
        }
        peer_net_destroy(store->net);
        key_outbox_uninit(&store->outbox);
        for (int i = 0; i < store->config.n_workers && store->workers; i++) {
            free(store->workers[i].rest);
        }
        free(store->workers);
        replica_destroy(store->replica);
        localize_uninit(&store->localize);
        local_store_uninit(&store->values);
        free(store->error);
        free(store);
    }
}

struct key_worker *
key_store_worker(struct key_store *store, int i)
{
    return &store->workers[i];
}

void
key_store_stats(struct key_store *store, struct key_store_stats *stats)
{
    peer_net_lock(store->net);
    *stats = (struct key_store_stats){ .moved = store->localize.n_landed };
    peer_net_bytes(store->net, &stats->sent, &stats->received);
    for (int i = 0; i < store->config.n_workers; i++) {
        stats->local += store->workers[i].local;
        stats->remote += store->workers[i].remote;
    }
    peer_net_unlock(store->net);
}

/* Operations of workers.  Keys in memory are accessed at once; the other keys
 * of a call become one operation, which the protocol's answers end. */

bool
key_is_done(struct key_worker *worker, key_handle handle)
{
    const struct key_op *op = key_op_of(worker, handle);

    return op->handle != handle || !handle
           || !__atomic_load_n(&op->left, __ATOMIC_ACQUIRE);
}

/* Waits until the operation is done.  Called without the lock. */
static void
wait_for_op(struct key_worker *worker, key_handle handle)
{
    if (!key_is_done(worker, handle)) {
        peer_net_lock(worker->store->net);
        while (!key_is_done(worker, handle) && key_store_wait(worker)) {
            continue;
        }
        peer_net_unlock(worker->store->net);
    }
}

static char *
copy_failure(struct key_worker *worker)
{
    struct key_store *store = worker->store;
    char *error = NULL;

    if (__atomic_load_n(&store->failed, __ATOMIC_ACQUIRE)) {
        peer_net_lock(store->net);
        error = duplicate(store->error);
        peer_net_unlock(store->net);
    }
    return error;
}

char *
key_wait(struct key_worker *worker, key_handle handle)
{
    wait_for_op(worker, handle);
    return copy_failure(worker);
}

char *
key_wait_all(struct key_worker *worker)
{
    key_handle first = worker->last < KEY_STORE_OPS
                       ? 1 : worker->last - KEY_STORE_OPS + 1;

    for (key_handle handle = first; handle <= worker->last; handle++) {
        wait_for_op(worker, handle);
    }
    return copy_failure(worker);
}

/* Begins an operation that 'n' answers end. */
static key_handle
begin_op(struct key_worker *worker, size_t n, float *values, size_t n_values)
{
    struct key_op *op = key_op_of(worker, ++worker->last);

    wait_for_op(worker, op->handle);
    op->handle = worker->last;
    op->values = values;
    op->n_values = n_values;
    __atomic_store_n(&op->left, n, __ATOMIC_RELEASE);
    return op->handle;
}

/* Waits while the backlog is large. */
static void
wait_for_backlog(struct key_worker *worker)
{
    struct key_store *store = worker->store;

    if (__atomic_load_n(&store->outbox.backlog, __ATOMIC_RELAXED)
        > BACKLOG_HIGH) {
        peer_net_lock(store->net);
        while (store->outbox.backlog > BACKLOG_HIGH / 2
               && key_store_wait(worker)) {
            continue;
        }
        peer_net_unlock(store->net);
    }
}

/* Keeps a key that is not in memory for issue_rest(). */
static void
add_rest(struct key_worker *worker, const struct key_item *item)
{
    if (worker->n_rest == worker->max_rest) {
        worker->max_rest = worker->max_rest ? 2 * worker->max_rest : 64;
        worker->rest = reallocate(worker->rest, worker->max_rest,
                                  sizeof *worker->rest);
    }
    worker->rest[worker->n_rest++] = *item;
}

/* Gives the rest of the keys to the protocol, as one operation. */
static key_handle
issue_rest(struct key_worker *worker, float *values, size_t n_values)
{
    struct key_store *store = worker->store;
    key_handle handle;

    if (!worker->n_rest) {
        return 0;
    }
    wait_for_backlog(worker);
    handle = begin_op(worker, worker->n_rest, values, n_values);
    worker->remote += worker->n_rest;
    peer_net_lock(store->net);
    for (size_t i = 0; i < worker->n_rest && !store->error; i++) {
        struct key_item *item = &worker->rest[i];

        item->op = (uint64_t) worker->index << KEY_WORKER_SHIFT | handle;
        if (store->replica) {
            replica_read(store->replica, worker, item);
        } else {
            localize_access(&store->localize, item);
        }
    }
    key_outbox_wake(&store->outbox);
    peer_net_unlock(store->net);
    worker->n_rest = 0;
    return handle;
}

key_handle
key_push(struct key_worker *worker, const uint64_t keys[], size_t n,
         const float *values)
{
    struct key_store *store = worker->store;

    for (size_t i = 0; i < n; i++) {
        uint32_t width = local_store_width(&store->values, keys[i]);

        if (store->replica) {
            replica_push(store->replica, keys[i], values);
            worker->local++;
        } else if (store->shared && local_store_add(&store->values, keys[i],
                                                    values)) {
            worker->local++;
        } else {
            add_rest(worker, &(struct key_item) {
                .kind = ITEM_PUSH, .origin = store->config.rank,
                .key = keys[i], .values = values,
            });
        }
        values += width;
    }
    return issue_rest(worker, NULL, 0);
}

key_handle
key_pull(struct key_worker *worker, const uint64_t keys[], size_t n,
         float *values)
{
    struct key_store *store = worker->store;
    size_t offset = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t key = keys[i];
        float *to = values + offset;

        if (store->replica ? replica_pull(store->replica, worker, key, to)
            : store->shared && local_store_copy(&store->values, key, to)) {
            worker->local++;
        } else {
            add_rest(worker, &(struct key_item) {
                .kind = ITEM_PULL, .origin = store->config.rank, .key = key,
                .offset = offset,
            });
        }
        offset += local_store_width(&store->values, key);
    }
    assert(offset <= UINT32_MAX);
    return issue_rest(worker, values, offset);
}

key_handle
key_localize(struct key_worker *worker, const uint64_t keys[], size_t n)
{
    struct key_store *store = worker->store;

    for (size_t i = 0; i < n && store->localize.config.moves; i++) {
        if (!local_store_peek(&store->values, keys[i])) {
            add_rest(worker, &(struct key_item){ .kind = ITEM_LOCALIZE,
                                                 .origin = store->config.rank,
                                                 .key = keys[i] });
        }
    }
    return issue_rest(worker, NULL, 0);
}

bool
key_borrow(struct key_worker *worker, const uint64_t keys[], size_t n,
           float *vectors[])
{
    struct key_store *store = worker->store;
    bool here = store->shared && local_store_lock_all(&store->values, keys,
                                                      n, vectors);

    worker->local += here ? n : 0;
    return here;
}

void
key_return(struct key_worker *worker, const uint64_t keys[], size_t n)
{
    local_store_unlock_all(&worker->store->values, keys, n);
}

bool
key_is_here(const struct key_worker *worker, uint64_t key)
{
    const struct key_store *store = worker->store;

    return (store->shared || store->localize.config.moves)
           && local_store_peek(&store->values, key);
}

static char *
wait_at_barrier(struct key_worker *worker, bool finish)
{
    struct key_store *store = worker->store;
    uint64_t before;
    char *error = key_wait_all(worker);

    if (error) {
        return error;
    }
    peer_net_lock(store->net);
    key_store_look(worker);     /* A single worker does not wait below. */
    before = store->barrier;
    if (++store->n_here == store->config.n_workers) {
        store->n_here = 0;
        if (store->replica) {
            replica_settle(store->replica, worker);
        }
        store->finishing = finish;
        if (store->config.rank) {
            key_net_say(store, 0, ITEM_ARRIVED, before, 0);
        } else {
            arrive_node(store);
        }
        key_outbox_wake(&store->outbox);
    }
    while (store->barrier == before && key_store_wait(worker)) {
        continue;
    }
    peer_net_unlock(store->net);
    return key_wait(worker, 0);
}

char *
key_barrier(struct key_worker *worker)
{
    return wait_at_barrier(worker, false);
}

char *
key_clock(struct key_worker *worker)
{
    struct key_store *store = worker->store;

    if (store->replica) {
        peer_net_lock(store->net);
        replica_clock(store->replica, worker);
        peer_net_unlock(store->net);
    }
    return key_wait(worker, 0);
}

char *
key_finish(struct key_worker *worker)
{
    struct key_store *store = worker->store;
    char *error = wait_at_barrier(worker, true);

    if (!error && !worker->index) {
        peer_net_lock(store->net);
        key_barrier_bye(store);
        peer_net_unlock(store->net);
    }
    return error;
}
