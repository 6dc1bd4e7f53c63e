/* SPDX-License-Identifier: Apache-2.0 */

#include "order/scratch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "order/memory.h"

void
scratch_uninit(struct scratch *scratch)
{
    for (int i = 0; i < SCRATCH_DEPTH; i++) {
        free(scratch->arrays[i].memory);
    }
}

void *
scratch_take(struct scratch *scratch, size_t n, size_t size)
{
    struct scratch_array *array = &scratch->arrays[scratch->n_taken++];

    assert(scratch->n_taken <= SCRATCH_DEPTH);
    if (!array->memory || n * size > array->size) {
        array->size = 2 * n * size;
        array->memory = order_renew(array->memory, array->size, 1);
    }
    memset(array->memory, 0, n * size);
    return array->memory;
}

void
scratch_give(struct scratch *scratch, void *memory)
{
    scratch->n_taken--;
    assert(scratch->arrays[scratch->n_taken].memory == memory);
}

/* Merges the sorted 'a' and 'b', which have so many bytes, into 'to'. */
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

/* Merges runs of 'run' bytes of 'from' to runs of twice as many of 'to'. */
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
    char *spare = scratch_take(scratch, n, size);
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
    scratch_give(scratch, spare);
}
