/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_REPLICA_PRIVATE_H
#define PS_REPLICA_PRIVATE_H 1

/* What replica.c, which is a node's copies, and replica-home.c, which keeps
 * what they are copies of, share. */

#include "trainer/keys/key-store-private.h"
#include "trainer/keys/replica.h"

#define NO_KEY UINT64_MAX

/* A node's copy, which the lock of its stripe guards. */
struct replica_row {
    uint64_t clock;             /* Of ssp: the home's when it was sent. */
    uint64_t barrier;           /* Of ssp: the barrier after which it was. */
    uint64_t flush;             /* The flush in which 'sent' is. */
    uint64_t next_dirty;        /* The next key, if 'dirty', or NO_KEY. */
    bool cached;                /* It has come at least once. */
    bool dirty;                 /* 'pending' is not 0. */
    float *sent;                /* Flushed last; behind 'seen'. */
    float *pending;             /* Not flushed yet; behind that. */
    float seen[];               /* What workers see. */
};

/* A ITEM_PULL that its home cannot answer yet. */
struct replica_reader {
    struct replica_reader *next;
    struct key_item item;
    int node;
};

struct replica {
    struct key_store *store;
    bool pushes;                /* essp. */

    /* As a node. */
    struct replica_row **rows;
    uint64_t dirty[LOCAL_STORE_STRIPES];        /* First keys, or NO_KEY. */
    uint64_t clock;             /* Of the last flush. */
    uint64_t flush;             /* Its number, */
    int n_unmade;               /* and homes that have not made it. */
    uint64_t made[KEY_STORE_MAX_NODES]; /* Last flush that each home made. */
    uint64_t home_clocks[KEY_STORE_MAX_NODES];  /* Of essp; atomic. */
    uint64_t home_barriers[KEY_STORE_MAX_NODES];        /* Likewise. */

    /* As a home. */
    uint64_t clocks[KEY_STORE_MAX_NODES];       /* Of all nodes, */
    uint64_t slowest;           /* and the least of them. */
    struct replica_reader *readers;     /* In the order in which they came. */
    uint32_t *subscribers;      /* Of essp: a bit for each node. */
    uint8_t *changed;           /* Whether a key is among the next. */
    uint64_t *changes;          /* Keys to be sent when the clock moves. */
    size_t n_changes;
};

static inline int
replica_home(const struct replica *r, uint64_t key)
{
    return localize_home(key, r->store->config.n_nodes);
}

static inline uint32_t
replica_width(const struct replica *r, uint64_t key)
{
    return local_store_width(&r->store->values, key);
}

static inline void
replica_add(float *to, const float *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        to[i] += from[i];
    }
}

/* Sends an item, or takes it if it is for this node. */
void replica_deliver(struct replica *, int to, const struct key_item *);
void replica_say(struct replica *, int to, enum item_kind, uint64_t op,
                 uint64_t clock);

void replica_home_init(struct replica *);
void replica_home_uninit(struct replica *);
bool replica_home_take(struct replica *, int from, const struct key_item *);

/* The home's values of 'key' are others now. */
void replica_note_change(struct replica *, uint64_t key);

#endif /* trainer/keys/replica-private.h */
