/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H 1

/* Memory of the simulator, which links without libopenvswitch: as in the rest
 * of the project, a program that has none left ends. */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static inline void *
sim_must(void *p)
{
    if (!p) {
        abort();
    }
    return p;
}

/* 'n' zeroed elements of 'size' bytes; a valid pointer for 'n' of 0 too. */
static inline void *
sim_calloc(size_t n, size_t size)
{
    return sim_must(calloc(n ? n : 1, size));
}

static inline char *
sim_strdup(const char *s)
{
    return sim_must(strdup(s));
}

/* Returns 'p', an array of '*allocated' elements of 'size' bytes, with room
 * for at least 'n'. */
static inline void *
sim_grow(void *p, size_t n, size_t *allocated, size_t size)
{
    if (n > *allocated) {
        *allocated = n > 2 * *allocated ? n : 2 * *allocated;
        p = sim_must(reallocarray(p, *allocated, size));
    }
    return p;
}

#endif /* sim/memory.h */
