/* SPDX-License-Identifier: Apache-2.0 */

#include "order/problem/sort.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "order/problem/problem.h"
#include "order/problem/scratch.h"

/* Merges the sorted 'a' and 'b', of 'n_a' and 'n_b' bytes, into 'to'. */
static void
merge(const char *a, size_t n_a, const char *b, size_t n_b, char *to,
      size_t size, int (*compare)(const void *, const void *))
{
    const char *end_a = a + n_a, *end_b = b + n_b;

    while (a < end_a && b < end_b) {
        const char **least = compare(a, b) <= 0 ? &a : &b;

        memcpy(to, *least, size);
        *least += size;
        to += size;
    }
    memcpy(to, a, end_a - a);
    memcpy(to + (end_a - a), b, end_b - b);
}

/* Merges runs of 'run' bytes of 'from' into runs of 2 * 'run' bytes of 'to'.
 * */
static void
merge_runs(const char *from, char *to, size_t end, size_t run, size_t size,
           int (*compare)(const void *, const void *))
{
    for (size_t i = 0; i < end; i += 2 * run) {
        size_t middle = i + run < end ? i + run : end;
        size_t last = middle + run < end ? middle + run : end;

        merge(from + i, middle - i, from + middle, last - middle, to + i,
              size, compare);
    }
}

void
scratch_sort(struct scratch *scratch, void *items, size_t n, size_t size,
             int (*compare)(const void *, const void *))
{
    char *spare = scratch_alloc(scratch, n, size);
    char *from = items, *to = spare;

    for (size_t run = size; run < n * size; run *= 2) {
        char *tmp = from;

        merge_runs(from, to, n * size, run, size, compare);
        from = to;
        to = tmp;
    }
    if (from != items) {
        memcpy(items, from, n * size);
    }
    scratch_free(scratch, spare);
}

static unsigned int
digit(const struct radix_item *item, int byte)
{
    return item->key >> 8 * byte & 255;
}

/* Sorts 'from' by 'byte' into 'to'.  Does nothing and returns false if the
 * byte is the same in all items. */
static bool
sort_by_byte(const struct radix_item *from, struct radix_item *to, size_t n,
             int byte)
{
    size_t next[256] = { 0 };
    size_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        next[digit(&from[i], byte)]++;
    }
    if (next[digit(&from[0], byte)] == n) {
        return false;
    }
    for (int d = 0; d < 256; d++) {
        size_t count = next[d];

        next[d] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++) {
        to[next[digit(&from[i], byte)]++] = from[i];
    }
    return true;
}

struct radix_item *
radix_sort(struct radix_item *items, struct radix_item *spare, size_t n,
           int n_bytes)
{
    for (int byte = 0; n && byte < n_bytes; byte++) {
        if (sort_by_byte(items, spare, n, byte)) {
            struct radix_item *tmp = items;

            items = spare;
            spare = tmp;
        }
    }
    return items;
}

#define N_KEYS (sizeof ((struct order_key *) 0)->by / sizeof (double))

struct keyed_stage {
    struct order_key key;
    uint64_t id;
    int stage;
};

static int
compare_keys(const void *a_, const void *b_)
{
    const struct keyed_stage *a = a_, *b = b_;

    for (size_t i = 0; i < N_KEYS; i++) {
        if (a->key.by[i] != b->key.by[i]) {
            return a->key.by[i] < b->key.by[i] ? -1 : 1;
        }
    }
    if (a->id != b->id) {
        return a->id < b->id ? -1 : 1;
    }
    return (a->stage > b->stage) - (a->stage < b->stage);
}

void
sort_by_key(const struct order_problem *op,
            const struct order_options *options, order_key_func *key,
            int *order)
{
    struct keyed_stage *keyed = scratch_alloc(op->scratch, op->n_stages,
                                             sizeof *keyed);

    for (size_t i = 0; i < op->n_stages; i++) {
        keyed[i].key = key(&op->stages[i], options);
        for (size_t j = 0; j < N_KEYS; j++) {
            if (isnan(keyed[i].key.by[j])) {
                keyed[i].key.by[j] = INFINITY;
            }
        }
        keyed[i].id = op->stages[i].id;
        keyed[i].stage = i;
    }
    scratch_sort(op->scratch, keyed, op->n_stages, sizeof *keyed,
                 compare_keys);
    for (size_t i = 0; i < op->n_stages; i++) {
        order[i] = keyed[i].stage;
    }
    scratch_free(op->scratch, keyed);
}

void
sort_gather(const struct order_problem *op, int *order)
{
    int *gathered = scratch_alloc(op->scratch, op->n_stages, sizeof *gathered);
    size_t n = 0;

    for (size_t k = 0; k < op->n_stages; k++) {
        size_t group = order[k] < 0 ? 0 : op->stages[order[k]].traits.group;

        if (order[k] >= 0) {
            gathered[n++] = order[k];
        }
        for (size_t i = k + 1; group && i < op->n_stages; i++) {
            if (order[i] >= 0 && op->stages[order[i]].traits.group == group) {
                gathered[n++] = order[i];
                order[i] = -1;
            }
        }
    }
    memcpy(order, gathered, n * sizeof *order);
    scratch_free(op->scratch, gathered);
}
