/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HEARTBEAT_H
#define HEARTBEAT_H 1

/* When to send a heartbeat to the other end of a connection, and when its
 * silence counts as death.
 *
 * A connection without data looks the same whether the other machine computes
 * or is gone.  So both ends send FRAME_HEARTBEAT four times per timeout, but
 * at least once a second, and give up an end that was silent for the timeout.
 *
 *    heartbeat_start(&heartbeat, timeout_us, now);
 *    if (heartbeat_due(&heartbeat, now)) {
 *        ...send a FRAME_HEARTBEAT...
 *    }
 *    heartbeat_heard(&heartbeat, now);         // Anything was received.
 *    if (heartbeat_is_silent(&heartbeat, now)) {
 *        ...heartbeat_silence_s()...
 *    }
 *
 * Plain data.  Times are of clock_monotonic_us(), in microseconds. */

#include <stdbool.h>
#include <stdint.h>

struct heartbeat {
    int64_t timeout_us;         /* 0: no silence is too long. */
    int64_t sent_us;            /* Last heartbeat sent; 0: none yet. */
    int64_t heard_us;           /* Last sign of life; 0: not watched. */
};

/* How often a process registers the port of its heartbeats. */
#define HEARTBEAT_REGISTER_US 5000000

/* Begins to watch; the first heartbeat is due at once. */
static inline void
heartbeat_start(struct heartbeat *hb, int64_t timeout_us, int64_t now)
{
    *hb = (struct heartbeat) { .timeout_us = timeout_us, .heard_us = now };
}

/* Ends watching: silence is no longer too long. */
static inline void
heartbeat_stop(struct heartbeat *hb)
{
    hb->heard_us = 0;
}

/* When the next one is due. */
static inline int64_t
heartbeat_next_us(const struct heartbeat *hb)
{
    int64_t part = hb->timeout_us / 4;

    return hb->sent_us + (part && part < 1000000 ? part : 1000000);
}

/* Returns true once per interval. */
static inline bool
heartbeat_due(struct heartbeat *hb, int64_t now)
{
    bool due = !hb->sent_us || now >= heartbeat_next_us(hb);

    hb->sent_us = due ? now : hb->sent_us;
    return due;
}

static inline void
heartbeat_heard(struct heartbeat *hb, int64_t now)
{
    hb->heard_us = now;
}

static inline bool
heartbeat_is_silent(const struct heartbeat *hb, int64_t now)
{
    return hb->timeout_us && hb->heard_us
           && now - hb->heard_us > hb->timeout_us;
}

static inline int64_t
heartbeat_silence_s(const struct heartbeat *hb, int64_t now)
{
    return (now - hb->heard_us) / 1000000;
}

#endif /* trainer/net/heartbeat.h */
