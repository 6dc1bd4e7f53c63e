/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CLOCK_H
#define SHIM_CLOCK_H 1

/* The shim's time: nanoseconds of CLOCK_MONOTONIC. */

#include <stdint.h>
#include <time.h>

static inline uint64_t
clock_read(clockid_t clock)
{
    struct timespec ts = { 0, 0 };

    clock_gettime(clock, &ts);
    return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
}

static inline uint64_t
clock_now(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

#endif /* shim/clock/clock.h */
