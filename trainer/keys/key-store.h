/* SPDX-License-Identifier: Apache-2.0 */

#ifndef KEY_STORE_H
#define KEY_STORE_H 1

/* libstagecoach-keys: vectors of keys, distributed over nodes that each hold a
 * part of them.
 *
 * A parameter server answers each access by a message, even if one worker
 * alone uses a parameter for a while, as in matrix factorisation and with
 * embeddings.  Here keys can move: a worker localizes the keys that it is
 * about to use, and then reads and writes them in its own memory.  Any worker
 * may push and pull any key at any time, wherever it is.  The method is that
 * of Lapse: "Dynamic Parameter Allocation in Parameter Servers" (VLDB 2020).
 *
 * The variants of a store:
 *
 *    classic        keys stay at their homes; every access is a message, also
 *                   to the home on the same node, as if servers were separate
 *                   processes
 *    classic-local  keys stay at their homes; a node accesses its own in
 *                   memory
 *    localize       keys move to the node that localizes them
 *    localize-messages
 *                   likewise, but every access is a message, also to a key
 *                   that is on the same node: only for comparisons
 *    ssp            keys stay; a node has copies, which a worker at clock c
 *                   may use while they have all that was pushed up to clock
 *                   c - staleness - 1, and what the node itself pushed; it
 *                   asks the homes for newer ones ("client sync")
 *    essp           as ssp, but homes send newer copies, with each clock, to
 *                   all nodes that have asked once ("server sync")
 *
 * The home of a key is a node chosen by a hash; keys begin there.
 *
 * One process is a node; its threads are workers:
 *
 *    error = key_store_create(&config, &store);        // Waits for all nodes.
 *    worker = key_store_worker(store, i);              // One per thread.
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
 *        ...pull and push...
 *    }
 *
 *    error = key_barrier(worker);              // Each worker of each node.
 *    error = key_clock(worker);                // For ssp and essp.
 *    error = key_finish(worker);               // The last call.
 *    key_store_destroy(store);
 *
 * In a variant without a feature its functions do nothing: key_localize() is
 * done at once if keys do not move, key_borrow() is false without shared
 * memory.  So a task is written once for all variants.
 *
 * The keys of a call may have any order, without repetition.  Operations are
 * asynchronous until they are waited for; many keys travel in one message.
 *
 * Of classic, classic-local, localize and localize-messages:
 *
 *  - A push is applied exactly once.  All pushes and pulls of one key have one
 *    order, the same for all workers.
 *  - Operations that are waited for before the next one (synchronous) have in
 *    it the order of the worker's calls: sequential consistency per key.  The
 *    same holds for asynchronous ones.
 *  - Reads and writes in place after key_borrow() are part of that order.
 *
 * The unit test localize-explorer tries all orders of messages for small
 * cases.  Different keys have no common order.
 *
 * Of ssp and essp: as in the list above; pushes of other nodes may be seen in
 * any order.  After a barrier all earlier pushes are seen.
 *
 * The keys of a node that dies are lost: every function that can fail then
 * returns a message that names it.  They also fail when a node was stopped,
 * which key_store_ended() distinguishes, and after a key that there is not.
 *
 * A worker belongs to one thread, and to the store.  Pushed values are copied
 * at once; the memory for pulled values must stay until they were waited for,
 * or until a function has failed.
 *
 * Nodes with different secrets, 32 hexadecimal digits in $STAGECOACH_TOKEN,
 * refuse each other; connections are not encrypted.  A store has one thread of
 * its own, which blocks all signals.  A process that has no memory left is
 * aborted. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KEY_STORE_MAX_NODES 128
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
    KEY_LOCALIZE_MESSAGES,
    KEY_N_VARIANTS
};

/* Keys of the same width.  The first range begins with key 0, each other one
 * where the one before ends. */
struct key_range {
    uint64_t n;
    uint32_t width;             /* Values of a key. */
};

/* The nodes of a store must agree in all members before 'rank'. */
struct key_store_config {
    enum key_variant variant;
    int staleness;              /* Clocks; for KEY_SSP and KEY_ESSP. */
    const struct key_range *ranges;
    int n_ranges;
    uint64_t identity;          /* Number of what is trained. */
    const char *const *names;   /* "HOST:PORT" of each node; the strings must
                                 * stay as long as the store. */
    int n_nodes;                /* 1: no network. */

    int rank;                   /* Of this node. */
    const char *address;        /* To listen at. */
    uint16_t port;              /* To listen at. */

    int n_workers;              /* Threads of this node. */
    const char *congestion;     /* TCP congestion control, or NULL. */
    int64_t connect_us;         /* Time limit for connecting all. */
    int64_t heartbeat_timeout_us;       /* Silence after which a node counts as
                                         * dead; 0: never. */
    struct control *control; /* Of stagecoach-trainer, ends waiting; NULL in
                              * other programs. */
    void (*listening)(const char *address,
                      uint16_t port); /* Called when
                                       * other nodes can connect; or NULL. */

    /* Sets the first values of 'key', which are 0 otherwise; or NULL.  Called
     * by key_store_create() for the keys of this home. */
    void (*init)(void *aux, uint64_t key, float *values);
    void *aux;
};

/* Counters of this node. */
struct key_store_stats {
    uint64_t sent, received;    /* Bytes. */
    uint64_t local, remote;     /* Accesses in memory, and by messages. */
    uint64_t moved;             /* Keys that were transferred here. */
};

/* Finds the variant by its name in --store; false for an unknown name. */
bool key_variant_find(const char *name, enum key_variant *);

/* Whether keys move to the nodes that localize them. */
bool key_variant_moves(enum key_variant);

/* Functions that return char * return NULL or a message that the caller
 * frees. */
char *key_store_create(const struct key_store_config *, struct key_store **);
void key_store_destroy(struct key_store *);

/* Makes all functions of the store fail with 'error'; takes ownership. */
void key_store_abort(struct key_store *, char *error);

/* Returns true if the cause of the failure is that a node was stopped.  To be
 * called when the workers have ended. */
bool key_store_ended(struct key_store *);

/* NULL if there is no worker 'i'. */
struct key_worker *key_store_worker(struct key_store *, int i);
void key_store_stats(struct key_store *, struct key_store_stats *);

/* Values are those of the keys, one after the other.  A key that there is not
 * makes all functions fail. */
key_handle key_push(struct key_worker *, const uint64_t keys[], size_t n,
                    const float *values);
key_handle key_pull(struct key_worker *, const uint64_t keys[], size_t n,
                    float *values);

/* Done when all keys have arrived; they may be localized elsewhere again. */
key_handle key_localize(struct key_worker *, const uint64_t keys[], size_t n);

char *key_wait(struct key_worker *, key_handle);
char *key_wait_all(struct key_worker *);
bool key_is_done(struct key_worker *, key_handle);

/* If all of the 'n' keys, at most KEY_STORE_MAX_BORROWED, are in memory that
 * may be used in place, locks them, sets 'vectors' and returns true.  No other
 * function may be called before key_return() of the same keys. */
bool key_borrow(struct key_worker *, const uint64_t keys[], size_t n,
                float *vectors[]);
void key_return(struct key_worker *, const uint64_t keys[], size_t n);

/* Whether a request to localize 'key' would change nothing, as a hint: keys
 * move, or are used in place, and this one is on this node. */
bool key_is_here(const struct key_worker *, uint64_t key);

/* Waits for one's own operations, and for all workers of all nodes. */
char *key_barrier(struct key_worker *);

/* Begins the worker's next clock, when the homes have applied what its node
 * sent at the last one. */
char *key_clock(struct key_worker *);

/* A barrier, after which other nodes may end. */
char *key_finish(struct key_worker *);

#ifdef __cplusplus
}
#endif

#endif /* trainer/keys/key-store.h */
