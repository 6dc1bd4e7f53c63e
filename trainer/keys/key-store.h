/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_KEY_STORE_H
#define PS_KEY_STORE_H 1

/* Vectors of keys, shared by nodes that each hold a part of them.
 *
 *
 * Motivation
 * ==========
 *
 * A parameter server answers each access by a message, also where one worker
 * alone uses a parameter for a while, as it does in matrix factorisation, with
 * embeddings of a graph, with vectors of words.  Here parameters move: who is
 * about to use keys localizes them, and then reads and writes them in its own
 * memory.  Where a key is, nobody has to know: any worker of any node may push
 * and pull any key at any time.
 *
 * What a store does is its variant:
 *
 *    classic        keys stay at their homes; every access is a message, also
 *                   to the home on the same node, as where servers are
 *                   processes of their own
 *    classic-local  keys stay at their homes; a node reaches its own in memory
 *    localize       keys move to who localizes them
 *    ssp            keys stay; a node has copies, which a worker at clock c
 *                   may use as long as they have all that was pushed up to
 *                   clock c - staleness - 1, and what the node itself pushed;
 *                   it asks the homes for newer ones ("client sync")
 *    essp           likewise, but homes send newer ones to all who have
 *                   once asked, with each clock ("server sync")
 *
 * The home of a key is a node that a hash chooses; keys begin there.
 *
 *
 * Usage
 * =====
 *
 * One process is a node, with threads that are its workers:
 *
 *    error = key_store_create(&config, &store);        // Waits for all nodes.
 *    worker = key_store_worker(store, i);              // One for a thread.
 *
 *    error = key_wait(worker, key_pull(worker, keys, n, values));
 *    push = key_push(worker, keys, n, deltas);         // Adds.
 *    soon = key_localize(worker, next, n_next);
 *    error = key_wait(worker, push);
 *
 *    if (key_borrow(worker, keys, n, vectors)) {
 *        ...read and write vectors[0 ... n - 1] in place...
 *        key_return(worker, keys, n);
 *    } else {
 *        ...they are elsewhere: pull and push...
 *    }
 *
 *    error = key_barrier(worker);              // Each worker of each node.
 *    error = key_clock(worker);                // For ssp and essp.
 *    ...
 *    error = key_finish(worker);               // Likewise.  The last call.
 *    key_store_destroy(store);
 *
 * Where a variant has nothing to do, a function does nothing: key_localize()
 * of one that does not move keys is done at once, key_borrow() of one without
 * shared memory is always false.  So a task is written once for all.
 *
 * The keys of a call may come in any order, but none twice.  Operations are
 * asynchronous until they are waited for; many keys travel in one message.
 *
 *
 * Guarantees
 * ==========
 *
 * Of classic, classic-local and localize:
 *
 *  - A push takes effect exactly once; for a single key there is one order of
 *    all pushes and pulls, the same for everybody.
 *  - In it, operations that are waited for before the next one (synchronous)
 *    come in the order of the worker that called them: sequential consistency
 *    for each key.  The same is true of asynchronous ones, unless the store
 *    has 'caches' of where keys are: then an asynchronous operation may be
 *    overtaken by a later one of the same worker.
 *  - What is read and written in place by key_borrow() is part of that order.
 *
 * tests/unit/test-localize-explorer.c tries all orders of messages for small
 * cases.  There is no order among different keys.
 *
 * Of ssp and essp: what the list above says; pushes by others may be seen in
 * any order.  After a barrier everything is seen that was pushed before it.
 *
 * A node that dies takes its keys along: each function that can fail then says
 * who it was, and so ever after.  They fail too when this node or another one
 * has been told to stop, which key_store_ended() tells apart.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A worker belongs to one thread, and to the store.  What is pushed is copied
 * at once; where pulled values go must stay until they were waited for, or
 * until a function has said that the store failed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEY_STORE_MAX_NODES 32
#define KEY_STORE_MAX_WIDTH 4096        /* Values of a key. */
#define KEY_STORE_MAX_BORROWED 16       /* Keys of one key_borrow(). */

struct control;
struct key_store;
struct key_worker;

/* An operation of one worker.  0 is one that is done. */
typedef uint64_t key_handle;

enum key_variant {
    KEY_CLASSIC,
    KEY_CLASSIC_LOCAL,
    KEY_LOCALIZE,
    KEY_SSP,
    KEY_ESSP,
};

/* Keys of the same width; the first range begins with key 0, the others each
 * where the one before ends. */
struct key_range {
    uint64_t n;
    uint32_t width;             /* Values of a key. */
};

/* All nodes of a store must agree in all of it but 'rank', 'address', 'port',
 * 'n_workers' and what is below that. */
struct key_store_config {
    enum key_variant variant;
    bool caches;                /* Of where keys are; for KEY_LOCALIZE. */
    int staleness;              /* Of KEY_SSP and KEY_ESSP. */
    const struct key_range *ranges;
    int n_ranges;
    uint64_t identity;          /* Of what is trained: told to others, who
                                 * must have the same. */
    const char *const *names;   /* "HOST:PORT" of each node. */
    int n_nodes;                /* 1: no network. */

    int rank;                   /* Of this node. */
    const char *address;        /* Where it listens, */
    uint16_t port;              /* at which port. */

    int n_workers;              /* Threads of this node. */
    const char *congestion;     /* TCP congestion control, or NULL. */
    int64_t connect_us;         /* All are there by then, or it fails. */
    int64_t deadline_us;        /* Unacknowledged data for so long: dead; 0:
                                 * never. */
    struct control *control;    /* Ends waiting; or NULL. */

    /* The first values of 'key', which are 0 otherwise; or NULL.  Called by
     * key_store_create() for those whose home this node is. */
    void (*init)(void *aux, uint64_t key, float *values);
    void *aux;
};

/* Bytes to and from other nodes, and what became of accesses of keys, at this
 * node. */
struct key_store_stats {
    uint64_t sent, received;
    uint64_t local, remote;     /* Accesses in memory, and by messages. */
    uint64_t moved;             /* Keys that came here. */
};

/* A word of --store.  key_variant_find() returns false for others. */
const char *key_variant_name(enum key_variant);
bool key_variant_find(const char *name, enum key_variant *);

/* Functions that return char * return NULL or a message that the caller
 * frees. */
char *key_store_create(const struct key_store_config *, struct key_store **);
void key_store_destroy(struct key_store *);

/* Makes all functions of the store fail with 'error', which the store frees. */
void key_store_abort(struct key_store *, char *error);

/* Whether the failure is that a node was told to stop.  For a single thread,
 * after the workers have ended. */
bool key_store_ended(struct key_store *);

struct key_worker *key_store_worker(struct key_store *, int i);
void key_store_stats(struct key_store *, struct key_store_stats *);

/* Values are those of the keys, one after the other. */
key_handle key_push(struct key_worker *, const uint64_t keys[], size_t n,
                    const float *values);
key_handle key_pull(struct key_worker *, const uint64_t keys[], size_t n,
                    float *values);

/* Done when all keys have come, from where they may be called away again. */
key_handle key_localize(struct key_worker *, const uint64_t keys[],
                        size_t n);

char *key_wait(struct key_worker *, key_handle);
char *key_wait_all(struct key_worker *);
bool key_is_done(struct key_worker *, key_handle);

/* If all of the 'n' keys, KEY_STORE_MAX_BORROWED at most, are in memory that
 * may be used in place, locks them, points 'vectors' to them and returns true.
 * No other function may be called before key_return() of the same keys. */
bool key_borrow(struct key_worker *, const uint64_t keys[], size_t n,
                float *vectors[]);
void key_return(struct key_worker *, const uint64_t keys[], size_t n);

/* Whether 'key' is in memory that may be used in place, as a hint. */
bool key_is_here(const struct key_worker *, uint64_t key);

/* Waits for one's own operations, and for all workers of all nodes. */
char *key_barrier(struct key_worker *);

/* Begins the worker's next clock, once homes have what its node sent at the
 * last one. */
char *key_clock(struct key_worker *);

/* A barrier, after which other nodes may end. */
char *key_finish(struct key_worker *);

#endif /* trainer/keys/key-store.h */
