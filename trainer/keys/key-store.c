/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/keys/key-store-private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/keys/replica.h"
#include "trainer/net/token.h"
#include "trainer/process/control.h"

#define BYE_US 1000000          /* Time limit for the other nodes to say
                                 * bye. */
#define BACKLOG_HIGH ((size_t) 1 << 24) /* Bytes; above, workers wait. */
#define LOOK_US 100000          /* Longest time between checks of the
                                 * control. */
#define MAX_WORKERS (1 << 15)

_Static_assert(KEY_STORE_MAX_NODES == PEER_NET_MAX,
               "a store takes as many nodes as a mesh");

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
    uint32_t n = item->kind == ITEM_PUSHED ? item->n_keys : 1;

    if (store->error) {
        return true;
    }
    if (!op || op->handle != handle || !n || op->left < n
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
    __atomic_store_n(&op->left, op->left - n, __ATOMIC_RELEASE);
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
            key_store_end(worker->store, message("stopped by a request"));
        }
    }
}

bool
key_store_wait(struct key_worker *worker)
{
    struct key_store *store = worker->store;

    if (!store->error) {
        peer_net_wait(store->net, clock_monotonic_us() + LOOK_US);
        key_store_look(worker);
    }
    return !store->error;
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
        m.wrong = (store->replica
                   || !localize_take_pushes(&store->localize, &m, &item))
                  && !take_item(store, from, &item);
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
    uint64_t sum = mix_hash(c->identity, c->staleness);

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
        .control = c->control, .listening = c->listening,
        .loop = c->variant == KEY_CLASSIC
                || c->variant == KEY_LOCALIZE_MESSAGES,
        .hello = {
            .rank = c->rank, .n_workers = c->n_nodes, .n_shards = c->n_nodes,
            .identity = hash_identity(c), .n_keys = store->values.n_keys,
            .scheme = c->variant, .channel = FRAME_NODES,
        },
    }, &store->net);
    store->outbox.net = store->net;
    return error ? error : peer_net_start(store->net, &class, store);
}

static char *
check_config(const struct key_store_config *c)
{
    uint64_t n_keys = 0;

    if (c->n_nodes < 1 || c->n_nodes > KEY_STORE_MAX_NODES || c->rank < 0
        || c->rank >= c->n_nodes) {
        return message("nodes: rank %d of %d; expected at most %d", c->rank,
                       c->n_nodes, KEY_STORE_MAX_NODES);
    }
    if (c->n_ranges < 1 || c->n_ranges > LOCAL_STORE_MAX_RANGES) {
        return message("keys: %d ranges; expected 1 to %d", c->n_ranges,
                       LOCAL_STORE_MAX_RANGES);
    }
    for (int i = 0; i < c->n_ranges; i++) {
        if (c->ranges[i].width < 1
            || c->ranges[i].width > KEY_STORE_MAX_WIDTH) {
            return message("keys: %u values each; expected 1 to %d",
                           c->ranges[i].width, KEY_STORE_MAX_WIDTH);
        }
        n_keys += c->ranges[i].n < UINT32_MAX ? c->ranges[i].n : UINT32_MAX;
    }
    if (n_keys > UINT32_MAX) {
        return message("keys: %llu; expected at most %u",
                       (unsigned long long) n_keys, UINT32_MAX);
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
    if (!error && !config->control) {
        error = token_load(NULL); /* Others have loaded theirs. */
    }
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
    localize_init(&store->localize,
                  &(struct localize_config){
                      .rank = config->rank,
                      .n = config->n_nodes,
                      .moves = key_variant_moves(variant),
                      .shared = store->shared,
                      .class = &class,
                      .aux = store,
                  },
                  &store->values);
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
    return i >= 0 && i < store->config.n_workers ? &store->workers[i] : NULL;
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

/* Operations of workers. */

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
static struct key_op *
begin_op(struct key_worker *worker, size_t n, float *values)
{
    struct key_op *op = key_op_of(worker, ++worker->last);

    wait_for_op(worker, op->handle);
    op->handle = worker->last;
    op->values = values;
    __atomic_store_n(&op->left, n, __ATOMIC_RELEASE);
    return op;
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

static void
refuse_key(struct key_store *store, uint64_t key)
{
    key_store_abort(store,
                    message("key: %llu; expected at most %llu",
                            (unsigned long long) key,
                            (unsigned long long) store->values.n_keys - 1));
}

/* Executes the access of a key, if that needs no message. */
static inline __attribute__((always_inline)) bool
access_here(struct key_worker *worker, enum item_kind kind, uint64_t key,
            float *values, size_t offset)
{
    struct key_store *store = worker->store;

    if (kind == ITEM_LOCALIZE) {
        return !store->localize.config.moves
               || local_store_peek(&store->values, key);
    }
    values += offset;
    if (store->replica && kind == ITEM_PUSH) {
        replica_push(store->replica, key, values);
        return true;
    }
    if (store->replica) {
        return replica_pull(store->replica, worker, key, values);
    }
    return store->shared && localize_may_be_here(&store->localize, key)
           && (kind == ITEM_PULL
                   ? local_store_copy(&store->values, key, values)
                   : local_store_add(&store->values, key, values));
}

/* Gives the keys in 'rest' to the protocol. */
static inline __attribute__((always_inline)) void
issue_rest(struct key_worker *worker, struct key_item *item, size_t n,
           float *values)
{
    struct key_store *store = worker->store;

    for (size_t i = 0; i < n && !store->error; i++) {
        item->key = worker->rest[i].key;
        item->offset = worker->rest[i].offset;
        item->values = item->kind == ITEM_PUSH ? values + item->offset : NULL;
        if (store->replica) {
            replica_read(store->replica, worker, item);
        } else if (store->localize.config.moves) {
            localize_access(&store->localize, item);
        } else {
            key_outbox_append(&store->outbox,
                              localize_home(item->key, store->config.n_nodes),
                              item);
        }
    }
}

/* Accesses keys.  Those in memory are accessed at once, the others become one
 * operation, which the protocol's answers end: a block of them at a time, so
 * that they are on their way while the next are looked up.  If nothing else
 * is on its way the first block is sent at once, and then whenever there are
 * twice as many.  Inlined for each kind. */
static inline __attribute__((always_inline)) key_handle
access_keys(struct key_worker *worker, enum item_kind kind,
            const uint64_t keys[], size_t n, float *values)
{
    struct key_store *store = worker->store;
    bool alone = key_is_done(worker, worker->last);
    struct key_item item = { .kind = kind, .origin = store->config.rank };
    struct key_op *op = NULL;
    size_t offset = 0, n_issued = 0, flush_at = 1;

    for (size_t i = 0; i < n;) {
        size_t n_here = 0, n_rest = 0;

        for (; i < n && n_rest < KEY_STORE_BLOCK; i++) {
            if (keys[i] >= store->values.n_keys) {
                refuse_key(store, keys[i]);
                return 0;
            }
            if (access_here(worker, kind, keys[i], values, offset)) {
                n_here++;
            } else {
                worker->rest[n_rest++] = (struct key_rest){ keys[i], offset };
            }
            offset += local_store_width(&store->values, keys[i]);
        }
        assert(offset <= UINT32_MAX);
        worker->local += kind == ITEM_LOCALIZE ? 0 : n_here;
        worker->remote += n_rest;
        if (!op && n_rest) {
            n_here = 0;
            op = begin_op(worker, n_rest + n - i,
                          kind == ITEM_PULL ? values : NULL);
            item.op =
                (uint64_t) worker->index << KEY_WORKER_SHIFT | op->handle;
        }
        if (op) {
            wait_for_backlog(worker);
            peer_net_lock(store->net);
            op->n_values = offset;
            __atomic_store_n(&op->left, op->left - n_here, __ATOMIC_RELEASE);
            issue_rest(worker, &item, n_rest, values);
            n_issued += n_rest;
            if (alone && (i == n || n_issued >= flush_at)) {
                key_outbox_flush(&store->outbox);
                flush_at = 2 * n_issued;
            } else if (i == n) {
                key_outbox_wake(&store->outbox);
            }
            peer_net_unlock(store->net);
        }
    }
    return op ? op->handle : 0;
}

key_handle
key_push(struct key_worker *worker, const uint64_t keys[], size_t n,
         const float *values)
{
    return access_keys(worker, ITEM_PUSH, keys, n, (float *) values);
}

key_handle
key_pull(struct key_worker *worker, const uint64_t keys[], size_t n,
         float *values)
{
    return access_keys(worker, ITEM_PULL, keys, n, values);
}

key_handle
key_localize(struct key_worker *worker, const uint64_t keys[], size_t n)
{
    return access_keys(worker, ITEM_LOCALIZE, keys, n, NULL);
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
           && key < store->values.n_keys
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
