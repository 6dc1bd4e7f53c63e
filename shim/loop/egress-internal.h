/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_EGRESS_INTERNAL_H
#define SHIM_EGRESS_INTERNAL_H 1

/* What the files of egress.h share: egress.c makes it and is told what holds,
 * egress-burst.c queues, sends and counts frames, egress-claim.c finds out
 * whose they are.
 *
 * Only those three include this. */

#include "shim/clock/counter.h"
#include "shim/loop/egress.h"
#include "shim/queue/pace.h"
#include "shim/queue/rank-queue.h"

struct egress {
    struct egress_config config;
    struct rank_queues *queues;
    struct pace pace;           /* Of the uplink. */
    uint32_t guard_applied;     /* 'guard' of the queues. */
    uint32_t places_seen;       /* See job_slots_places(). */
    bool leased;                /* The queues have the slots' places. */
    bool behind;                /* Something waits since the last send. */
    uint8_t n_orders;           /* Changes of the slots' places; runs over. */
    uint64_t now;               /* Of the last send. */

    /* The forwarding thread writes, the control thread reads. */
    uint64_t tx_packets, tx_bytes;
    uint64_t tx_ip_bytes, tx_default_bytes;
    uint64_t queue_dropped;

    /* The control thread writes, the forwarding thread reads. */
    uint64_t rate_bps;
    uint32_t guard;             /* As in struct shim_guard. */
};

/* Takes over what the control thread has changed. */
void egress_apply(struct egress *, uint64_t now);

/* Frees and counts what cannot be sent. */
void egress_drop(struct egress *, const struct queue_item *);

#endif /* shim/loop/egress-internal.h */
