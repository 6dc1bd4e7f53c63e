/* SPDX-License-Identifier: Apache-2.0 */

/* The waiting of all workers of all nodes for each other: the last one of a
 * node says so to rank 0, which counts nodes. */

#include "trainer/keys/key-store-private.h"

#include <stdlib.h>

#include "trainer/keys/replica.h"
#include "trainer/process/report.h"

#define BYE_US 1000000          /* For others to hear that we end. */

/* All are here. */
static void
release(struct key_store *store)
{
    store->barrier++;
    if (store->replica) {
        replica_settled(store->replica);
    }
    peer_net_notify(store->net);
}

/* At rank 0: one more node is at the barrier. */
static void
arrive(struct key_store *store)
{
    uint64_t barrier = store->barrier;

    if (++store->n_arrived == store->config.n_nodes) {
        store->n_arrived = 0;
        release(store);
        for (int i = 1; i < store->config.n_nodes; i++) {
            key_net_say(store, i, ITEM_RELEASED, barrier, 0);
        }
    }
}

bool
key_barrier_take(struct key_store *store, const struct key_item *item)
{
    if (item->op != store->barrier
        || (item->kind == ITEM_ARRIVED) != !store->config.rank) {
        return false;
    }
    if (item->kind == ITEM_ARRIVED) {
        arrive(store);
    } else {
        release(store);
    }
    return true;
}

static char *
barrier(struct key_worker *worker, bool finish)
{
    struct key_store *store = worker->store;
    uint64_t before;
    char *error = key_wait_all(worker);

    if (error) {
        return error;
    }
    peer_net_lock(store->net);
    key_store_look(worker);     /* Who is alone waits for nothing. */
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
            arrive(store);
        }
        key_net_wake(store);
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
    return barrier(worker, false);
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

void
key_barrier_bye(struct key_store *store)
{
    int64_t until_us = report_monotonic_us() + BYE_US;

    key_net_flush(store);
    while (store->backlog && report_monotonic_us() < until_us) {
        peer_net_wait(store->net, until_us);
    }
    peer_net_bye(store->net, until_us);
}

char *
key_finish(struct key_worker *worker)
{
    struct key_store *store = worker->store;
    char *error = barrier(worker, true);

    if (!error && !worker->index) {
        peer_net_lock(store->net);
        key_barrier_bye(store);
        peer_net_unlock(store->net);
    }
    return error;
}
