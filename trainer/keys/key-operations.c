/* SPDX-License-Identifier: Apache-2.0 */

/* What a worker does with keys: in memory where it can, and the rest of a call
 * as one operation, which the protocol's answers end. */

#include "trainer/keys/key-store-private.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "trainer/keys/replica.h"

#define BACKLOG_HIGH ((size_t) 1 << 24) /* Bytes; above, workers wait. */

static bool
is_done(struct key_worker *worker, key_handle handle)
{
    const struct key_op *op = key_op_of(worker, handle);

    return op->handle != handle || !handle
           || !__atomic_load_n(&op->left, __ATOMIC_ACQUIRE);
}

bool
key_is_done(struct key_worker *worker, key_handle handle)
{
    return is_done(worker, handle);
}

/* Without the lock. */
static void
wait_for(struct key_worker *worker, key_handle handle)
{
    if (!is_done(worker, handle)) {
        peer_net_lock(worker->store->net);
        while (!is_done(worker, handle) && key_store_wait(worker)) {
            continue;
        }
        peer_net_unlock(worker->store->net);
    }
}

static char *
failure(struct key_worker *worker)
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
    wait_for(worker, handle);
    return failure(worker);
}

char *
key_wait_all(struct key_worker *worker)
{
    key_handle first = worker->last < KEY_STORE_OPS
                       ? 1 : worker->last - KEY_STORE_OPS + 1;

    for (key_handle handle = first; handle <= worker->last; handle++) {
        wait_for(worker, handle);
    }
    return failure(worker);
}

/* Begins an operation that 'n' answers end. */
static key_handle
begin(struct key_worker *worker, size_t n, float *values, size_t n_values)
{
    struct key_op *op = key_op_of(worker, ++worker->last);

    wait_for(worker, op->handle);
    op->handle = worker->last;
    op->values = values;
    op->n_values = n_values;
    __atomic_store_n(&op->left, n, __ATOMIC_RELEASE);
    return op->handle;
}

/* Lets others send before we add to what waits. */
static void
wait_for_room(struct key_worker *worker)
{
    struct key_store *store = worker->store;

    if (__atomic_load_n(&store->backlog, __ATOMIC_RELAXED) > BACKLOG_HIGH) {
        peer_net_lock(store->net);
        while (store->backlog > BACKLOG_HIGH / 2 && key_store_wait(worker)) {
            continue;
        }
        peer_net_unlock(store->net);
    }
}

/* Keeps what is not in memory for issue(). */
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

/* Gives the rest to the protocol, as one operation. */
static key_handle
issue(struct key_worker *worker, float *values, size_t n_values)
{
    struct key_store *store = worker->store;
    key_handle handle;

    if (!worker->n_rest) {
        return 0;
    }
    wait_for_room(worker);
    handle = begin(worker, worker->n_rest, values, n_values);
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
    key_net_wake(store);
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
    return issue(worker, NULL, 0);
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
    return issue(worker, values, offset);
}

key_handle
key_localize(struct key_worker *worker, const uint64_t keys[], size_t n)
{
    struct key_store *store = worker->store;

    for (size_t i = 0; i < n && store->localize.config.moves; i++) {
        if (!local_store_peek(&store->values, keys[i])) {
            add_rest(worker, &(struct key_item) {
                .kind = ITEM_LOCALIZE, .origin = store->config.rank,
                .key = keys[i],
            });
        }
    }
    return issue(worker, NULL, 0);
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
    return worker->store->shared
           && local_store_peek(&worker->store->values, key);
}
