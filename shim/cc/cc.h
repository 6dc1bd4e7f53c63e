/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_CC_H
#define SHIM_CC_CC_H 1

/* Explicit congestion control at the edge.
 *
 *
 * Motivation
 * ==========
 *
 * When eight hosts answer one, the queue is before that one's downlink, and no
 * switch needs to be asked: the receiving shim knows the link, the flows and
 * their ranks.  It divides the link (see allocate.h) and makes it so:
 *
 *    the peer's shim has shown itself     it is told each flow's rate, and
 *                                         paces; windows bound the rest
 *    it has not, the SYNs were seen       windows in the acknowledgements
 *    neither                              plain TCP
 *
 * As a sender's shim it paces the flows that it was told rates for.  If they
 * are more than its own uplink carries, the uplink's queues divide it as the
 * allocation would: by rank, in equal parts inside a rank, with a floor.
 *
 * Flows of less than CC_SMALL_BYTES in CC_SMALL_NS, and those of the control
 * ports, are neither paced nor bounded; the latter have the control level and
 * CC_CONTROL_DSCP besides.  Small flows keep their job's, or an application
 * could raise itself by sending little at a time.
 *
 * The core of the network, which no host sees, is guarded by ECN: if both
 * shims have agreed and the two hosts do not use it themselves, the sender's
 * shim marks data as ECN-capable, and the receiver's takes marks out again and
 * lowers the flow's rate by their share, as DCTCP does.
 *
 *
 * Usage
 * =====
 *
 *    cc = cc_create(&config);
 *    ...from the host: cc_from_host(cc, &frame, &verdict, now)...
 *    ...from the network: if (!cc_from_uplink(cc, &frame, slot, now)) drop...
 *    ...once a turn: cc_turn(cc, now)...
 *
 *
 * And when another shim's place is taken, before the first packet:
 *
 *    cc_restore(cc, body, now);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * What the config points to stays the caller's.  The forwarding thread, but
 * for the functions marked otherwise.  Nothing is allocated after the start
 * and nothing logged. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct cc;
struct job_slots;
struct verdict;

#define CC_MAX_FLOWS 4096
#define CC_MAX_CONTROL_PORTS 16
#define CC_CONTROL_DSCP 56      /* CS7: the switches' first queue. */
#define CC_SMALL_BYTES 16384u
#define CC_SMALL_NS 10000000u

/* What cc_save() writes at most: see wire/shim-connections.h. */
#define CC_HANDOVER_BYTES (512u << 10)

/* A frame.  Hooks may move its beginning by HELLO_ROOM to either side. */
struct cc_frame {
    uint8_t *data;
    uint32_t length;
    uint32_t room;              /* Bytes before 'data'. */
};

struct cc_config {
    const struct job_slots *slots;
    uint64_t downlink_bps;
    uint64_t seed;              /* Random. */
    uint32_t mtu;
    uint32_t max_flows;         /* To know at a time, 1 to CC_MAX_FLOWS. */
    uint16_t control_ports[CC_MAX_CONTROL_PORTS];       /* 0: none. */

    /* The egress: see loop/egress.h. */
    void *aux;
    uint16_t (*flow_queue)(void *aux, uint16_t slot);
    void (*flow_free)(void *aux, uint16_t queue);
    void (*flow_rate)(void *aux, uint16_t queue, uint64_t bps);
    void (*flow_start)(void *aux, uint16_t queue, uint32_t bytes);
    bool (*flow_started)(void *aux, uint16_t queue);
    bool (*flow_empty)(void *aux, uint16_t queue);

    /* Sends a frame to the uplink, at the control level. */
    void (*send)(void *aux, const uint8_t *frame, size_t length);
};

struct cc *cc_create(const struct cc_config *);
void cc_destroy(struct cc *);

void cc_from_host(struct cc *, struct cc_frame *, struct verdict *,
                  uint64_t now);
bool cc_from_uplink(struct cc *, struct cc_frame *, uint16_t slot,
                    uint64_t now);
void cc_turn(struct cc *, uint64_t now);

/* Any thread, if no other one is at it. */
size_t cc_save(struct cc *, void *body);
void cc_restore(struct cc *, const void *body, uint64_t now);

/* The control thread. */
void cc_set_law(struct cc *, const struct shim_congestion *);
void cc_stats(const struct cc *, struct shim_stats *);

#endif /* shim/cc/cc.h */
