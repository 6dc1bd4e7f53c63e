/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CLASSIFY_H
#define SHIM_CLASSIFY_H 1

/* Classification: frame -> job slot, level, DSCP.
 *
 *    packet                         level            DSCP
 *    of a known flow                its slot's       its slot's
 *    of a known control flow        control          control's
 *    of a known flow, with the
 *    control DSCP                   control          control's
 *    unknown TCP and UDP            default          default, and a miss
 *    other IP, fragments            default          default
 *    IPv6 neighbour discovery       control          default
 *    not IP (ARP, LLDP)             control          -
 *    malformed                      default          unchanged
 *
 * The two kinds of control are only for jobs with a control class, see
 * job-slot.h; the egress polices it, see control-share.h.
 *
 * Where the host's frames have slot tags (wire/slot-tag.h), the tag of a
 * packet replaces its flow and its DSCP: a packet of any kind has the slot and
 * the class of its tag, and no packet is a miss.  The slots of received
 * packets are learned from the tags: a packet of a flow that the host has not
 * used belongs to no job.
 *
 * TCP acknowledgements are classified like other packets of their flow; they
 * have a separate queue in their job, see ack-queue.h.  Without a lease a
 * packet of a known flow is treated as unknown, without a miss.
 *
 * A burst goes through stage by stage: all frames are parsed, then all flows
 * looked up, so that the memory for one is prefetched while others are
 * processed.
 *
 * A classifier is for one thread, which reports the misses. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/classify/flow-table.h"
#include "shim/classify/job-slot.h"
#include "shim/classify/miss.h"
#include "shim/classify/parse.h"

#define CLASSIFY_BURST 64       /* Frames at a time, at most. */

struct prefix_list;

struct classifier {
    struct flow_table *flows; /* With 'slot_tags' it is learned. */
    bool slot_tags;           /* Packets from the host have slot tags. */
    const struct job_slots *slots;
    struct miss *misses;
    const struct prefix_list *tunnels;  /* Classify by the frame in a tunnel
                                         * between two of them; NULL for no
                                         * tunnel. */
    uint64_t n_misses;          /* Packets of unknown flows. */
    uint64_t n_malformed;       /* Malformed packets. */
    uint64_t n_untagged;        /* Packets from the host without the slot tag
                                 * that they should have. */
    uint32_t n_learned;         /* Flows learned; wraps around. */
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

/* Classify 1 to CLASSIFY_BURST packets.  'leased' is job_slots_leased() at
 * 'now'. */
void classify_burst_from_host(struct classifier *, const struct packet *,
                              uint32_t n, uint64_t now, bool leased,
                              struct verdict *);
void classify_burst_to_host(struct classifier *, const struct packet *,
                            uint32_t n, uint16_t *slots);

/* classify_burst_from_host() with 'slot_tags'.  'tags' has the control
 * information of each tag; that of an untagged packet is SLOT_TAG_NO_LEARN. */
void classify_burst_by_tags(struct classifier *, const struct packet *,
                            const uint16_t *tags, uint32_t n, bool leased,
                            struct verdict *);

/* Classifies packets from the host again, after their flows were unknown.
 * Misses are not reported. */
void classify_burst_again(struct classifier *, const struct packet *,
                          uint32_t n, bool leased, struct verdict *);

#endif /* shim/classify/classify.h */
