/* SPDX-License-Identifier: Apache-2.0 */

#ifndef GATHER_H
#define GATHER_H 1

/* The vectors that a sample needs, each once, and what is to be added to them.
 *
 *
 * Motivation
 * ==========
 *
 * A sample names the same key twice now and then, of two wrong words for
 * example, where a store wants each key once a call.  Vectors are found by
 * where they lie in one array, gradients at the same place in another.
 *
 *
 * Usage
 * =====
 *
 *    gather_clear(g);
 *    a = gather_add(g, key, width);            // Again: the same place.
 *    b = gather_add(g, other, width);
 *    error = gather_pull(g);
 *    ...g->values + a, g->deltas + a, which is zeros...
 *    gather_push(g);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Of one worker's thread. */

#include <stddef.h>
#include <stdint.h>

struct gather_place;
struct key_worker;

struct gather {
    struct key_worker *worker;
    size_t n, n_values;         /* Keys, and their values. */
    uint64_t *keys;
    float *values, *deltas;
    struct gather_place *places;        /* A hash table. */
    size_t mask;                /* Its places, minus 1. */
};

struct gather *gather_create(struct key_worker *, size_t max_keys,
                             size_t max_values);
void gather_destroy(struct gather *);

void gather_clear(struct gather *);

/* Returns where the key's values are. */
size_t gather_add(struct gather *, uint64_t key, uint32_t width);

char *gather_pull(struct gather *);

/* Adds all deltas, at once; nothing waits for it. */
void gather_push(struct gather *);

#endif /* trainer/tasks/gather.h */
