/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_ACK_QUEUE_H
#define SHIM_ACK_QUEUE_H 1

/* Acknowledgements do not wait behind their own job's data.
 *
 *
 * Motivation
 * ==========
 *
 * A host that sends as fast as its uplink carries has a queue of up to 400 ms
 * here.  What it acknowledges of the data that comes the other way would wait
 * in it, so that the sender of that data sees a round trip of 400 ms and gets
 * a fraction of its link, although nothing is lost and every link is free: in
 * a ring of eight hosts every other flow was slow.
 *
 * So each job has a queue for its pure acknowledgements besides the common
 * one, with which it shares the job's turn by bytes; see job-queue.h.  They
 * need few per cent, so that they leave within a frame or two.  The order
 * between jobs is as before: an acknowledgement of a job that has to wait for
 * others does.
 *
 * One that overtakes its flow's own data is harmless, since it has no byte of
 * the stream.  SYN, FIN and RST do have, or end it, and stay in line.
 * No packet is looked at while nothing waits.
 *
 *
 * Usage
 * =====
 *
 *    if (!egress_is_empty(egress)) {
 *        ack_queues_steer(&acks, egress, packets, verdicts, n);
 *    }
 *    egress_push_burst(egress, frames, verdicts, n);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Begins as zeros.  The queues are egress's and stay with the slot for whoever
 * has it next.  One thread, egress's. */

#include <stdbool.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct egress;
struct packet;
struct verdict;

struct ack_queues {
    uint16_t queue[SHIM_MAX_SLOTS];     /* 0: none yet. */
};

/* Is 'packet', of which 'verdict' says where its IP header is, TCP that only
 * acknowledges? */
bool ack_queue_is_for(const struct packet *, const struct verdict *);

/* Gives those of the 'n' packets that have no queue of their flow, and only
 * acknowledge, that of their job. */
void ack_queues_steer(struct ack_queues *, struct egress *,
                      const struct packet *, struct verdict *, uint32_t n);

#endif /* shim/loop/ack-queue.h */
