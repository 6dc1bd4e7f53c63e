/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ORDER_MEMORY_H
#define ORDER_MEMORY_H 1

/* Memory for the order code and the simulator, which link with libc and libm
 * only.  If malloc() fails, the program prints "out of memory" and aborts. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static inline char *
order_strdup(const char *s)
{
    return order_must(strdup(s));
}

/* Returns 'array', which has '*allocated' elements of 'size' bytes, with
 * space for at least 'n', and updates '*allocated'. */
static inline void *
order_grow(void *array, size_t n, size_t *allocated, size_t size)
{
    if (n > *allocated) {
        *allocated = n > 2 * *allocated + 4 ? n : 2 * *allocated + 4;
        array = order_must(reallocarray(array, *allocated, size));
    }
    return array;
}

/* Frees 'old' and returns an uninitialized array of 'n' elements of 'size'
 * bytes. */
static inline void *
order_renew(void *old, size_t n, size_t size)
{
    free(old);
    return order_must(reallocarray(NULL, n ? n : 1, size));
}

/* Prefetches 'size' bytes at 'p' into the cache. */
static inline void
order_prefetch(const void *p, size_t size)
{
    for (size_t i = 0; i < size; i += 64) {
        __builtin_prefetch((const char *) p + i);
    }
}

#endif /* order/problem/memory.h */
