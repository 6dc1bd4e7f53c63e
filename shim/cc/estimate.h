/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_ESTIMATE_H
#define SHIM_CC_ESTIMATE_H 1

/* What can be told of a flow from its packets: rate, demand, round trip.
 *
 *
 * Motivation
 * ==========
 *
 * Rates are those of whole windows of time, the last two, so that a flow that
 * pauses for a moment keeps its part.  A flow that uses most of what it has
 * may want anything; one that does not wants a little more than it uses.  What
 * a flow claims about itself is nowhere asked for.
 *
 * Round trips are measured where the receiver is: from the first
 * acknowledgement with a new time stamp to the first data that echo it, and
 * from the SYN to its answer.  Waiting makes a sample longer, never shorter,
 * so the shortest of the last seconds counts, of all flows to the same host:
 * what a flow sends that waits behind others never comes at once.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The structs are the caller's, all zeros at first.  One thread.  Times are
 * nanoseconds of a clock that does not go back. */

#include <stdbool.h>
#include <stdint.h>

struct cc_rate {
    uint64_t since;             /* Of the window that is open. */
    uint64_t bytes;             /* In it. */
    uint64_t bps, before;       /* Of the last one and that before. */
};

void cc_rate_restart(struct cc_rate *, uint64_t now, uint64_t bps);
bool cc_rate_step(struct cc_rate *, uint64_t now, uint64_t window);
uint64_t cc_rate_demand(const struct cc_rate *, uint64_t granted,
                        uint64_t line);

struct cc_echo {
    uint64_t asked;             /* When 'stamp' left, 0: none has. */
    uint32_t stamp;             /* The last one that did. */
    bool waiting;               /* For its echo. */
};

void cc_echo_sent(struct cc_echo *, uint32_t stamp, uint64_t now);
uint64_t cc_echo_received(struct cc_echo *, uint32_t echo, uint64_t now);

struct cc_rtt {
    uint64_t min, older;        /* Shortest of this period and the last. */
    uint64_t since;             /* Of this period. */
};

void cc_rtt_sample(struct cc_rtt *, uint64_t rtt, uint64_t now);
uint64_t cc_rtt_get(const struct cc_rtt *);

#endif /* shim/cc/estimate.h */
