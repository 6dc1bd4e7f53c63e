/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_KEY_STORE_PRIVATE_H
#define PS_KEY_STORE_PRIVATE_H 1

/* What the files of the key store share: key-store.c, which makes it;
 * key-operations.c, what workers do; key-barrier.c, the waiting of all for
 * all; key-net.c, its messages; and replica.c.
 *
 * One lock, that of the network, guards all but what workers find in memory,
 * which the locks of local-store.h do.  It is taken first. */

#include "trainer/keys/key-item.h"
#include "trainer/keys/key-message.h"
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

/* A frame that waits for room. */
struct key_backlog {
    struct key_backlog *next;
    struct frame frame;
    float body[];
};

/* To one node. */
struct key_outbox {
    struct key_message open;    /* Gathers items. */
    struct key_backlog *first, **last;
};

struct key_store {
    struct key_store_config config;     /* Names are in 'names'. */
    const char *names[KEY_STORE_MAX_NODES];
    struct local_store values;
    struct localize localize;
    struct replica *replica;    /* Of KEY_SSP and KEY_ESSP, else NULL. */
    bool shared;                /* Workers use 'values' in place. */
    struct key_worker *workers;
    struct peer_net *net;

    struct key_outbox outboxes[KEY_STORE_MAX_NODES];
    size_t backlog;             /* Bytes in all outboxes; atomic. */
    bool woken;                 /* The network's thread will have a turn. */

    char *error;                /* First failure. */
    bool failed;                /* Likewise; atomic. */
    bool finishing;             /* Nodes may end. */
    bool ended;                 /* The failure: a node was told to stop. */

    uint64_t barrier;           /* Those that are over. */
    int n_here, n_arrived;      /* Workers at this node, nodes at rank 0. */
};

static inline struct key_op *
key_op_of(struct key_worker *worker, key_handle handle)
{
    return &worker->ops[handle % KEY_STORE_OPS];
}

/* key-store.c. */

/* Takes 'error' for the first failure. */
void key_store_fail(struct key_store *, char *error);

/* Likewise, but as the end of a training that was told to end. */
void key_store_end(struct key_store *, char *error);

/* An operation of this node is done for a key.  False if there is none. */
bool key_store_answer(struct key_store *, const struct key_item *);

/* One worker of a node looks for signals. */
void key_store_look(struct key_worker *);

/* Waits for a change.  False after a failure. */
bool key_store_wait(struct key_worker *);

/* key-barrier.c. */
bool key_barrier_take(struct key_store *, const struct key_item *);

/* Says bye to all, and waits a little until they have closed their ends: what
 * is closed before that may take the last message with it. */
void key_barrier_bye(struct key_store *);

/* key-net.c. */
char *key_net_open(struct key_store *);
void key_net_close(struct key_store *);

/* Queues an item.  It is sent in the next turn of the network's thread, which
 * a worker makes sure of by key_net_wake(); or by key_net_flush(), at once if
 * there is room. */
void key_net_send(struct key_store *, int to, const struct key_item *);
void key_net_wake(struct key_store *);
void key_net_flush(struct key_store *);

/* Sends an item without a key. */
void key_net_say(struct key_store *, int to, enum item_kind, uint64_t op,
                 uint64_t clock);

#endif /* trainer/keys/key-store-private.h */
