/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_COUNTER_H
#define SHIM_COUNTER_H 1

/* Counters that one thread writes and others read.
 *
 * With one writer an addition needs no locked instruction; a reader sees some
 * recent value and never half of one. */

#include <stdint.h>

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
