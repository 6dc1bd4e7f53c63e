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

/* Begins to watch; the first heartbeat is due at once. */
void heartbeat_start(struct heartbeat *, int64_t timeout_us, int64_t now);

/* Ends watching: silence is no longer too long. */
void heartbeat_stop(struct heartbeat *);

/* Returns true once per interval. */
bool heartbeat_due(struct heartbeat *, int64_t now);

/* When the next one is due. */
int64_t heartbeat_next_us(const struct heartbeat *);

void heartbeat_heard(struct heartbeat *, int64_t now);
bool heartbeat_is_silent(const struct heartbeat *, int64_t now);
int64_t heartbeat_silence_s(const struct heartbeat *, int64_t now);

#endif /* trainer/net/heartbeat.h */
