/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/keys/key-store-private.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/process/control.h"
#include "base/memory.h"
#include "trainer/keys/replica.h"
#include "trainer/process/report.h"

#define LOOK_US 100000          /* Between looks for signals. */

#define MAX_WORKERS (1 << 15)

static const char *const variants[] = {
    [KEY_CLASSIC] = "classic",
    [KEY_CLASSIC_LOCAL] = "classic-local",
    [KEY_LOCALIZE] = "localize",
    [KEY_SSP] = "ssp",
    [KEY_ESSP] = "essp",
};

const char *
key_variant_name(enum key_variant variant)
{
    return variants[variant];
}

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

void
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

void
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
    return store->ended;
}

static struct key_worker *
worker_of(struct key_store *store, uint64_t op)
{
    uint64_t i = op >> KEY_WORKER_SHIFT;

    return i < (uint64_t) store->config.n_workers ? &store->workers[i] : NULL;
}

/* After a failure nobody waits any more: where values went may be gone. */
bool
key_store_answer(struct key_store *store, const struct key_item *item)
{
    struct key_worker *worker = worker_of(store, item->op);
    key_handle handle = item->op & (((uint64_t) 1 << KEY_WORKER_SHIFT) - 1);
    struct key_op *op = worker ? key_op_of(worker, handle) : NULL;

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
    /* Only who has the lock counts down, so that this needs no more than to be
     * seen by the worker. */
    __atomic_store_n(&op->left, op->left - 1, __ATOMIC_RELEASE);
    if (!op->left) {
        peer_net_notify(store->net);
    }
    return true;
}

static void
answer(void *store_, const struct key_item *item)
{
    struct key_store *store = store_;

    if (!key_store_answer(store, item)) {
        key_store_fail(store, message("node %d was answered what it did not "
                                      "ask for", store->config.rank));
    }
}

static void
send(void *store, int to, const struct key_item *item)
{
    key_net_send(store, to, item);
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
    if (c->n_workers < 1 || c->n_workers >= MAX_WORKERS
        || c->staleness < 0) {
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

    if (posix_memalign((void **) &store->workers, 64, size)) {
        abort();
    }
    memset(store->workers, 0, size);
    for (int i = 0; i < store->config.n_workers; i++) {
        store->workers[i].store = store;
        store->workers[i].index = i;
    }
}

char *
key_store_create(const struct key_store_config *config,
                 struct key_store **storep)
{
    static const struct localize_class class = { send, answer };
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
    for (int i = 0; i < config->n_nodes; i++) {
        store->names[i] = duplicate(config->names[i]);
    }
    store->shared = variant == KEY_CLASSIC_LOCAL || variant == KEY_LOCALIZE;
    local_store_init(&store->values, config->ranges, config->n_ranges);
    local_store_set_workers(&store->values, config->n_workers);
    localize_init(&store->localize, &(struct localize_config) {
        .rank = config->rank, .n = config->n_nodes,
        .moves = variant == KEY_LOCALIZE, .shared = store->shared,
        .caches = config->caches && variant == KEY_LOCALIZE,
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
        if (store->ended) {
            peer_net_lock(store->net);
            key_barrier_bye(store);
            peer_net_unlock(store->net);
        }
        key_net_close(store);
        for (int i = 0; i < store->config.n_workers && store->workers; i++) {
            free(store->workers[i].rest);
        }
        free(store->workers);
        replica_destroy(store->replica);
        localize_uninit(&store->localize);
        local_store_uninit(&store->values);
        for (int i = 0; i < store->config.n_nodes; i++) {
            free((char *) store->names[i]);
        }
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
    *stats = (struct key_store_stats) {
        .sent = peer_net_sent(store->net),
        .received = peer_net_received(store->net),
        .moved = store->localize.n_landed,
    };
    for (int i = 0; i < store->config.n_workers; i++) {
        stats->local += store->workers[i].local;
        stats->remote += store->workers[i].remote;
    }
    peer_net_unlock(store->net);
}

void
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

bool
key_store_wait(struct key_worker *worker)
{
    struct key_store *store = worker->store;

    if (!store->error) {
        peer_net_wait(store->net, report_monotonic_us() + LOOK_US);
        key_store_look(worker);
    }
    return !store->error;
}
