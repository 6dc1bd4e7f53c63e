/* SPDX-License-Identifier: Apache-2.0 */

#include "order/problem/scratch.h"

#include <assert.h>
#include <string.h>

#include "order/problem/memory.h"

void
scratch_uninit(struct scratch *scratch)
{
    for (int i = 0; i < SCRATCH_DEPTH; i++) {
        free(scratch->arrays[i].memory);
    }
    if (scratch->kept) {
        scratch->uninit_kept(scratch->kept);
        free(scratch->kept);
    }
}

void *
scratch_keep(struct scratch *scratch, size_t size, void (*uninit)(void *))
{
    if (!scratch->kept) {
        scratch->kept = order_alloc(1, size);
        scratch->uninit_kept = uninit;
    }
    assert(scratch->uninit_kept == uninit);
    return scratch->kept;
}

void *
scratch_alloc(struct scratch *scratch, size_t n, size_t size)
{
    struct scratch_array *array = &scratch->arrays[scratch->n_used++];

    assert(scratch->n_used <= SCRATCH_DEPTH);
    if (!array->memory || n * size > array->size) {
        array->size = 2 * n * size;
        array->memory = order_renew(array->memory, array->size, 1);
    }
    memset(array->memory, 0, n * size);
    return array->memory;
}

void
scratch_free(struct scratch *scratch, void *memory)
{
    scratch->n_used--;
    assert(scratch->arrays[scratch->n_used].memory == memory);
}
