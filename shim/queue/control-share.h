/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CONTROL_SHARE_H
#define SHIM_CONTROL_SHARE_H 1

/* The share of each job in the control class.
 *
 * A heartbeat must not wait behind its job's bulk, nor may a job send its bulk
 * as heartbeats.  So each job may send some of its packets before all others:
 * packets of flows that were registered as control, and packets that the job
 * has marked itself.  All jobs with a control class have equal parts of 1 % of
 * the uplink, one part being left for packets without a job, such as ARP.
 * With fixed parts a job always has its own, whatever the other jobs send;
 * what exceeds a part is sent as the job's other packets, with their DSCP.  So
 * a job that marks its bulk gains no more than its part.
 *
 * Each part is a token bucket of CONTROL_SHARE_BURST bytes.  Each job has a
 * queue in the control class; these queues are served in turn.
 *
 * A flow that exceeds its part would be reordered if its next packets went to
 * the control queue while earlier ones wait among the job's other packets.  So
 * these must leave first.
 *
 *    control_shares_set_rate(cs, bps, n_jobs);
 *    if (control_share_admits(&cs->jobs[slot], cs, now, length, left, joined,
 *                             32)) {
 *        ...to the control queue...
 *    } else {
 *        ...to the job's common queue...
 *    }
 *
 * Plain data, all zeros initially.  One thread. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/queue/pace.h"
#include "wire/shim-protocol.h"

#define CONTROL_SHARE 100       /* Control classes get 1/100 of the uplink. */
#define CONTROL_SHARE_BURST 4096        /* Bytes, which the last packet may
                                         * exceed. */

struct control_share {
    struct pace pace;
    uint16_t queue;             /* Of the job in the control class, 0 before
                                 * the first packet. */
    bool exceeded;              /* Control packets are in the common queue. */
    uint32_t after;             /* The common queue's 'left' when they no
                                 * longer are. */
};

struct control_shares {
    uint64_t bps;               /* Rate of a job. */
    struct control_share jobs[SHIM_MAX_SLOTS];
};

/* 'bps' is the rate of the uplink. */
static inline void
control_shares_set_rate(struct control_shares *cs, uint64_t bps,
                        uint32_t n_jobs)
{
    cs->bps = bps / CONTROL_SHARE / (n_jobs + 1);
    cs->bps = cs->bps ? cs->bps : 1;
}

/* Returns true if a packet of 'length' bytes may join the control queue.
 * 'joined' packets have joined the job's common queue so far, 'left' have left
 * it; 'batch' packets may join it before the next ones are counted. */
static inline bool
control_share_admits(struct control_share *share,
                     const struct control_shares *cs, uint64_t now,
                     uint32_t length, uint32_t left, uint32_t joined,
                     uint32_t batch)
{
    if (share->pace.bps != cs->bps) {
        pace_set_rate(&share->pace, now, cs->bps, CONTROL_SHARE_BURST);
    }
    pace_forget(&share->pace, now, 0);
    if (share->exceeded && left != joined
        && (int32_t) (left - share->after) < 0) {
        /* Earlier ones wait. */
    } else if (pace_due(&share->pace) <= now) {
        pace_take(&share->pace, length);
        share->exceeded = false;
        return true;
    }
    share->exceeded = true;
    share->after = joined + batch;
    return false;
}

#endif /* shim/queue/control-share.h */
