/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/tasks/gather.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/models/vector.h"

struct gather_place {
    uint64_t key;
    size_t at;                  /* 1 + index of its values; 0 if the entry
                                 * is free. */
};

struct gather *
gather_create(struct key_worker *worker, size_t max_keys, size_t max_values,
              bool several)
{
    struct gather *g = allocate(1, sizeof *g);
    size_t n_places = 8;

    while (n_places < 2 * max_keys) {
        n_places *= 2;
    }
    g->worker = worker;
    g->keys = allocate(max_keys, sizeof *g->keys);
    g->values = allocate(max_values, sizeof *g->values);
    g->deltas = allocate(max_values, sizeof *g->deltas);
    if (several) {
        g->changes = allocate(max_values, sizeof *g->changes);
    }
    g->places = allocate(n_places, sizeof *g->places);
    g->mask = n_places - 1;
    return g;
}

void
gather_destroy(struct gather *g)
{
    if (g) {
        free(g->keys);
        free(g->values);
        free(g->deltas);
        free(g->changes);
        free(g->places);
        free(g);
    }
}

/* Returns the entry of the key, or the free entry for it. */
static struct gather_place *
find(struct gather *g, uint64_t key)
{
    size_t i = key * UINT64_C(0x9e3779b97f4a7c15) >> 32;

    while (g->places[i & g->mask].at && g->places[i & g->mask].key != key) {
        i++;
    }
    return &g->places[i & g->mask];
}

void
gather_clear(struct gather *g)
{
    /* In reverse order, so that no search passes an entry that has become
     * free. */
    while (g->n) {
        find(g, g->keys[--g->n])->at = 0;
    }
    g->n_values = 0;
}

size_t
gather_add(struct gather *g, uint64_t key, uint32_t width)
{
    struct gather_place *place = find(g, key);

    if (!place->at) {
        place->key = key;
        place->at = 1 + g->n_values;
        g->keys[g->n++] = key;
        g->n_values += width;
    }
    return place->at - 1;
}

key_handle
gather_request(struct gather *g)
{
    memset(g->deltas, 0, g->n_values * sizeof *g->deltas);
    return key_pull(g->worker, g->keys, g->n, g->values);
}

char *
gather_pull(struct gather *g)
{
    return key_wait(g->worker, gather_request(g));
}

float *
gather_gradients(struct gather *g)
{
    return g->changes ? g->changes : g->deltas;
}

void
gather_change(struct gather *g, size_t at, size_t n)
{
    if (g->changes) {
        vector_add(n, 1, g->changes + at, g->values + at);
        vector_add(n, 1, g->changes + at, g->deltas + at);
        memset(g->changes + at, 0, n * sizeof *g->changes);
    }
}

void
gather_push(struct gather *g)
{
    key_push(g->worker, g->keys, g->n, g->deltas);
}
