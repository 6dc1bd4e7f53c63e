/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H 1

/* The clocks of the system, each in the unit that its readers need.
 *
 *    int64_t deadline = clock_monotonic_us() + 1000000;
 *    while (clock_monotonic_us() < deadline) ...
 *
 * The monotonic clock (CLOCK_MONOTONIC) never goes back and is the same for
 * all processes of a host: intervals and timeouts use it.  The wall clock may
 * be adjusted at any time: only what people read uses it.
 *
 * Thread-safe. */

#include <stdint.h>
#include <time.h>

/* Nanoseconds of 'clock', as of clock_gettime(). */
static inline int64_t
clock_ns(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (int64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline int64_t
clock_monotonic_us(void)
{
    return clock_ns(CLOCK_MONOTONIC) / 1000;
}

/* The same clock, in milliseconds. */
static inline int64_t
clock_monotonic_ms(void)
{
    return clock_monotonic_us() / 1000;
}

/* The same clock, in seconds. */
static inline double
clock_monotonic_s(void)
{
    return clock_ns(CLOCK_MONOTONIC) * 1e-9;
}

/* Milliseconds since the epoch, as JSON lines have it. */
static inline int64_t
clock_wall_ms(void)
{
    return clock_ns(CLOCK_REALTIME) / 1000000;
}

/* Seconds of processor time that this process has used, in all threads. */
static inline double
clock_cpu_s(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID) * 1e-9;
}

#endif /* base/clock.h */
