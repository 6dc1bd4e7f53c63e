/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_PROTOCOL_H
#define SHIM_PROTOCOL_H 1

/* What the agent and the shim say to each other.
 *
 *
 * Motivation
 * ==========
 *
 * The shim forwards packets and knows nothing of jobs: it has a table of flows
 * and a table of job slots.  The agent knows which flow is whose and what the
 * controller wants, and writes both tables through a Unix stream socket.  The
 * order changes only rows of the slot table; flows are never touched again.
 *
 *
 * Messages
 * ========
 *
 * Both directions are a sequence of messages, each a struct shim_msg followed
 * by its body, in host byte order (both ends are on one host) except for
 * addresses and ports, which are in network byte order.  A request gets
 * exactly one reply with the same 'xid' and 'type', 'status' 0 or a positive
 * errno value.  Events have 'xid' 0 and are sent only to a connection that
 * asked for them with SHIM_SUBSCRIBE.  A message that is too short, too long
 * or of another version gets status EPROTO and ends the connection; an
 * unknown type gets EOPNOTSUPP and does not.
 *
 *    type              request body               reply body
 *    SHIM_HELLO        -                          struct shim_hello
 *    SHIM_LEASE        struct shim_lease          -
 *    SHIM_SLOT_SET     struct shim_slot[]         -
 *    SHIM_SLOT_CLEAR   uint16_t[]                 -
 *    SHIM_SLOT_LIST    -                          struct shim_slot[]
 *    SHIM_FLOW_ADD     struct shim_flow[]         -
 *    SHIM_FLOW_DELETE  struct shim_flow_key[]     -
 *    SHIM_FLOW_LIST    -                          struct shim_flow[]
 *    SHIM_STATS        -                          struct shim_stats, then
 *                                                 struct shim_slot_stats[]
 *    SHIM_RATE         struct shim_rate           -
 *    SHIM_SUBSCRIBE    -                          -
 *    SHIM_MISS         (event)                    struct shim_flow_key[]
 *    SHIM_GUARD        struct shim_guard          -
 *    SHIM_CAPTURE      struct shim_capture        -
 *    SHIM_CAPTURED     (event)                    struct shim_captured and its
 *                                                 bytes, several of them
 *    SHIM_PORTS        -                          struct shim_ports
 *    SHIM_TAKE_OVER    struct shim_take_over      struct shim_state
 *    SHIM_FLOW_PAGE    struct shim_cursor         struct shim_cursor, then
 *                                                 struct shim_flow[]
 *    SHIM_CONGESTION   struct shim_congestion     -
 *    SHIM_BINS         struct shim_bins_since     struct shim_bins, then
 *                                                 struct shim_bin[]
 *    SHIM_CONNECTIONS  -                          see connections.h
 *
 * When the lease ends, every slot is treated as if it had level
 * 'SHIM_LEVEL_DEFAULT' and the default DSCP until the next SHIM_LEASE; the
 * tables stay.  A process begins without a lease.
 *
 * A slot's packets go before those of all slots of higher rank, and of higher
 * level where ranks are equal; slots of the same rank and level share.  Level
 * SHIM_LEVEL_CONTROL goes before all for up to a hundredth of the uplink, and
 * beyond it as SHIM_LEVEL_DEFAULT does: last, whatever the rank.
 *
 * SHIM_GUARD says what each level that waits gets of the uplink at least; a
 * process that has not been told shares PLACE_ORDER_FLOOR among them.  A shim
 * from before it says EOPNOTSUPP and goes on as if not told.
 *
 * SHIM_CONGESTION says by which law a shim divides its downlink, see
 * shim/cc/allocate.h; one without congestion control keeps it and does
 * nothing with it.
 *
 * SHIM_PORTS tells which interfaces the shim stands between, so that somebody
 * can join them when it does not.  It also serves to see that it does: 'turns'
 * grows as long as the shim forwards.
 *
 * With SHIM_TAKE_OVER a new process takes the place of this one.
 * SHIM_STEP_STOP makes it receive no more; what it has received it still
 * sends, and if it hears nothing else for 300 ms it goes on as before.
 * SHIM_STEP_LEAVE then makes it end, its socket's name left to the successor;
 * the reply says that it has sent what it could within 30 ms and will not
 * touch another frame.  EINVAL without the first step, EBUSY if its loop does
 * not listen.  Between the two, SHIM_CONNECTIONS tells what congestion control
 * has learned, which does not change then; EINVAL at any other time, and a
 * shim from before it says EOPNOTSUPP.
 *
 * A request with an array is checked before any of it is done: EINVAL means
 * that nothing changed.  What is there already is changed by SHIM_SLOT_SET and
 * SHIM_FLOW_ADD, and clearing or deleting what is not there is no error.
 * SHIM_FLOW_ADD gets ENOSPC if the table is full; the flows before that one
 * are in it, and the others' packets have the default level.  A flow may name
 * a slot that is not in use (yet), it is then treated as slot 0; a flow of
 * slot 0 is known to be nobody's and makes no more misses.
 *
 * SHIM_FLOW_LIST has as many flows as one message has room for, which are all
 * if the table is for no more than SHIM_DEFAULT_FLOWS.  SHIM_FLOW_PAGE has a
 * part of them: the first request has 'next' 0, each further one what the
 * reply before it had, and 'next' is 0 again in the last reply.  A flow that
 * is there all the time is listed once.  A shim from before it makes no larger
 * tables.
 *
 * A flow that has had no packets for the shim's time-out is deleted, and
 * nobody is told: if it has one after all, that is a miss, as if it were new.
 *
 * SHIM_BINS tells what a slot's job moved in each hundredth of a second that
 * has ended, from number 'since' on, at most the last SHIM_MAX_BINS: who asks
 * once a second misses none.  Bins are numbered by the shim's clock.  A shim
 * from before it says EOPNOTSUPP.
 *
 * SHIM_CAPTURE begins a capture, which ends with its connection; EBUSY means
 * that another connection captures.  Frames to the uplink are seen when they
 * are sent, those to the host when they have arrived.
 *
 * An unknown TCP or UDP flow makes a SHIM_MISS when the host sends a packet of
 * it, and again while it does and is unknown: after 20 ms or so, and then less
 * and less often, down to every 320 ms.  A subscriber that does not read loses
 * some of them, which does no harm.  SHIM_SUBSCRIBE, also from one who has
 * subscribed already, makes all of them be reported once more. */

#include <stddef.h>
#include <stdint.h>

#define SHIM_PROTOCOL_VERSION 1
#define SHIM_MAX_MESSAGE (1u << 20)     /* Bytes, header included. */
#define SHIM_MAX_SLOTS 1024             /* Slot 0 is "no job". */
#define SHIM_MAX_FLOWS (1u << 20)       /* That a table can be made for. */
#define SHIM_DEFAULT_FLOWS 16384        /* A list of them is one message. */

/* Uplink capacity that makes sense, bits per second. */
#define SHIM_MIN_RATE UINT64_C(100000)
#define SHIM_MAX_RATE UINT64_C(800000000000)

/* Levels, of which a switch makes its queues.  0 is served first. */
#define SHIM_N_LEVELS 8
#define SHIM_LEVEL_CONTROL 0
#define SHIM_LEVEL_DEFAULT (SHIM_N_LEVELS - 1)

enum shim_msg_type {
    SHIM_HELLO = 1,
    SHIM_LEASE,
    SHIM_SLOT_SET,
    SHIM_SLOT_CLEAR,
    SHIM_SLOT_LIST,
    SHIM_FLOW_ADD,
    SHIM_FLOW_DELETE,
    SHIM_FLOW_LIST,
    SHIM_STATS,
    SHIM_RATE,
    SHIM_SUBSCRIBE,
    SHIM_MISS,
    SHIM_GUARD,
    SHIM_CAPTURE = 16,
    SHIM_CAPTURED,

    SHIM_CONGESTION = 19,

    SHIM_PORTS = 22,
    SHIM_TAKE_OVER,

    SHIM_FLOW_PAGE = 25,

    SHIM_BINS = 28,

    SHIM_CONNECTIONS = 31,
};

struct shim_msg {
    uint32_t length;            /* Bytes, this header included. */
    uint16_t version;           /* SHIM_PROTOCOL_VERSION. */
    uint16_t type;              /* enum shim_msg_type. */
    uint32_t xid;               /* Echoed in the reply; 0 for events. */
    uint32_t status;            /* Of a reply, a positive errno; else 0. */
};

struct shim_hello {
    uint64_t boot_id;           /* Random, new in each process: a change tells
                                 * the agent to write the tables again. */
    uint64_t rate_bps;          /* Uplink capacity, bits per second. */
    uint32_t mtu;               /* Bytes of IP. */
    uint32_t pid;
    uint32_t n_slots, n_flows;  /* In use. */
    uint32_t max_flows;
    uint32_t lease_left_ms;     /* 0 if it ended. */
};

struct shim_lease {
    uint32_t ms;                /* From now. */
    uint32_t default_dscp;      /* Of slot 0 and, without lease, of all. */
};

struct shim_slot {
    uint16_t slot;              /* 1 .. SHIM_MAX_SLOTS - 1. */
    uint8_t level;              /* Queue, 0 .. SHIM_N_LEVELS - 1. */
    uint8_t dscp;               /* 0 .. 63. */
    uint32_t rank;              /* In the controller's order, 0 first. */
    uint32_t weight;            /* In 1/1000. */
    char name[64];              /* "COJOB/JOB", for people. */
};

/* As the host sees it: "local" is the host's side in both directions. */
struct shim_flow_key {
    uint8_t family;             /* 4 or 6. */
    uint8_t protocol;           /* IPPROTO_TCP, IPPROTO_UDP. */
    uint16_t local_port, remote_port;
    uint16_t pad;               /* 0. */
    uint8_t local[16], remote[16];      /* IPv4 in the first 4 bytes, rest
                                         * 0. */
};

struct shim_flow {
    struct shim_flow_key key;
    uint16_t slot;
    uint16_t pad;
};

struct shim_cursor {
    uint64_t next;              /* Where to go on, 0 at the beginning and
                                 * after the end. */
};

struct shim_rate {
    uint64_t bps;               /* Uplink capacity, bits per second,
                                 * SHIM_MIN_RATE .. SHIM_MAX_RATE. */
};

/* A share of the uplink, in millionths. */
#define SHIM_GUARD_UNIT 1000000u
#define SHIM_GUARD_UNTOLD UINT32_MAX

struct shim_guard {
    uint32_t share;             /* Of each level that waits: 0 to
                                 * SHIM_GUARD_UNIT, or SHIM_GUARD_UNTOLD. */
};

/* Shares in millionths, SHIM_CONGESTION_UNTOLD for what the shim has of its
 * own. */
#define SHIM_CONGESTION_UNIT 1000000u
#define SHIM_CONGESTION_UNTOLD UINT32_MAX

struct shim_congestion {
    uint32_t gamma;             /* Of the downlink, to be used: from half
                                 * of it on. */
    uint32_t beta;              /* Of the phantom queue, to be drained in a
                                 * round trip. */
    uint32_t floor;             /* Of what is granted, for all flows alike. */
};

/* Names of network interfaces, in the shim's namespace. */
struct shim_ports {
    char host[16], uplink[16];  /* Null-terminated. */
    uint64_t turns;             /* Of the forwarding loop. */
    uint64_t turn_age_ns;       /* Since the last of them began. */
};

enum {
    SHIM_STEP_STOP = 1,
    SHIM_STEP_LEAVE,
};

struct shim_take_over {
    uint32_t step;              /* SHIM_STEP_*. */
};

/* What a successor must know besides the tables. */
struct shim_state {
    uint64_t rate_bps;
    uint32_t guard;             /* As in struct shim_guard. */
    uint32_t default_dscp;
    uint32_t lease_left_ms;
    uint32_t pad;               /* 0. */
};

#define SHIM_MAX_SNAP 65535u

struct shim_capture {
    uint16_t slot;              /* Whose frames, 0 for those of no job... */
    uint16_t all;               /* ...or 1: everybody's; 'slot' is 0 then. */
    uint32_t snap;              /* Bytes of each, 1 to SHIM_MAX_SNAP. */
};

/* A frame that was captured; 'captured' bytes of it follow, and zeros up to
 * 'size'. */
struct shim_captured {
    uint32_t size;              /* Of this and what follows, divisible by 8. */
    uint32_t length;            /* Of the frame. */
    uint32_t captured;
    uint32_t dropped;           /* Frames that the capture missed before. */
    uint64_t time;              /* Nanoseconds of CLOCK_MONOTONIC. */
    uint16_t slot;
    uint8_t to_host;            /* 1: from the uplink to the host. */
    uint8_t pad[5];             /* 0. */
};

/* Since the process started.  "tx" is host to uplink, "rx" uplink to host.
 * Bytes are those of whole frames without FCS. */
struct shim_stats {
    uint64_t boot_id;
    uint64_t tx_packets, tx_bytes;
    uint64_t rx_packets, rx_bytes;
    uint64_t tx_ip_bytes;       /* Those that can carry a tag. */
    uint64_t tx_default_bytes;  /* IP of slot 0, or without lease. */
    uint64_t queue_dropped;     /* Packets: a level's queue was full. */
    uint64_t port_dropped;      /* Packets: a port refused them. */
    uint64_t misses;            /* Packets of unknown flows. */
    uint64_t malformed;         /* Packets that ended before their headers;
                                 * forwarded untouched at the default level. */
    uint64_t queued_bytes;      /* Now, all levels. */
    uint64_t busy_ns;           /* CPU time of the forwarding thread. */
    uint64_t late_bytes;        /* Left in a transmit ring by the kernel, and
                                 * sent when it was told again. */
    uint64_t port_restarts;     /* Ports that no longer sent, and were set up
                                 * anew. */
    uint32_t n_slot_stats, n_flows;
    uint64_t checksums_completed;       /* That a kernel had left to the
                                         * network card. */
    uint64_t long_refused;      /* Of 'port_dropped': packets that a kernel
                                 * had left to the card to cut. */
    uint64_t policed;           /* Packets of control beyond its share of the
                                 * uplink, sent in their turn. */
    uint64_t flows_refused;     /* Additions: the table was full. */
    uint64_t flows_aged;        /* Flows that were deleted since they had no
                                 * packets. */
    uint64_t cc_flows;          /* Now, that congestion control knows. */
    uint64_t cc_windows;        /* Acknowledgements whose window it
                                 * lowered. */
    uint64_t cc_grants_sent, cc_grants_taken;   /* Rates of flows, to and from
                                                 * other shims. */
    uint64_t cc_marks;          /* Packets that the network marked. */
    uint64_t lane_lost;         /* Packets: a lane did not keep up. */
};

/* A job's bursts in one direction: zeros while nothing is known. */
struct shim_burst_stats {
    uint64_t period_ns;         /* From one beginning to the next. */
    uint64_t bytes;             /* Of a burst. */
    uint32_t duty;              /* Share of the period that it lasts, */
    uint32_t regularity;        /* and how alike bursts are: millionths. */
};

#define SHIM_BIN_MS 10
#define SHIM_MAX_BINS 127

struct shim_bins_since {
    uint16_t slot;              /* 1 .. SHIM_MAX_SLOTS - 1. */
    uint16_t pad[3];            /* 0. */
    uint64_t since;             /* Number of a bin. */
};

struct shim_bins {
    uint16_t slot;
    uint16_t pad[3];            /* 0. */
    uint64_t first;             /* Number of the first bin that follows. */
};

/* Bytes of frames. */
struct shim_bin {
    uint32_t tx, rx;
};

/* Of a slot in use, since it was set when it was not. */
struct shim_slot_stats {
    uint16_t slot;
    uint16_t level;             /* In force now. */
    uint32_t dscp;              /* In force now. */
    uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes;
    uint64_t tx_dropped;        /* Packets. */
    struct shim_burst_stats tx_bursts, rx_bursts;
};

/* Pure functions for both ends; hostile bytes are what they are for. */
int protocol_next(const void *data, size_t size, struct shim_msg *);
int protocol_check_body(uint16_t type, const void *body, size_t length);

#endif /* wire/shim-protocol.h */
