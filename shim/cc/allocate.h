/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_ALLOCATE_H
#define SHIM_CC_ALLOCATE_H 1

/* The allocation law: how much of a link to grant, and to which flow.
 *
 * In training, most queues build up at a host's downlink.  The host's own shim
 * has all that is needed to divide it: the capacity, the flows and their
 * ranks.  So no flow has to probe.
 *
 * The budget, the sum of all grants, keeps the link slightly below capacity.
 * A phantom queue 'v' fills with what arrives and drains at gamma * C:
 *
 *    v <- max(0, v + arrived - gamma C T)
 *    A  = clamp(gamma C - other - beta max(0, v - slack) / d, C / 20, gamma C)
 *
 * 'other' is the rate of traffic without grants.  'd' is the longest round
 * trip of the flows, or the time in which the slack arrives if that is longer.
 * The slack is the burst that paced senders which wake up late send at once;
 * without it their jitter would cost capacity.  If grants are honoured after
 * d, v decays without overshoot for beta <= 1/e, whatever C, d and the number
 * of flows are, since the grants sum to A.
 *
 * The phantom queue reduces the grants by a quarter at most: that drains it
 * too, and the first rank does not stop because of what later ranks sent
 * before their grants arrived.  For the same reason each share has its own
 * part of the phantom queue, and the budget of a rank ignores the parts of
 * later ranks.  Where the network serves the ranks in order, earlier ranks do
 * not wait for those bytes; elsewhere, a lower grant would not remove them.
 *
 * What a flow is granted and cannot use, since its sender's uplink is busy
 * with other flows, is granted again: while its sender's shim reports that,
 * the part of gamma C - other that exceeds all arrivals of the last
 * milliseconds is added to A.  How much each flow uses would be known only
 * after several frames of each, as long as a burst.  If the first flow does
 * send after all, the phantom queue stops the addition.  Without reports,
 * gaps between the frames of steady flows would be granted again.  If the
 * switch serves the ranks in order, no flow harms an earlier one: then all get
 * what they can use until the phantom queue exceeds its slack.
 *
 * The allocation fills A.  Each flow first gets an equal part of the floor.
 * Then the ranks are served in order, max-min within a rank.  The rest is
 * divided among all flows, so that a flow with an underestimated demand can
 * show it.
 *
 *    cc_budget(&budget, &law, &load);
 *    cc_divide(shares, n, &budget, law.floor);
 *
 * Pure functions over the caller's memory. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A flow's share of the link. */
struct cc_share {
    uint64_t demand;            /* Bit/s that it can use. */
    uint64_t rate;              /* Bit/s that it gets. */
    double excess;              /* Bytes of the phantom queue. */
    uint32_t rank;              /* 0 is served first. */
    uint32_t id;                /* The caller's. */
};

struct cc_law {
    double gamma;               /* Part of the link to use: 0.5 to 1. */
    double beta;                /* Part of the phantom queue to drain in a
                                 * round trip: 0 to 1. */
    double floor;               /* Part of the budget that is divided equally
                                 * among all flows. */
};

struct cc_budget {
    double phantom;             /* Length of the phantom queue, bytes. */
    double most, least;         /* Bounds of the budget, bytes/s. */
    double excess;              /* Phantom queue beyond the slack, bytes. */
    double drain;               /* Reduction of the budget for each byte of
                                 * excess, bytes/s. */
    double used;                /* Arrivals, smoothed, bytes/s. */
    double again;               /* Budget that is granted again, bytes/s;
                                 * CC_UNLIMITED: no flow needs a limit. */
};

/* Measurements of a link since the last step. */
struct cc_load {
    uint64_t capacity;          /* Bit/s. */
    uint64_t bytes;             /* Arrived. */
    uint64_t ns;                /* Duration. */
    uint64_t other;             /* Bit/s of traffic without grants. */
    uint64_t rtt_ns;            /* Longest round trip of the flows, or 0 if
                                 * one of them cannot be limited: the excess
                                 * is ignored then, since lower grants would
                                 * only let that flow send more. */
    uint64_t slack;             /* Bytes of phantom queue that are normal. */
    bool busy;                  /* Flows with grants have data to send. */
    bool elsewhere;             /* A sender of flows with grants is busy with
                                 * other flows. */
    bool sorted;                /* The switch serves the ranks in order. */
};

#define CC_UNLIMITED 1e17       /* More than all flows can use, bytes/s. */

#define CC_LAW_DEFAULT { .gamma = 0.97, .beta = 0.3, .floor = 0.02 }

/* Updates the budget.  Returns the bit/s that may be granted to all flows. */
uint64_t cc_budget(struct cc_budget *, const struct cc_law *,
                   const struct cc_load *);

/* Sorts the shares by rank and demand, and sets their rates.  The sum of the
 * rates is the budget except for rounding. */
void cc_divide(struct cc_share *, size_t n, const struct cc_budget *,
               double floor);

#endif /* shim/cc/allocate.h */
