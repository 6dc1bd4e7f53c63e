/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_COUNTER_H
#define SHIM_COUNTER_H 1

/* Counters and flags that one thread writes and others read.
 *
 * With one writer an addition needs no locked instruction; a reader sees some
 * recent value and never half of one. */

#include <stdint.h>

/* A thread that reads a value by LOAD() also sees what was written before its
 * STORE(). */
#define LOAD(P) __atomic_load_n(P, __ATOMIC_ACQUIRE)
#define STORE(P, V) __atomic_store_n(P, V, __ATOMIC_RELEASE)

static inline void
counter_add(uint64_t *counter, uint64_t n)
{
    __atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static inline uint64_t
counter_get(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

#endif /* shim/clock/counter.h */
