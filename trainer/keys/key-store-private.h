/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_KEY_STORE_PRIVATE_H
#define PS_KEY_STORE_PRIVATE_H 1

/* The key store as replica.c, whose functions key-store.c calls, sees it.
 *
 * One lock, that of the network, guards all but what workers find in memory,
 * which the locks of local-store.h do.  It is taken first. */

#include "trainer/keys/key-item.h"
#include "trainer/keys/key-outbox.h"
#include "trainer/keys/key-store.h"
#include "trainer/keys/local-store.h"
#include "trainer/keys/localize.h"
#include "trainer/net/mesh.h"

#define KEY_STORE_OPS 1024      /* Of a worker, at a time: a power of 2. */

/* An operation is told to others by its worker and its handle. */
#define KEY_WORKER_SHIFT 48

struct replica;

struct key_op {
    uint64_t handle;            /* 0: none yet. */
    uint32_t left;              /* Keys to be answered; atomic. */
    uint32_t n_values;
    float *values;              /* Of a pull. */
};

struct key_worker {
    struct key_store *store;
    int index;
    key_handle last;
    struct key_op ops[KEY_STORE_OPS];
    struct key_item *rest;      /* Of a call, what is not in memory. */
    size_t n_rest, max_rest;
    uint64_t local, remote;     /* For statistics. */
    uint64_t clock;             /* Of replica.h; with the lock. */
} __attribute__((aligned(64)));

struct key_store {
    struct key_store_config config;     /* Names are in 'names'. */
    const char *names[KEY_STORE_MAX_NODES];
    struct local_store values;
    struct localize localize;
    struct replica *replica;    /* Of KEY_SSP and KEY_ESSP, else NULL. */
    bool shared;                /* Workers use 'values' in place. */
    struct key_worker *workers;
    struct peer_net *net;

    struct key_outbox outbox;
    char *error;                /* First failure. */
    bool failed;                /* Likewise; atomic. */
    bool finishing;             /* Nodes may end. */
    bool ended;                 /* The failure: a node was told to stop. */

    uint64_t barrier;           /* Those that are over. */
    int n_here, n_arrived;      /* Workers at this node, nodes at rank 0. */
};

/* Answers a worker's operation for one key.  False if there is no such
 * operation. */
bool key_store_answer(struct key_store *, const struct key_item *);

/* Waits for a change.  False after a failure. */
bool key_store_wait(struct key_worker *);

#endif /* trainer/keys/key-store-private.h */
