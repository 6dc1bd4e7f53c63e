/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ORDER_MEMORY_H
#define ORDER_MEMORY_H 1

/* Memory for the order code, which has nobody to report a failure to: without
 * memory for a few arrays the program ends. */

#include <stdio.h>
#include <stdlib.h>

static inline void *
order_must(void *p)
{
    if (!p) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return p;
}

/* Returns 'n' zeroed elements of 'size' bytes; never NULL, even for 'n' 0. */
static inline void *
order_alloc(size_t n, size_t size)
{
    return order_must(calloc(n ? n : 1, size));
}

/* Returns 'array' with room for one more than 'n' elements of 'size' bytes;
 * '*allocated' is what it has room for. */
static inline void *
order_grow(void *array, size_t n, size_t *allocated, size_t size)
{
    if (n < *allocated) {
        return array;
    }
    *allocated = 2 * *allocated + 4;
    return order_must(reallocarray(array, *allocated, size));
}

/* Returns an array of 'n' elements of 'size' bytes, not initialized, in place
 * of 'old'. */
static inline void *
order_renew(void *old, size_t n, size_t size)
{
    free(old);
    return order_must(reallocarray(NULL, n ? n : 1, size));
}

/* Has 'size' bytes at 'p' brought near, for soon. */
static inline void
order_prefetch(const void *p, size_t size)
{
    for (size_t i = 0; i < size; i += 64) {
        __builtin_prefetch((const char *) p + i);
    }
}

#endif /* order/memory.h */
