/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_LANE_H
#define SHIM_LANE_H 1

/* What a further thread of the pipeline does: it classifies.
 *
 *
 * Motivation
 * ==========
 *
 *    host port  -> lane 0 -------------------------------> egress -> uplink
 *         |           `---ring---> lane K ---ring---^
 *         `-----queue K----------^
 *
 * The order of the uplink is exact, so one thread, lane 0, has all queues and
 * sends.  Others can receive, look flows up, write DSCPs and count in its
 * place.  All packets of a flow take the same lane, and so they stay in order:
 * from one queue of the port each, where the port keeps a flow in one queue;
 * otherwise lane 0 receives and hands over by the flow's hash.
 *
 * The other direction is the same, but for the end: where the host's port has
 * a transmit queue for each lane, nothing goes back to lane 0 but a line that
 * says which job got how many bytes.
 *
 * Nothing in the loop is written by two threads but the rings.  A ring to a
 * lane that is full loses packets, which are counted, so that a lane that is
 * not let run holds up its own flows only; one to lane 0 holds the lane up.
 *
 * Congestion control sees both directions of a flow and all of the downlink,
 * so it is lane 0's: with it, what is for the host always goes back to lane 0,
 * and DSCPs are written there, since it may change them.
 *
 *
 * Usage
 * =====
 *
 * The lane's own thread calls lane_turn() as lane 0's does forward_turn().
 * Everything else is forward.c's, by lanes.h.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * lanes.h makes lanes.  lane_turn() and what it calls are for the lane's
 * thread, lane_put(), lane_take_sent() and lane_take_arrived() for lane 0's,
 * the others for any. */

#include <stdbool.h>
#include <stdint.h>

#include <rte_ring_core.h>

#include "shim/classify/classify.h"
#include "shim/loop/wake.h"

struct port;
struct rte_mbuf;
struct shim_stats;
struct tap;

#define LANE_RING 512           /* Packets that wait for a lane, from each
                                 * side... */
#define LANE_BACK_RING 256      /* ...and for lane 0. */

/* Packet buffers that a lane may hold. */
#define LANE_PACKETS (2 * LANE_RING + 2 * LANE_BACK_RING)

/* From the host: a frame to be queued. */
struct lane_sent {
    struct rte_mbuf *frame;
    struct verdict verdict;
};

/* For the host. */
struct lane_arrived {
    struct rte_mbuf *frame;     /* NULL: they are there already. */
    uint32_t bytes;
    uint16_t slot;
};

struct lane_config {
    unsigned int number;        /* From 1 on. */
    struct port *host, *uplink; /* Its queues, NULL: lane 0 receives. */
    struct flow_table *flows;
    struct job_slots *slots;
    struct miss *misses;        /* Its own. */
    struct tap *tap;            /* Of lane 0, which must see what it wants. */
    bool all_arrive;            /* Lane 0 must see all that is for the
                                 * host. */
    bool tag, vxlan;            /* As in struct forward_config. */
    struct wake *main_wake;     /* Lane 0's. */
    const bool *ending, *main_ended;    /* See forward_end(). */
};

struct lane {
    struct lane_config config;
    struct wake wake;
    struct rte_ring *from_host, *from_uplink;   /* struct rte_mbuf *, from
                                                 * lane 0. */
    struct rte_ring *sent;      /* struct lane_sent... */
    struct rte_ring *arrived;   /* ...and struct lane_arrived, for lane 0. */
    uint64_t lost;              /* Frames, counted by lane 0: a ring to this
                                 * lane was full. */

    struct classifier classifier __attribute__((aligned(64)));
    uint32_t last_turns;        /* Since it was told to end. */
    bool hands_over;            /* What is for the host is in 'arrived'. */
    bool blocked;               /* The last turn left something since there
                                 * was no room. */

    /* The lane writes, others read. */
    bool ended;
    uint64_t rx_packets, rx_bytes;
};

struct lane *lane_create(const struct lane_config *);
void lane_destroy(struct lane *);

/* The lane's thread. */
bool lane_turn(struct lane *, uint64_t now);
bool lane_is_blocked(const struct lane *);

/* Lane 0. */
void lane_put(struct lane *, bool from_host, struct rte_mbuf **, uint16_t n);
uint16_t lane_take_sent(struct lane *, struct rte_mbuf **, struct verdict *,
                        uint16_t max);
uint16_t lane_take_arrived(struct lane *, struct lane_arrived *,
                           uint16_t max);

/* Any thread. */
bool lane_is_ending(const struct lane *);
bool lane_has_ended(const struct lane *);
void lane_add_stats(const struct lane *, struct shim_stats *);

#endif /* shim/loop/lane.h */
