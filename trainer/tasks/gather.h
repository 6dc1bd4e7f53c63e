/* SPDX-License-Identifier: Apache-2.0 */

#ifndef GATHER_H
#define GATHER_H 1

/* Vectors of the keys of a sample, without duplicates, and their changes.
 *
 * A sample can contain a key twice, for example as two negative samples, but a
 * store accepts each key once per call.  This module stores the vectors in one
 * array and their changes at the same index in another.
 *
 *    gather_clear(g);
 *    a = gather_add(g, key, width);            // Again: the same index.
 *    b = gather_add(g, other, width);
 *    error = gather_pull(g);
 *    ...g->values + a, g->deltas + a, which is zeros...
 *    gather_push(g);
 *
 * Vectors of several samples may be gathered, and each sample is to see the
 * changes of those before it.  A sample then writes to gather_gradients(), and
 * gather_change() makes what is there part of the values and of the deltas.
 *
 * Belongs to the thread of one worker. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/keys/key-store.h"

struct gather_place;
struct key_worker;

struct gather {
    struct key_worker *worker;
    size_t n, n_values;         /* Number of keys and of values. */
    uint64_t *keys;
    float *values, *deltas;
    float *changes; /* Of one sample, otherwise zeros; NULL if
                     * there is only one; then 'deltas' has
                     * them. */
    struct gather_place *places;        /* Hash table of the keys. */
    size_t mask;                /* Size of the table minus 1. */
};

/* 'several': samples, one after the other. */
struct gather *gather_create(struct key_worker *, size_t max_keys,
                             size_t max_values, bool several);
void gather_destroy(struct gather *);

void gather_clear(struct gather *);

/* Returns the index of the key's values. */
size_t gather_add(struct gather *, uint64_t key, uint32_t width);

char *gather_pull(struct gather *);

/* The same without waiting; key_wait() of the result is needed. */
key_handle gather_request(struct gather *);

/* Where a sample's changes of the vector at index i go, to [i]. */
float *gather_gradients(struct gather *);

/* The changes of the 'n' values from 'at' on are complete.  Without 'several'
 * there is nothing to do. */
void gather_change(struct gather *, size_t at, size_t n);

/* Whether one of the first 'i' indices of a sample is the same as the next
 * one: their key is the same, and so are their changes. */
static inline bool
gather_is_repeated(const size_t places[], size_t i)
{
    for (size_t j = 0; j < i; j++) {
        if (places[j] == places[i]) {
            return true;
        }
    }
    return false;
}

/* Pushes all changes, without waiting for the result. */
void gather_push(struct gather *);

#endif /* trainer/tasks/gather.h */
