/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOCAL_STORE_H
#define LOCAL_STORE_H 1

/* The vectors of the keys that a node holds, shared by all its threads.
 *
 * A worker reads and writes such a vector in place, under a lock: no copy, no
 * message.  The lowest bit of a key's slot is its lock, so that a lock costs
 * no other line of the cache than the one that is read anyway, and two threads
 * that use different keys do not meet.  A lock is held for one access, or
 * while a key arrives or leaves; a thread that waits yields the processor.
 *
 * With one worker, only the thread of the network competes with it, and one
 * mutex for all keys is cheaper: a step of 15 ratings takes 1 lock instead of
 * 16.  Because the worker takes it again and again, it lets the other thread
 * go first.
 *
 *    local_store_init(&ls, ranges, n_ranges, n_workers);
 *    vector = local_store_vector(&ls, key);            // Not installed yet.
 *    local_store_install(&ls, key, vector);
 *
 *    vector = local_store_lock(&ls, key);              // NULL: not here.
 *    local_store_unlock(&ls, key);
 *
 *    vector = local_store_remove(&ls, key);
 *    local_store_recycle(&ls, key, vector);
 *
 * Vectors are installed, removed and recycled under a lock of the caller,
 * which may use local_store_peek() without another one.  Locking is for any
 * thread.  Memory grows with the largest number of vectors and is kept.
 *
 * The protocol has one lock more: an access in place never takes it, and a key
 * arrives or leaves under both. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/keys/key-store.h"

#define LOCAL_STORE_MAX_RANGES 16
#define LOCAL_STORE_LOCKED ((uintptr_t) 1) /* Bit of a slot. */

/* Unused vectors of one width. */
struct local_pool {
    void *free;                 /* Each begins with a pointer to the next. */
    void *chunks;               /* Likewise, what they are parts of. */
    size_t size;                /* Bytes of a vector. */
};

struct local_store {
    struct key_range ranges[LOCAL_STORE_MAX_RANGES];
    uint64_t ends[LOCAL_STORE_MAX_RANGES];      /* Behind the last key. */
    struct local_pool pools[LOCAL_STORE_MAX_RANGES];
    int n_ranges;
    uint64_t n_keys;
    uintptr_t *slots; /* Of each key: address of its vector, 0: not
                       * here; plus LOCAL_STORE_LOCKED.  Atomic. */
    bool single;      /* 'mutex' is the lock of all keys, and slots
                       * are never locked. */
    pthread_mutex_t mutex;
    int n_waiting; /* Threads, for 'mutex'; atomic. */
};

void local_store_init(struct local_store *, const struct key_range[], int n,
                      int n_workers);
void local_store_uninit(struct local_store *);

static inline int
local_store_range(const struct local_store *ls, uint64_t key)
{
    int i = 0;

    while (key >= ls->ends[i]) {
        i++;
    }
    return i;
}

/* Values of 'key', which there is. */
static inline uint32_t
local_store_width(const struct local_store *ls, uint64_t key)
{
    return ls->ranges[local_store_range(ls, key)].width;
}

/* For the caller's lock: the vector of 'key', or NULL. */
static inline float *
local_store_peek(const struct local_store *ls, uint64_t key)
{
    return (float *) (__atomic_load_n(&ls->slots[key], __ATOMIC_RELAXED)
                      & ~LOCAL_STORE_LOCKED);
}

/* Locks the mutex of all keys. */
void local_store_lock_mutex(struct local_store *);

/* Waits a moment, the longer the more often it was called: 'n' counts. */
void local_store_relax(unsigned int *n);

/* Locks 'key', wherever it is, and returns its vector, or NULL. */
static inline float *
local_store_lock_key(struct local_store *ls, uint64_t key)
{
    unsigned int n = 0;
    uintptr_t slot;

    if (ls->single) {
        local_store_lock_mutex(ls);
        return local_store_peek(ls, key);
    }
    while ((slot = __atomic_fetch_or(&ls->slots[key], LOCAL_STORE_LOCKED,
                                     __ATOMIC_ACQUIRE))
           & LOCAL_STORE_LOCKED) {
        local_store_relax(&n);
    }
    return (float *) slot;
}

/* Nobody else changes the slot of a vector while it is locked, but an empty
 * slot may get a vector. */
static inline void
local_store_unlock(struct local_store *ls, uint64_t key)
{
    float *vector = local_store_peek(ls, key);

    if (ls->single) {
        pthread_mutex_unlock(&ls->mutex);
    } else if (vector) {
        __atomic_store_n(&ls->slots[key], (uintptr_t) vector,
                         __ATOMIC_RELEASE);
    } else {
        __atomic_fetch_and(&ls->slots[key], ~LOCAL_STORE_LOCKED,
                           __ATOMIC_RELEASE);
    }
}

/* Locks and returns the vector of 'key', or returns NULL and locks nothing if
 * it is not here. */
static inline float *
local_store_lock(struct local_store *ls, uint64_t key)
{
    float *vector = NULL;

    if (ls->single || local_store_peek(ls, key)) {
        vector = local_store_lock_key(ls, key);
        if (!vector) {
            local_store_unlock(ls, key);
        }
    }
    return vector;
}

/* Adds 'n' values. */
static inline void
local_store_sum(float *restrict to, const float *restrict from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        to[i] += from[i];
    }
}

float *local_store_vector(struct local_store *, uint64_t key);
void local_store_recycle(struct local_store *, uint64_t key, float *vector);
void local_store_install(struct local_store *, uint64_t key, float *vector);
float *local_store_remove(struct local_store *, uint64_t key);

/* Adds to, and copies from, a key that is here; false if it is not. */
bool local_store_add(struct local_store *, uint64_t key, const float *values);
bool local_store_copy(struct local_store *, uint64_t key, float *values);

/* Adds the values of 'n' records, each of them a key of range 'range' (4
 * bytes) and its values, as far as their keys are here.  Returns the number of
 * records before the first other one. */
size_t local_store_add_records(struct local_store *, int range,
                               const uint32_t *records, size_t n);

/* Locks all of up to KEY_STORE_MAX_BORROWED keys, or none.  False too if there
 * are several locks and a key is there twice. */
bool local_store_lock_all(struct local_store *, const uint64_t keys[],
                          size_t n, float *vectors[]);
void local_store_unlock_all(struct local_store *, const uint64_t keys[],
                            size_t n);

#endif /* trainer/keys/local-store.h */
