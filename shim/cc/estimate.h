/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_ESTIMATE_H
#define SHIM_CC_ESTIMATE_H 1

/* Estimates of a flow from its packets: rate, demand, round trip.
 *
 * The rate is that of the last two whole windows of time, so that a flow which
 * pauses for a moment keeps its share.  A flow that uses most of its grant may
 * use the whole link; the demand of others is a little more than their rate.
 *
 * Round trips are measured at the receiver: from the first ACK with a new
 * timestamp to the first data that echo it, and from the SYN to its reply.
 * Queues make samples longer, never shorter, so the shortest one of the last
 * seconds counts, of all flows to a host: all data of a flow may have waited
 * in a queue.
 *
 * The structs are the caller's, initially all zeros.  One thread.  Times are
 * nanoseconds of a monotonic clock. */

#include <stdbool.h>
#include <stdint.h>

#define MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

static inline uint64_t
larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

struct cc_rate {
    uint64_t since;             /* Start of the current window. */
    uint64_t bytes;             /* In the current window. */
    uint64_t bps, before;       /* Rate in the last window, and before it. */
};

/* Starts again, as if the rate had been 'bps'. */
void cc_rate_restart(struct cc_rate *, uint64_t now, uint64_t bps);

/* Ends the current window if it has the length 'window'.  Returns true if it
 * has. */
bool cc_rate_step(struct cc_rate *, uint64_t now, uint64_t window);

/* Returns the rate that a flow can use, at most 'line'. */
uint64_t cc_rate_demand(const struct cc_rate *, uint64_t granted,
                        uint64_t line);

struct cc_echo {
    uint64_t sent_at;           /* Time at which 'stamp' was sent, 0: never. */
    uint32_t stamp;             /* Last timestamp that was measured. */
    bool waiting;               /* For the echo of 'stamp'. */
};

/* A segment with the timestamp 'stamp' leaves. */
void cc_echo_sent(struct cc_echo *, uint32_t stamp, uint64_t now);

/* A segment that echoes 'echo' has arrived.  Returns the round trip, or 0 if
 * that is not known. */
uint64_t cc_echo_received(struct cc_echo *, uint32_t echo, uint64_t now);

struct cc_rtt {
    uint64_t min, older;        /* Shortest in this period, in the last one. */
    uint64_t since;             /* Start of this period. */
};

/* Adds a sample unless it is 0. */
void cc_rtt_sample(struct cc_rtt *, uint64_t rtt, uint64_t now);

/* Returns the shortest recent round trip, a default before the first. */
uint64_t cc_rtt_get(const struct cc_rtt *);

#endif /* shim/cc/estimate.h */
