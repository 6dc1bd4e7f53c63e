/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/store.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/net/keys.h"

#define LEAF 1024               /* Keys, at most. */
#define FILL (LEAF * 3 / 4)     /* Keys of leaves after a split. */
#define COMPARE 64              /* Keys that are compared at a time. */

struct leaf {
    size_t n;
    uint64_t *keys;
    float *vectors[1 + OPTIMISER_MAX_STATES];
};

struct store {
    struct optimiser_config optimiser;
    uint32_t width;             /* Values of a key. */
    int n_vectors;              /* The weights, and the optimiser's states. */
    size_t n_leaves, allocated;
    struct leaf **leaves;       /* Ascending; none is empty. */
    uint64_t *firsts;           /* The first key of each. */
};

static struct leaf *
leaf_create(const struct store *s)
{
    size_t vector = (size_t) LEAF * s->width;
    struct leaf *leaf = allocate(1, sizeof *leaf);
    float *values;

    leaf->keys = allocate(LEAF, sizeof *leaf->keys);
    values = allocate(vector * s->n_vectors, sizeof *values);
    for (int v = 0; v < s->n_vectors; v++) {
        leaf->vectors[v] = values + v * vector;
    }
    return leaf;
}

static void
leaf_destroy(struct leaf *leaf)
{
    free(leaf->keys);
    free(leaf->vectors[0]);
    free(leaf);
}

/* Replaces 'n_old' leaves at 'at' by 'n_new' ones. */
static void
replace_leaves(struct store *s, size_t at, size_t n_old,
               struct leaf **new, size_t n_new)
{
    size_t n = s->n_leaves - n_old + n_new, rest = s->n_leaves - at - n_old;

    if (n > s->allocated) {
        s->allocated = n + n / 2 + 16;
        s->leaves = reallocate(s->leaves, s->allocated, sizeof *s->leaves);
        s->firsts = reallocate(s->firsts, s->allocated, sizeof *s->firsts);
    }
    memmove(s->leaves + at + n_new, s->leaves + at + n_old,
            rest * sizeof *s->leaves);
    memmove(s->firsts + at + n_new, s->firsts + at + n_old,
            rest * sizeof *s->firsts);
    for (size_t i = 0; i < n_new; i++) {
        s->leaves[at + i] = new[i];
        s->firsts[at + i] = new[i]->keys[0];
    }
    s->n_leaves = n;
}

/* Returns the leaf for 'key': the last one with a first key that is not
 * greater, or the first leaf.  'hint' is a leaf with a first key that is not
 * greater. */
static size_t
find_leaf(const struct store *s, uint64_t key, size_t hint)
{
    size_t low = hint, high = s->n_leaves;

    if (low + 1 >= high || key < s->firsts[low + 1]) {
        return low;
    }
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (s->firsts[middle] <= key) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Returns the number of equal keys at the beginning of 'a' and 'b'. */
static size_t
equal_run(const uint64_t *a, const uint64_t *b, size_t n)
{
    size_t i = 0;

    while (n - i >= COMPARE && !memcmp(a + i, b + i, COMPARE * sizeof *a)) {
        i += COMPARE;
    }
    while (i < n && a[i] == b[i]) {
        i++;
    }
    return i;
}

/* Returns the end of the keys for leaf 'at'. */
static size_t
batch_end(const struct store *s, size_t at, const uint64_t keys[], size_t j,
          size_t n)
{
    if (at + 1 == s->n_leaves || keys[n - 1] < s->firsts[at + 1]) {
        return n;
    }
    return keys_find(keys, j, n, s->firsts[at + 1]);
}

/* Steps the 'n' weights from number 'at' on; 'vectors' are the weights, then
 * the states. */
static void
step_vectors(const struct optimiser_config *c, float *const vectors[],
             size_t at, size_t n, const float *gradients)
{
    float *state[OPTIMISER_MAX_STATES];

    for (int v = 0; v < c->class->n_states; v++) {
        state[v] = vectors[1 + v] + at;
    }
    c->class->step(c, n, gradients, state, vectors[0] + at);
}

/* Updates keys[j ... end - 1] of 'leaf'.  Returns the first one that it lacks,
 * or 'end'. */
static size_t
leaf_update(struct store *s, struct leaf *leaf, const uint64_t keys[],
            size_t j, size_t end, const float *gradients)
{
    size_t i = 0;

    while (j < end) {
        size_t run;

        i = keys_find(leaf->keys, i, leaf->n, keys[j]);
        if (i == leaf->n || leaf->keys[i] != keys[j]) {
            return j;
        }
        run = equal_run(leaf->keys + i, keys + j,
                        end - j < leaf->n - i ? end - j : leaf->n - i);
        step_vectors(&s->optimiser, leaf->vectors, i * s->width,
                     run * s->width, gradients + j * s->width);
        i += run;
        j += run;
    }
    return j;
}

/* A list of leaves under construction. */
struct split {
    struct leaf **leaves;
    size_t n, fill;
};

/* Adds a key, with the values of key 'i' of 'from', or with zeros. */
static void
split_add(const struct store *s, struct split *split, uint64_t key,
          const struct leaf *from, size_t i)
{
    struct leaf *leaf;
    size_t at;

    if (!split->n || split->leaves[split->n - 1]->n == split->fill) {
        split->leaves[split->n++] = leaf_create(s);
    }
    leaf = split->leaves[split->n - 1];
    at = leaf->n++;
    leaf->keys[at] = key;
    for (int v = 0; from && v < s->n_vectors; v++) {
        memcpy(leaf->vectors[v] + at * s->width,
               from->vectors[v] + i * s->width, s->width * sizeof(float));
    }
}

/* Adds the keys that leaf 'at' lacks; it may be split.  Keys after all others
 * fill leaves completely, because more of them probably follow. */
static void
insert_keys(struct store *s, size_t at, const uint64_t keys[], size_t n)
{
    struct leaf none = { .n = 0 }, *old = s->n_leaves ? s->leaves[at] : &none;
    bool behind = !old->n || (at + 1 == s->n_leaves
                              && keys[0] > old->keys[old->n - 1]);
    struct split split = { .fill = behind ? LEAF : FILL };
    size_t i = 0, j = 0;

    split.leaves = allocate((old->n + n) / split.fill + 1,
                            sizeof *split.leaves);
    while (i < old->n || j < n) {
        if (j == n || (i < old->n && old->keys[i] <= keys[j])) {
            j += j < n && old->keys[i] == keys[j];
            split_add(s, &split, old->keys[i], old, i);
            i++;
        } else {
            split_add(s, &split, keys[j], NULL, 0);
            j++;
        }
    }
    replace_leaves(s, at, old != &none, split.leaves, split.n);
    if (old != &none) {
        leaf_destroy(old);
    }
    free(split.leaves);
}

void
store_update_keys(struct store *s, const uint64_t keys[], size_t n,
                  const float *gradients)
{
    size_t at = 0;

    for (size_t j = 0; j < n; ) {
        size_t end;

        if (!s->n_leaves) {
            insert_keys(s, 0, keys, n);
        }
        at = find_leaf(s, keys[j], at);
        end = batch_end(s, at, keys, j, n);
        j = leaf_update(s, s->leaves[at], keys, j, end, gradients);
        if (j < end) {
            insert_keys(s, at, keys + j, end - j);
        }
    }
}

void
store_read_keys(const struct store *s, const uint64_t keys[], size_t n,
                float *values)
{
    size_t at = 0;

    memset(values, 0, n * s->width * sizeof *values);
    for (size_t j = 0; j < n && s->n_leaves; ) {
        const struct leaf *leaf;
        size_t end, i = 0;

        at = find_leaf(s, keys[j], at);
        end = batch_end(s, at, keys, j, n);
        leaf = s->leaves[at];
        while (j < end) {
            size_t run;

            i = keys_find(leaf->keys, i, leaf->n, keys[j]);
            run = equal_run(leaf->keys + i, keys + j,
                            end - j < leaf->n - i ? end - j : leaf->n - i);
            memcpy(values + j * s->width, leaf->vectors[0] + i * s->width,
                   run * s->width * sizeof *values);
            i += run;
            j += run ? run : 1;
        }
    }
}

struct store *
store_create(uint32_t width, const struct optimiser_config *optimiser)
{
    struct store *s = allocate(1, sizeof *s);

    s->optimiser = *optimiser;
    s->width = width;
    s->n_vectors = 1 + optimiser->class->n_states;
    return s;
}

void
store_destroy(struct store *s)
{
    if (s) {
        for (size_t i = 0; i < s->n_leaves; i++) {
            leaf_destroy(s->leaves[i]);
        }
        free(s->leaves);
        free(s->firsts);
        free(s);
    }
}
