/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_ACK_QUEUE_H
#define SHIM_ACK_QUEUE_H 1

/* Separate queues for TCP acknowledgements.
 *
 * A host that sends at the full rate of its uplink has up to 400 ms of data in
 * its queue.  An acknowledgement of data in the other direction that waited
 * behind it would add 400 ms to the round trip of that connection, which then
 * gets a fraction of its link although no link is congested: in a ring of
 * eight hosts every second flow was slow.
 *
 * So each job has a separate queue for its pure acknowledgements, which shares
 * the job's bytes with its common queue, see job-queue.h.  They need a few per
 * cent and leave within a frame or two.  The order between jobs is unchanged.
 *
 * An acknowledgement that overtakes data of its own flow is harmless, because
 * it carries no byte of the stream.  SYN, FIN and RST stay in line.  Packets
 * are only inspected while others are queued.
 *
 *    if (!egress_is_empty(egress)) {
 *        ack_queues_steer(&acks, egress, packets, verdicts, n);
 *    }
 *    egress_push_burst(egress, frames, verdicts, n, now);
 *
 * All zeros initially.  The queues belong to the egress and stay with the slot
 * when it gets another job.  The thread of the egress. */

#include <stdbool.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct egress;
struct packet;
struct verdict;

struct ack_queues {
    uint16_t queue[SHIM_MAX_SLOTS];     /* By slot; 0: none yet. */
};

/* Returns true if the packet, with its IP header at the verdict's 'l3', is a
 * pure TCP acknowledgement. */
bool ack_queue_is_for(const struct packet *, const struct verdict *);

/* Sets the queue of pure acknowledgements without a queue of their flow to the
 * acknowledgement queue of their job. */
void ack_queues_steer(struct ack_queues *, struct egress *,
                      const struct packet *, struct verdict *, uint32_t n);

#endif /* shim/loop/ack-queue.h */
