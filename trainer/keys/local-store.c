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
                 int n, int n_workers)
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
    ls->stripes = allocate_lines(LOCAL_STORE_STRIPES * sizeof *ls->stripes);
    for (int i = 0; i < LOCAL_STORE_STRIPES; i++) {
        pthread_mutex_init(&ls->stripes[i].mutex, NULL);
    }
    ls->mask = n_workers == 1 ? 0 : LOCAL_STORE_STRIPES - 1;
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

/* Stores the stripes of 'keys', ascending and without repetition. */
static size_t
find_stripes(const struct local_store *ls, const uint64_t keys[], size_t n,
             unsigned int stripes[])
{
    size_t m = 0;

    assert(n <= KEY_STORE_MAX_BORROWED);
    if (!ls->mask) {
        stripes[0] = 0;
        return 1;
    }
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
        vectors[i] = __atomic_load_n(&ls->vectors[keys[i]], __ATOMIC_ACQUIRE);
        if (!vectors[i]) {
            return false;
        }
    }
    return true;
}

bool
local_store_lock_all(struct local_store *ls, const uint64_t keys[], size_t n,
                     float *vectors[])
{
    unsigned int stripes[KEY_STORE_MAX_BORROWED + 1];
    size_t n_stripes = find_stripes(ls, keys, n, stripes);

    /* The only lock is left to the other thread first. */
    while (!ls->mask && __atomic_load_n(&ls->n_waiting, __ATOMIC_RELAXED)) {
        sched_yield();
    }
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
local_store_unlock_all(struct local_store *ls, const uint64_t keys[], size_t n)
{
    unsigned int stripes[KEY_STORE_MAX_BORROWED + 1];
    size_t n_stripes = find_stripes(ls, keys, n, stripes);

    for (size_t i = 0; i < n_stripes; i++) {
        pthread_mutex_unlock(&ls->stripes[stripes[i]].mutex);
    }
}
