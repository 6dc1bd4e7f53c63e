/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_LANES_H
#define SHIM_LANES_H 1

/* Further threads of the pipeline, which receive and classify.
 *
 *    host port  -> lane 0 -------------------------------> egress -> uplink
 *         |           `---ring---> lane K ---ring---^
 *         `-----queue K----------^
 *
 * The order of the uplink is exact, so one thread, lane 0, has all queues,
 * those of acknowledgements included, and sends.  The other lanes receive,
 * classify, write DSCPs and count.  All packets of a flow take the same
 * lane and so stay in order: if the port's driver is known to keep each flow
 * in one receive queue, each lane receives from its own queue; otherwise lane
 * 0 receives and distributes frames by the hash of the flow.
 *
 * Frames for the host take the same path.  If the host's port has a transmit
 * queue for each lane, a lane sends them itself and returns to lane 0 only how
 * many bytes each job received.
 *
 * The rings are the only memory that two threads write on the packet path.  A
 * full ring to a lane drops packets, which are counted, so that a lane that is
 * not scheduled delays its own flows only.  A full ring to lane 0 makes the
 * lane wait.
 *
 * Congestion control needs both directions of a flow and the whole downlink,
 * so it runs in lane 0.  With congestion control all frames for the host
 * return to lane 0, and lane 0 writes the DSCPs, which it may change.
 *
 * forward.c is lane 0:
 *
 *    ls = lanes_create(&config, &ending, &ended);
 *    ...start a thread for lanes_get(ls, 1) and each further lane...
 *
 *    n = port_receive(port, frames, PORT_BURST);
 *    n = lanes_share(ls, from_host, frames, n);
 *    ...process the 'n' frames of lane 0...
 *    for (k = 1; k < n_lanes; k++) {
 *        n = lane_take_sent(lanes_get(ls, k), frames, verdicts, PORT_BURST);
 *        ...queue them...
 *    }
 *
 * The thread of another lane calls lane_poll() as lane 0's calls
 * forward_poll().
 *
 * Ports and tables stay the caller's. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/classify/classify.h"
#include "shim/loop/wake.h"

struct forward_config;
struct lane;
struct lanes;
struct port;
struct rte_mbuf;
struct shim_stats;

#define LANES_MAX 16
#define LANE_PACKETS 1536       /* Packet buffers that a lane may hold. */
#define LANE_LAST_POLLS 64      /* Polls after which a lane stops receiving
                                 * although frames still arrive. */

/* From a lane to lane 0: a frame for the host, or without 'frame' the bytes of
 * frames that the lane has sent to the host. */
struct lane_arrived {
    struct rte_mbuf *frame;
    uint32_t bytes;
    uint16_t slot;
};

/* 'ending' and 'ended' are lane 0's, see forward_end().  Returns NULL without
 * file descriptors. */
struct lanes *lanes_create(const struct forward_config *, const bool *ending,
                           const bool *ended);
void lanes_destroy(struct lanes *);
struct lane *lanes_get(struct lanes *, unsigned int number);
struct wake *lanes_main_wake(struct lanes *);

/* The lane's thread. */
bool lane_poll(struct lane *, uint64_t now);
bool lane_is_blocked(const struct lane *);
struct wake *lane_wake(struct lane *);

/* Lane 0. */
uint16_t lanes_share(struct lanes *, bool from_host, struct rte_mbuf **,
                     uint16_t n);
uint16_t lane_take_sent(struct lane *, struct rte_mbuf **, struct verdict *,
                        uint16_t max);
uint16_t lane_take_arrived(struct lane *, struct lane_arrived *, uint16_t max);
void lanes_wake_up(struct lanes *);

/* Any thread. */
struct port *lane_queue(struct port *, unsigned int i, unsigned int n);
bool lane_is_ending(const struct lane *);
bool lanes_have_ended(const struct lanes *);
void lane_add_stats(const struct lane *, struct shim_stats *);

#endif /* shim/loop/lanes.h */
