/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_ALLOCATE_H
#define SHIM_CC_ALLOCATE_H 1

/* How much of a link its flows may have together, and each of them.
 *
 *
 * Motivation
 * ==========
 *
 * Most of the queues of training are at a host's downlink, and the host's own
 * shim knows all of it: the capacity, the flows and their ranks.  So nobody
 * has to probe.  Two pure functions say what to grant.
 *
 * The budget keeps the sum a little below the link.  A phantom queue 'v' is
 * filled by what arrives and drained at gamma * C:
 *
 *    v <- max(0, v + arrived - gamma C T)
 *    A  = clamp(gamma C - other - beta max(0, v - slack) / d, C / 20, gamma C)
 *
 * where 'other' is the rate of what takes no grants and 'd' the longest round
 * trip of the flows, or the time in which the slack arrives if that is longer.
 * The phantom queue takes a quarter of the grants at most: it drains then as
 * well, and whoever is first in the order does not stand still because of what
 * those behind sent before they were told.  If grants are honoured after d,
 * then v decays without overshoot for beta <= 1/e, whatever C, d and the number
 * of flows are, as the grants sum to A.  The slack is what paced senders that
 * wake up late send at once; without it their jitter would cost capacity.
 *
 * What is in the phantom queue of those behind in the order is no reason to
 * grant less to those before them: where the network serves the order, they do
 * not wait for it, and where it does not, granting them less only gives the
 * place to what is there already.  So each share has its part of the phantom
 * queue, and A is as large for a rank as if those behind had none.
 *
 * The allocation fills A over the ranks.  Each flow first has an equal part of
 * the floor, then ranks are served in their order, max-min inside a rank, and
 * what no demand claims is spread over all, so that a flow whose demand was
 * underestimated can show it.
 *
 *
 * Usage
 * =====
 *
 *    cc_budget(&budget, &law, &seen);
 *    cc_divide(shares, n, &budget, law.floor);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Pure functions over the caller's memory. */

#include <stddef.h>
#include <stdint.h>

/* One flow, or what else wants a part. */
struct cc_share {
    uint64_t demand;            /* Bit/s that it can use. */
    uint64_t rate;              /* Bit/s that it gets. */
    double excess;              /* Bytes of the phantom queue. */
    uint32_t rank;              /* 0 is served first. */
    uint32_t id;                /* The caller's. */
};

/* Shares of a link. */
struct cc_law {
    double gamma;               /* Of the link, to be used: 0.5 to 1. */
    double beta;                /* Of the phantom queue, to be drained in a
                                 * round trip: 0 to 1. */
    double floor;               /* Of the budget, spread over all flows. */
};

struct cc_budget {
    double phantom;             /* Bytes. */
    double most, least;         /* Bytes a second... */
    double excess;              /* ...less, for so many bytes too much... */
    double drain;               /* ...each of them so much. */
};

/* What was seen of a link since the last step. */
struct cc_load {
    uint64_t capacity;          /* Bit/s. */
    uint64_t bytes;             /* That arrived. */
    uint64_t ns;                /* How long that was. */
    uint64_t other;             /* Bit/s of what takes no grants. */
    uint64_t rtt_ns;            /* The longest of the flows; 0 if some of
                                 * them cannot be told anything: then an
                                 * excess is theirs, and the others would
                                 * only make room for more of it. */
    uint64_t slack;             /* Bytes of phantom queue that are no sign of
                                 * too much. */
};

#define CC_LAW_DEFAULT { .gamma = 0.97, .beta = 0.3, .floor = 0.02 }

uint64_t cc_budget(struct cc_budget *, const struct cc_law *,
                   const struct cc_load *);
void cc_divide(struct cc_share *, size_t n, const struct cc_budget *,
               double floor);

#endif /* shim/cc/allocate.h */
