/* SPDX-License-Identifier: Apache-2.0 */

#ifndef COOLDOWN_H
#define COOLDOWN_H 1

/* Pauses between runs of work that takes longer the larger the cluster is.
 *
 * Copying the intent and computing an order visit all stages.  If that was
 * repeated for each change, ten times as many changes would cost a hundred
 * times the work, and a controller with thousands of stages would do nothing
 * else.  So such work takes a quarter of the time, if it takes more than a
 * moment.
 *
 *    if (now >= cooldown.until) {
 *        long long began = time_usec();
 *        ...work...
 *        cooldown_after(&cooldown, now, time_usec() - began);
 *    }
 *    poll_timer_wait_until(cooldown.until);
 *
 * No other state. */

#define COOLDOWN_FACTOR 4
#define COOLDOWN_MOMENT_US 5000

struct cooldown {
    long long until; /* Time, on the clock of 'now'; 0 at first. */
};

/* The work that began at 'now', in ms, has taken 'us' microseconds. */
static inline void
cooldown_after(struct cooldown *cooldown, long long now, long long us)
{
    cooldown->until =
        now + (us > COOLDOWN_MOMENT_US ? COOLDOWN_FACTOR * us / 1000 : 0);
}

#endif /* controller/model/cooldown.h */
