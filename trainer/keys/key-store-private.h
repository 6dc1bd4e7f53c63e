/* SPDX-License-Identifier: Apache-2.0 */

#ifndef KEY_STORE_PRIVATE_H
#define KEY_STORE_PRIVATE_H 1

/* The members of a key store, for key-store.c and replica.c.
 *
 * The lock of the mesh guards everything but vectors in memory, which have the
 * locks of local-store.h; it is taken before those. */

#include "trainer/keys/key-message.h"
#include "trainer/keys/key-store.h"
#include "trainer/keys/local-store.h"
#include "trainer/keys/localize.h"
#include "trainer/net/mesh.h"

#define KEY_STORE_OPS 1024      /* Per worker, at a time; a power of 2. */

/* Keys of a call that are looked up before some are sent. */
#define KEY_STORE_BLOCK 512

/* An operation is known to other nodes by its worker, from this bit on, and
 * its handle. */
#define KEY_WORKER_SHIFT 48

struct replica;

struct key_op {
    uint64_t handle;            /* 0: none yet. */
    uint32_t left;              /* Keys without an answer; atomic. */
    uint32_t n_values;
    float *values;              /* Of a pull; NULL: of a push or localize. */
};

/* A key of a call that is not in memory. */
struct key_rest {
    uint64_t key;
    uint32_t offset; /* Of its values in those of the call. */
};

struct key_worker {
    struct key_store *store;
    int index;
    key_handle last;
    struct key_op ops[KEY_STORE_OPS];
    struct key_rest rest[KEY_STORE_BLOCK];
    uint64_t local, remote;     /* Accesses: see key_store_stats. */
    uint64_t clock;             /* Of replica.h; with the lock. */
} __attribute__((aligned(64)));

struct key_store {
    struct key_store_config config;     /* Names are in 'names'. */
    const char *names[KEY_STORE_MAX_NODES];
    struct local_store values;
    struct localize localize;
    struct replica *replica;    /* Of KEY_SSP and KEY_ESSP, else NULL. */
    bool shared;                /* Workers access 'values' in place. */
    struct key_worker *workers;
    struct peer_net *net;

    struct key_outbox outbox;
    char *error;                /* First failure, or NULL. */
    bool failed;                /* 'error' is not NULL; atomic. */
    bool finishing;             /* Nodes may end. */
    bool ended;                 /* 'error' is a stop of a node. */

    uint64_t barrier;           /* Number of barriers that are over. */
    int n_here;                 /* Workers of this node at the next one. */
    int n_arrived;              /* At rank 0: nodes at the next one. */
};

/* Answers a worker's operation for one key.  False if there is no such
 * operation. */
bool key_store_answer(struct key_store *, const struct key_item *);

/* Waits for a change.  False after a failure. */
bool key_store_wait(struct key_worker *);

#endif /* trainer/keys/key-store-private.h */
