/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/keys/local-store.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define ALIGNMENT 64            /* Of long vectors, in bytes: a cache line. */
#define CHUNK ((size_t) 1 << 16)

void
local_store_init(struct local_store *ls, const struct key_range ranges[],
                 int n)
{
    memset(ls, 0, sizeof *ls);
    ls->n_ranges = n;
    for (int i = 0; i < n; i++) {
        size_t bytes = ranges[i].width * sizeof(float);
        size_t unit = bytes >= ALIGNMENT ? ALIGNMENT : 16;

        ls->ranges[i] = ranges[i];
        ls->n_keys += ranges[i].n;
        ls->ends[i] = ls->n_keys;
        ls->pools[i].size = (bytes + unit - 1) / unit * unit;
    }
    ls->vectors = allocate(ls->n_keys, sizeof *ls->vectors);
    if (posix_memalign((void **) &ls->stripes, ALIGNMENT,
                       LOCAL_STORE_STRIPES * sizeof *ls->stripes)) {
        abort();
    }
    for (int i = 0; i < LOCAL_STORE_STRIPES; i++) {
        pthread_mutex_init(&ls->stripes[i].mutex, NULL);
    }
    ls->mask = LOCAL_STORE_STRIPES - 1;
}

void
local_store_set_workers(struct local_store *ls, int n)
{
    ls->mask = n == 1 ? 0 : LOCAL_STORE_STRIPES - 1;
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
    for (int i = 0; i < LOCAL_STORE_STRIPES && ls->stripes; i++) {
        pthread_mutex_destroy(&ls->stripes[i].mutex);
    }
    free(ls->stripes);
    free(ls->vectors);
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
    size_t n = CHUNK / pool->size;
    void *chunk;

    n = n ? n : 1;
    if (posix_memalign(&chunk, ALIGNMENT, ALIGNMENT + n * pool->size)) {
        abort();
    }
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
    __atomic_store_n(&ls->vectors[key], vector, __ATOMIC_RELEASE);
}

/* Locked, because a worker may be using the vector. */
float *
local_store_remove(struct local_store *ls, uint64_t key)
{
    float *vector = local_store_lock(ls, key);

    assert(vector);
    __atomic_store_n(&ls->vectors[key], NULL, __ATOMIC_RELAXED);
    local_store_unlock(ls, key);
    return vector;
}

bool
local_store_add(struct local_store *ls, uint64_t key, const float *values)
{
    uint32_t width = local_store_width(ls, key);
    float *vector = local_store_lock(ls, key);

    if (!vector) {
        return false;
    }
    for (uint32_t i = 0; i < width; i++) {
        vector[i] += values[i];
    }
    local_store_unlock(ls, key);
    return true;
}

bool
local_store_copy(struct local_store *ls, uint64_t key, float *values)
{
    uint32_t width = local_store_width(ls, key);
    float *vector = local_store_lock(ls, key);

    if (!vector) {
        return false;
    }
    memcpy(values, vector, width * sizeof *values);
    local_store_unlock(ls, key);
    return true;
}

/* Stores the stripes of 'keys', ascending and without repetition. */
static size_t
find_stripes(const uint64_t keys[], size_t n, unsigned int stripes[])
{
    size_t m = 0;

    assert(n <= KEY_STORE_MAX_BORROWED);
    for (size_t i = 0; i < n; i++) {
        unsigned int stripe = local_store_stripe(keys[i]);
        size_t at = 0;

        while (at < m && stripes[at] < stripe) {
            at++;
        }
        if (at == m || stripes[at] != stripe) {
            memmove(stripes + at + 1, stripes + at,
                    (m - at) * sizeof *stripes);
            stripes[at] = stripe;
            m++;
        }
    }
    return m;
}

/* Finds all vectors.  Returns false if one is not here. */
static bool
find_vectors(const struct local_store *ls, const uint64_t keys[], size_t n,
             float *vectors[])
{
    for (size_t i = 0; i < n; i++) {
        vectors[i] = __atomic_load_n(&ls->vectors[keys[i]],
                                     __ATOMIC_ACQUIRE);
        if (!vectors[i]) {
            return false;
        }
    }
    return true;
}

/* Finds and locks all vectors under the only lock. */
static bool
lock_only(struct local_store *ls, const uint64_t keys[], size_t n,
          float *vectors[])
{
    while (__atomic_load_n(&ls->n_waiting, __ATOMIC_RELAXED)) {
        sched_yield();
    }
    pthread_mutex_lock(&ls->stripes[0].mutex);
    if (find_vectors(ls, keys, n, vectors)) {
        return true;
    }
    pthread_mutex_unlock(&ls->stripes[0].mutex);
    return false;
}

bool
local_store_lock_all(struct local_store *ls, const uint64_t keys[], size_t n,
                     float *vectors[])
{
    unsigned int stripes[KEY_STORE_MAX_BORROWED + 1];
    size_t n_stripes;

    if (!ls->mask) {
        return lock_only(ls, keys, n, vectors);
    }
    n_stripes = find_stripes(keys, n, stripes);
    for (size_t i = 0; i < n_stripes; i++) {
        pthread_mutex_lock(&ls->stripes[stripes[i]].mutex);
    }
    if (find_vectors(ls, keys, n, vectors)) {
        return true;
    }
    for (size_t i = 0; i < n_stripes; i++) {
        pthread_mutex_unlock(&ls->stripes[stripes[i]].mutex);
    }
    return false;
}

void
local_store_unlock_all(struct local_store *ls, const uint64_t keys[],
                       size_t n)
{
    unsigned int stripes[KEY_STORE_MAX_BORROWED + 1];
    size_t n_stripes = 1;

    stripes[0] = 0;
    if (ls->mask) {
        n_stripes = find_stripes(keys, n, stripes);
    }
    for (size_t i = 0; i < n_stripes; i++) {
        pthread_mutex_unlock(&ls->stripes[stripes[i]].mutex);
    }
}
