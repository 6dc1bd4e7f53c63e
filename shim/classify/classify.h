/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CLASSIFY_H
#define SHIM_CLASSIFY_H 1

/* Classification: frame -> job slot, level, DSCP.
 *
 * A packet from the host has the slot and the class of its tag
 * (wire/slot-tag.h):
 *
 *    packet                         level            DSCP
 *    of a slot                      its slot's       its slot's
 *    of a slot, control             control          control's
 *    of slot 0 or an unused slot,
 *    without a tag                  default          default
 *    IPv6 neighbour discovery       control          as above
 *    not IP (ARP, LLDP)             control          -
 *
 * Control is only for jobs with a control class, see job-slot.h; the egress
 * polices it, see control-share.h.  The DSCP of a malformed packet stays, and
 * the DSCP of a packet of no job if the policy does not use it, see tag.h.
 * Without a lease all slots are treated as unused.
 *
 * The slots of received packets are learned from the tags: a packet of a flow
 * that the host has not used belongs to no job.
 *
 * TCP acknowledgements are classified like other packets; they have a separate
 * queue in their job, see ack-queue.h.
 *
 * A burst goes through stage by stage: all frames are parsed, then all flows
 * looked up, so that the memory for one is prefetched while others are
 * processed.
 *
 * A classifier is for one thread. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/classify/flow-cache.h"
#include "shim/classify/job-slot.h"
#include "shim/classify/parse.h"

#define CLASSIFY_BURST 64       /* Frames at a time, at most. */

struct prefix_list;

struct classifier {
    struct flow_cache *flows;
    const struct job_slots *slots;
    const struct prefix_list *tunnels;  /* Classify by the frame in a tunnel
                                         * between two of them; NULL for no
                                         * tunnel. */
    uint64_t n_malformed;               /* Malformed packets from the host. */
    uint64_t n_untagged; /* Packets from the host without a slot tag. */
    uint32_t n_learned;  /* Flows learned; wraps around. */
};

struct packet {
    uint8_t *data;
    uint32_t length;            /* Contiguous bytes at 'data'. */
};

struct verdict {
    uint16_t slot;              /* 0: no job. */
    uint16_t l3;                /* Offset of the IP header, 0 if none. */
    uint8_t family;             /* 4 or 6 if the DSCP is to be written. */
    bool is_ip;
    uint16_t queue;             /* See egress_flow_queue(); 0: the job's common
                                 * queue. */
    struct treatment treatment;
};

/* Classify 1 to CLASSIFY_BURST packets.  'tags' has the control information of
 * each slot tag; an untagged packet has SLOT_TAG_NO_LEARN.  'leased' is
 * job_slots_leased() now. */
void classify_burst_from_host(struct classifier *, const struct packet *,
                              const uint16_t *tags, uint32_t n, bool leased,
                              struct verdict *);
void classify_burst_to_host(struct classifier *, const struct packet *,
                            uint32_t n, uint16_t *slots);

#endif /* shim/classify/classify.h */
