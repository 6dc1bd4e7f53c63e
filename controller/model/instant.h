/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INSTANT_H
#define INSTANT_H 1

/* One instant on both clocks.
 *
 * The rows of the databases and of the history have wall time, because only
 * that is the same on all machines and after a reboot.  The wall clock can be
 * set at any time, by hours, and an age computed with it would end searches
 * that run.  So every age and every timeout of the controller is measured by
 * the monotonic clock, time_msec(), from the moment at which the controller
 * first saw the row; the stamp of the row only identifies it, is shown, and
 * orders rows of one batch.
 *
 * A controller that has just started has not seen its rows before.  Only then
 * it uses their stamps: it moves each to the monotonic clock once, with a
 * stamp of the future as now.  If the wall clock is wrong at that time, ages
 * are wrong by as much: aging in the order, and what is left of an override
 * with an end.  No stage, cojob or lease ends by such an age.
 *
 *    struct instant now = instant_now();
 *    began_ms = instant_msec(&now, began);
 *
 * No state. */

#include <stdint.h>

#include "timeval.h"
#include "util.h"

struct instant {
    int64_t epoch_ms;           /* time_wall_msec(). */
    long long msec;             /* time_msec() at the same instant. */
};

static inline struct instant
instant_now(void)
{
    return (struct instant) { time_wall_msec(), time_msec() };
}

/* Returns the time_msec() of the wall time 'epoch_ms', not after 'now'. */
static inline long long
instant_msec(const struct instant *now, int64_t epoch_ms)
{
    return now->msec - MAX(0, now->epoch_ms - epoch_ms);
}

#endif /* controller/model/instant.h */
