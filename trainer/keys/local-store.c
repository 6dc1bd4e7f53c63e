/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/keys/local-store.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define ALIGNMENT 64            /* Of long vectors, in bytes: a cache line. */
#define CHUNK ((size_t) 1 << 16)
#define SPINS 100 /* Attempts before a thread yields. */
#define AHEAD 16  /* Records whose memory is fetched ahead. */

void
local_store_init(struct local_store *ls, const struct key_range ranges[],
                 int n, int n_workers)
{
    memset(ls, 0, sizeof *ls);
    ls->n_ranges = n;
    for (int i = 0; i < n; i++) {
        size_t bytes = ranges[i].width * sizeof(float);
        size_t unit = bytes >= ALIGNMENT ? ALIGNMENT : bytes > 8 ? 16 : 8;

        ls->ranges[i] = ranges[i];
        ls->n_keys += ranges[i].n;
        ls->ends[i] = ls->n_keys;
        ls->pools[i].size = (bytes + unit - 1) / unit * unit;
    }
    ls->slots = allocate(ls->n_keys, sizeof *ls->slots);
    pthread_mutex_init(&ls->mutex, NULL);
    ls->single = n_workers == 1;
}

void
local_store_uninit(struct local_store *ls)
{
    for (int i = 0; i < ls->n_ranges; i++) {
        void *chunk = ls->pools[i].chunks;

        while (chunk) {
            void *next = *(void **) chunk;

            free(chunk);
            chunk = next;
        }
    }
    pthread_mutex_destroy(&ls->mutex);
    free(ls->slots);
}

static void
push_free(struct local_pool *pool, void *vector)
{
    *(void **) vector = pool->free;
    pool->free = vector;
}

/* Divides a new chunk into vectors.  Its first line links it to the others. */
static void
grow_pool(struct local_pool *pool)
{
    size_t n = pool->size < CHUNK ? CHUNK / pool->size : 1;
    void *chunk = allocate_lines(ALIGNMENT + n * pool->size);

    *(void **) chunk = pool->chunks;
    pool->chunks = chunk;
    for (size_t i = n; i-- > 0;) {
        push_free(pool, (char *) chunk + ALIGNMENT + i * pool->size);
    }
}

float *
local_store_vector(struct local_store *ls, uint64_t key)
{
    struct local_pool *pool = &ls->pools[local_store_range(ls, key)];
    void *vector;

    if (!pool->free) {
        grow_pool(pool);
    }
    vector = pool->free;
    pool->free = *(void **) vector;
    return vector;
}

void
local_store_recycle(struct local_store *ls, uint64_t key, float *vector)
{
    push_free(&ls->pools[local_store_range(ls, key)], vector);
}

void
local_store_install(struct local_store *ls, uint64_t key, float *vector)
{
    assert(!local_store_peek(ls, key));
    __atomic_fetch_or(&ls->slots[key], (uintptr_t) vector, __ATOMIC_RELEASE);
}

/* Locked, because a worker may be using the vector. */
float *
local_store_remove(struct local_store *ls, uint64_t key)
{
    float *vector = local_store_lock(ls, key);

    assert(vector);
    __atomic_store_n(&ls->slots[key], 0, __ATOMIC_RELEASE);
    if (ls->single) {
        pthread_mutex_unlock(&ls->mutex);
    }
    return vector;
}

void
local_store_lock_mutex(struct local_store *ls)
{
    if (pthread_mutex_trylock(&ls->mutex)) {
        __atomic_add_fetch(&ls->n_waiting, 1, __ATOMIC_RELAXED);
        pthread_mutex_lock(&ls->mutex);
        __atomic_sub_fetch(&ls->n_waiting, 1, __ATOMIC_RELAXED);
    }
}

void
local_store_relax(unsigned int *n)
{
    if (++*n > SPINS) {
        sched_yield();
    }
}

bool
local_store_add(struct local_store *ls, uint64_t key, const float *values)
{
    float *vector = local_store_lock(ls, key);

    if (vector) {
        local_store_sum(vector, values, local_store_width(ls, key));
        local_store_unlock(ls, key);
    }
    return vector != NULL;
}

bool
local_store_copy(struct local_store *ls, uint64_t key, float *values)
{
    float *vector = local_store_lock(ls, key);

    if (vector) {
        memcpy(values, vector, local_store_width(ls, key) * sizeof *values);
        local_store_unlock(ls, key);
    }
    return vector != NULL;
}

/* What is read soon is fetched first: an atomic operation waits for the reads
 * before it, so that reads of different keys would not overlap.  Inlined once
 * for each kind of lock, and for single values. */
static inline __attribute__((always_inline)) size_t
add_records(struct local_store *ls, int range, const uint32_t *records,
            size_t n, uint32_t width, bool single)
{
    uint64_t size = ls->ranges[range].n, begin = ls->ends[range] - size;
    size_t stride = 1 + width, i;

    for (i = 0; i < n && records[0] - begin < size; i++) {
        float *vector;

        if (n - i > AHEAD) {
            uint64_t far = records[AHEAD * stride];
            uint64_t near = records[AHEAD / 2 * stride];

            __builtin_prefetch(&ls->slots[far < ls->n_keys ? far : 0]);
            __builtin_prefetch(
                near < ls->n_keys ? local_store_peek(ls, near) : NULL, 1);
        }
        vector = single ? local_store_peek(ls, records[0])
                        : local_store_lock(ls, records[0]);
        if (!vector) {
            break;
        }
        local_store_sum(vector, (const float *) records + 1, width);
        if (!single) {
            local_store_unlock(ls, records[0]);
        }
        records += stride;
    }
    return i;
}

size_t
local_store_add_records(struct local_store *ls, int range,
                        const uint32_t *records, size_t n)
{
    uint32_t width = ls->ranges[range].width;

    if (!ls->single) {
        return add_records(ls, range, records, n, width, false);
    }
    local_store_lock_mutex(ls);
    n = width == 1 ? add_records(ls, range, records, n, 1, true)
                   : add_records(ls, range, records, n, width, true);
    pthread_mutex_unlock(&ls->mutex);
    return n;
}

static bool
contains(const uint64_t keys[], size_t n, uint64_t key)
{
    while (n && keys[n - 1] != key) {
        n--;
    }
    return n;
}

/* Locks the first keys without waiting.  Returns their number, less than 'n'
 * if the next key is not here, is one of these, or is locked by another
 * thread, then sets '*busyp'. */
static size_t
try_lock(struct local_store *ls, const uint64_t keys[], size_t n,
         float *vectors[], bool *busyp)
{
    size_t i;

    *busyp = false;
    for (i = 0; i < n && local_store_peek(ls, keys[i]); i++) {
        uintptr_t slot = __atomic_fetch_or(
            &ls->slots[keys[i]], LOCAL_STORE_LOCKED, __ATOMIC_ACQUIRE);

        vectors[i] = (float *) slot;
        if (slot & LOCAL_STORE_LOCKED) {
            *busyp = !contains(keys, i, keys[i]);
            break;
        }
        if (!slot) {
            local_store_unlock(ls, keys[i]); /* It has just left. */
            break;
        }
    }
    return i;
}

/* Locks the mutex for 'keys', which is left to the other thread first. */
static bool
lock_single(struct local_store *ls, const uint64_t keys[], size_t n,
            float *vectors[])
{
    while (__atomic_load_n(&ls->n_waiting, __ATOMIC_RELAXED)) {
        sched_yield();
    }
    pthread_mutex_lock(&ls->mutex);
    for (size_t i = 0; i < n; i++) {
        vectors[i] = local_store_peek(ls, keys[i]);
        if (!vectors[i]) {
            pthread_mutex_unlock(&ls->mutex);
            return false;
        }
    }
    return true;
}

/* A thread that waits holds no lock, so that two cannot wait for each
 * other. */
bool
local_store_lock_all(struct local_store *ls, const uint64_t keys[], size_t n,
                     float *vectors[])
{
    unsigned int tries = 0;
    bool busy;

    if (ls->single) {
        return lock_single(ls, keys, n, vectors);
    }
    for (;;) {
        size_t n_locked = try_lock(ls, keys, n, vectors, &busy);

        if (n_locked == n) {
            return true;
        }
        local_store_unlock_all(ls, keys, n_locked);
        if (!busy) {
            return false;
        }
        local_store_relax(&tries);
    }
}

void
local_store_unlock_all(struct local_store *ls, const uint64_t keys[], size_t n)
{
    if (ls->single) {
        pthread_mutex_unlock(&ls->mutex);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        local_store_unlock(ls, keys[i]);
    }
}
