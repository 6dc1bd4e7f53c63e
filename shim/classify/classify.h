/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CLASSIFY_H
#define SHIM_CLASSIFY_H 1

/* Frame -> job slot, level, DSCP: parser, flow table and slots together.
 *
 *    what                           level            DSCP
 *    a known flow's packet          its slot's       its slot's
 *    unknown TCP and UDP            default          default, and a miss
 *    other IP, fragments            default          default
 *    IPv6 neighbour discovery       control          default
 *    not IP (ARP, LLDP)             control          -
 *    malformed                      default          left alone
 *
 * A TCP acknowledgement is its flow's packet like any other; within its job
 * it has a queue of its own, see ack-queue.h.  Without lease a known flow's
 * packet is treated as unknown, without a miss.
 *
 * A burst goes through stage by stage: all frames are parsed, then all flows
 * looked up, so that the memory that one needs is on its way while others are
 * worked on.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A classifier is one thread's: a miss is reported from here. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/classify/flow-table.h"
#include "shim/classify/job-slot.h"
#include "shim/classify/miss.h"
#include "shim/classify/parse.h"

#define CLASSIFY_BURST 64       /* Frames at a time, at most. */

struct classifier {
    struct flow_table *flows;
    const struct job_slots *slots;
    struct miss *misses;
    bool vxlan;                 /* Look into tunnels. */
    uint64_t n_misses;          /* Packets of unknown flows. */
    uint64_t n_malformed;       /* Packets. */
};

struct packet {
    uint8_t *data;
    uint32_t length;            /* Of it, all in one piece. */
};

struct verdict {
    uint16_t slot;              /* 0: no job. */
    uint16_t l3;                /* Offset of the IP header, 0 if none. */
    uint8_t family;             /* 4 or 6 if the DSCP is to be written. */
    bool is_ip;
    uint16_t queue;             /* Of its flow, see egress_flow_queue(); 0: the
                                 * job's common one. */
    struct treatment treatment;
};

/* 'leased' is job_slots_leased() at 'now'.  Of 1 to CLASSIFY_BURST packets. */
void classify_burst_from_host(struct classifier *, const struct packet *,
                              uint32_t n, uint64_t now, bool leased,
                              struct verdict *);
void classify_burst_to_host(struct classifier *, const struct packet *,
                            uint32_t n, uint16_t *slots);

/* Of packets from the host that were classified before: the slots of flows
 * that are known by now, 0 of others.  Nothing is reported. */
void classify_burst_again(struct classifier *, const struct packet *,
                          uint32_t n, uint16_t *slots);

/* Of one. */
void classify_from_host(struct classifier *, const uint8_t *frame,
                        size_t length, uint64_t now, bool leased,
                        struct verdict *);
uint16_t classify_to_host(struct classifier *, const uint8_t *frame,
                          size_t length);

#endif /* shim/classify/classify.h */
