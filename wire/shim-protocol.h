/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_PROTOCOL_H
#define SHIM_PROTOCOL_H 1

/* The protocol between the agent and the shim.
 *
 * The shim forwards packets and has no notion of jobs: it has a table of job
 * slots, and each frame of its host has its slot in a tag (slot-tag.h).  The
 * agent receives the controller's order, and writes the table through a Unix
 * stream socket.  A new order changes only its rows.
 *
 * Both directions are a sequence of messages, each a struct shim_msg followed
 * by its body.  Integers are in host byte order, since both ends are on one
 * host; addresses and ports are in network byte order.  A request gets exactly
 * one reply with the same 'xid' and 'type', and 'status' 0 or a positive errno
 * value.  A message that is too short, too long or of another version gets
 * status EPROTO and ends the connection; an unknown type gets EOPNOTSUPP and
 * does not.
 *
 *    type              request body               reply body
 *    SHIM_HELLO        -                          struct shim_hello
 *    SHIM_LEASE        struct shim_lease          -
 *    SHIM_SLOT_SET     struct shim_slot[]         -
 *    SHIM_SLOT_CLEAR   uint16_t[]                 -
 *    SHIM_SLOT_LIST    -                          struct shim_slot[]
 *    SHIM_STATS        -                          struct shim_stats, then
 *                                                 struct shim_slot_stats[]
 *    SHIM_MIN_SHARE    struct shim_min_share      -
 *    SHIM_PORTS        -                          struct shim_ports
 *    SHIM_TAKE_OVER    struct shim_take_over      struct shim_state
 *    SHIM_CONGESTION   struct shim_congestion     -
 *    SHIM_BINS         struct shim_bins_since     struct shim_bins, then
 *                                                 struct shim_bin[]
 *    SHIM_CONNECTIONS  -                          cc/takeover-state.h
 *    SHIM_CONTROL      struct shim_control        -
 *    SHIM_ABOUT        -                          text
 *    SHIM_REFUSED      -                          struct shim_refused[]
 *    SHIM_KEYS         struct shim_key[]          -
 *    SHIM_PEERS        -                          struct shim_peer[]
 *
 * Slots
 * -----
 *
 * The array of a request is checked before it is executed: EINVAL means that
 * nothing changed.  SHIM_SLOT_SET also changes existing rows; clearing a
 * missing row is no error.  A packet of a slot that is not in use is treated
 * as a packet of slot 0, which belongs to no job, as does a frame without a
 * tag.
 *
 * A slot's packets are sent before those of all slots of higher rank, and of
 * higher level where ranks are equal; slots of the same rank and level share.
 * Level SHIM_LEVEL_CONTROL goes first for up to 1 % of the uplink; packets
 * above that are treated as SHIM_LEVEL_DEFAULT, which goes last whatever the
 * rank.  SHIM_MIN_SHARE sets the minimum share of each level with queued
 * packets; by default these levels divide 1/21 of the uplink among them.
 *
 * A job with another level has a control class: its packets with the control
 * bit in their tags.  They go first, with the DSCP of SHIM_CONTROL, up to an
 * equal share of 1 % of the uplink for each such job, see
 * shim/queue/control-share.h.  What exceeds it is treated as the job's other
 * packets.
 *
 * When the lease ends, all slots have level SHIM_LEVEL_DEFAULT and the default
 * DSCP until the next SHIM_LEASE; the table stays.  A shim starts without a
 * lease.
 *
 * State
 * -----
 *
 * SHIM_PORTS names the two interfaces, so that the agent can bridge them in
 * the kernel if the shim fails.  'polls' increases while the shim forwards.
 *
 * SHIM_BINS returns the bytes of a slot's job in each bin of SHIM_BIN_MS that
 * has ended, from number 'since' on, at most the last SHIM_MAX_BINS: a client
 * that requests them once a second misses none.  The shim's clock numbers the
 * bins.
 *
 * SHIM_CONGESTION sets the law by which a shim divides its downlink, see
 * shim/cc/allocate.h.  A shim without congestion control ignores it.
 *
 * A new shim uses SHIM_TAKE_OVER to replace this one, see shim/takeover.h.
 * SHIM_STEP_STOP stops receiving; what has been received is still sent.
 * Without SHIM_STEP_LEAVE within 300 ms, the shim receives again.
 * SHIM_STEP_LEAVE ends the shim, which leaves its socket's name alone: the
 * reply means that it has sent what it could within 30 ms and does not touch
 * another frame.  EINVAL without SHIM_STEP_STOP before, EBUSY if the
 * forwarding loop does not react.  Between the two steps, SHIM_CONNECTIONS
 * returns the state of congestion control, which does not change then; it gets
 * EINVAL at any other time.
 *
 * SHIM_ABOUT returns what an operator has to know of a running shim: lines
 * "NAME VALUE" of at most SHIM_MAX_ABOUT bytes without a null byte.  Unknown
 * values are left out.  Names are added, and keep their meaning.
 *
 *    version        Of the program.
 *    uplink         KIND:WHAT of --uplink.
 *    driver         Of the network card: the kernel's, or DPDK's for pci.
 *    mtu            Of --mtu, bytes of IP.
 *    uplink_mtu     Of the kernel's interface.
 *    merges         Offloads by which the kernel merges received packets at
 *                   the uplink: "gro", "lro", "gro,lro" or "none".
 *    host_tso       "on" if the host's kernel, at the other end of a veth
 *                   pair, leaves segmentation to a card: the shim drops its
 *                   long packets.  Otherwise "off".
 *    memory         Of the packet buffers: "huge" pages or "ordinary" ones.
 *    cc             Congestion control, "on" or "off".
 *    switch_queues  "one" or "strict".
 *    tag            "on", or "off" if DSCPs are not changed.
 *    host_tags      "yes" if the host's frames have slot tags, or "no".
 *
 * Remote shims
 * ------------
 *
 * SHIM_KEYS sets or removes the keys of some remote addresses, for the
 * messages between shims; the other keys stay.  From then on only shims that
 * have a key are believed, see shim/cc/remote-shim.h.  An empty array changes
 * no key.  SHIM_PEERS returns the remote hosts with connections in the last
 * minute, as of the request before; the first one gets EAGAIN.  A shim without
 * congestion control ignores keys and has no peers.
 *
 * A shim that is older than SHIM_MIN_SHARE, SHIM_BINS, SHIM_CONNECTIONS,
 * SHIM_CONTROL, SHIM_ABOUT, SHIM_REFUSED, SHIM_KEYS or SHIM_PEERS replies
 * EOPNOTSUPP, and works as without the request. */

#include <stddef.h>
#include <stdint.h>

#define SHIM_PROTOCOL_VERSION 1
#define SHIM_MAX_MESSAGE (1u << 20)     /* Bytes, header included. */
#define SHIM_MAX_ABOUT 2048             /* Bytes of a reply to SHIM_ABOUT. */
#define SHIM_MAX_SLOTS 1024             /* Slot 0 is "no job". */

/* Range of the uplink's capacity, bits per second. */
#define SHIM_MIN_RATE UINT64_C(100000)
#define SHIM_MAX_RATE UINT64_C(800000000000)

/* Levels, which are queues of a switch.  0 is served first. */
#define SHIM_N_LEVELS 8
#define SHIM_LEVEL_CONTROL 0
#define SHIM_LEVEL_DEFAULT (SHIM_N_LEVELS - 1)

/* DSCP of each level by default, and of control classes; policies/policy.h has
 * the reasons. */
#define SHIM_LEVEL_DSCPS             \
    {                                \
        39, 35, 23, 19, 15, 11, 7, 0 \
    }
#define SHIM_CONTROL_DSCP 39

enum shim_msg_type {
    SHIM_HELLO = 1,
    SHIM_LEASE,
    SHIM_SLOT_SET,
    SHIM_SLOT_CLEAR,
    SHIM_SLOT_LIST,

    SHIM_STATS = 9,

    SHIM_MIN_SHARE = 13,

    SHIM_CONGESTION = 19,

    SHIM_PORTS = 22,
    SHIM_TAKE_OVER,

    SHIM_BINS = 28,

    SHIM_CONNECTIONS = 31,

    SHIM_CONTROL = 34,

    SHIM_ABOUT = 37,

    SHIM_REFUSED = 40,
    SHIM_KEYS,
    SHIM_PEERS,
};

struct shim_msg {
    uint32_t length;            /* Bytes, this header included. */
    uint16_t version;           /* SHIM_PROTOCOL_VERSION. */
    uint16_t type;              /* enum shim_msg_type. */
    uint32_t xid;               /* Echoed in the reply; 0 for events. */
    uint32_t status;            /* 0, or a positive errno in a reply. */
};

struct shim_hello {
    uint64_t boot_id;           /* Random, new in each process: if it has
                                 * changed, the agent writes the slots
                                 * again. */
    uint64_t rate_bps;          /* Uplink capacity, bits per second. */
    uint32_t mtu;               /* Bytes of IP. */
    uint32_t pid;
    uint32_t n_slots;           /* In use. */
    uint32_t lease_left_ms;     /* 0 if the lease has ended. */
};

struct shim_lease {
    uint32_t ms;                /* Duration, from now. */
    uint32_t default_dscp;      /* Of slot 0; of all slots without a lease. */
};

struct shim_slot {
    uint16_t slot;              /* 1 .. SHIM_MAX_SLOTS - 1. */
    uint8_t level;              /* Queue, 0 .. SHIM_N_LEVELS - 1. */
    uint8_t dscp;               /* 0 .. 63. */
    uint32_t rank;              /* In the controller's order, 0 first. */
    uint32_t weight;            /* Of jobs that share, in 1/1000. */
    char name[64];              /* "COJOB/JOB", for messages. */
};

/* A flow in both directions: "local" is the host's end.  Part of the reply to
 * SHIM_CONNECTIONS. */
struct shim_flow_key {
    uint8_t family;             /* 4 or 6. */
    uint8_t protocol;           /* IPPROTO_TCP, IPPROTO_UDP. */
    uint16_t local_port, remote_port;
    uint16_t pad;               /* 0. */
    uint8_t local[16], remote[16];      /* IPv4 in the first 4 bytes, rest
                                         * 0. */
};

struct shim_control {
    uint32_t dscp;              /* Of all control classes, 1 .. 63. */
    uint32_t pad;               /* 0. */
    uint64_t levels;            /* Bit N: DSCP N is of a level.  Packets
                                 * of no job that have it, or 'dscp', get the
                                 * default DSCP; others keep theirs. */
};

/* A share of the uplink, in millionths. */
#define SHIM_MIN_SHARE_UNIT 1000000u
#define SHIM_MIN_SHARE_DEFAULT UINT32_MAX

struct shim_min_share {
    uint32_t share;             /* Of each level with queued packets: 0 ..
                                 * SHIM_MIN_SHARE_UNIT, or
                                 * SHIM_MIN_SHARE_DEFAULT. */
};

/* Shares in millionths; SHIM_CONGESTION_DEFAULT: the shim's default. */
#define SHIM_CONGESTION_UNIT 1000000u
#define SHIM_CONGESTION_DEFAULT UINT32_MAX

struct shim_congestion {
    uint32_t gamma;             /* Share of the downlink to use, at least
                                 * half of it. */
    uint32_t beta;              /* Share of the phantom queue to drain in a
                                 * round trip. */
    uint32_t floor;             /* Share of the grants that is divided equally
                                 * among all flows. */
};

#define SHIM_KEY_BYTES 16

/* Key of this host and the host that has an address. */
struct shim_key {
    uint8_t family;     /* 4 or 6. */
    uint8_t removed;    /* 1: the address has no key any more. */
    uint8_t pad[6];     /* 0. */
    uint8_t remote[16]; /* As in struct shim_flow_key. */
    uint8_t key[SHIM_KEY_BYTES];
};

/* A pair of addresses with TCP connections. */
struct shim_peer {
    uint8_t family;                /* 4 or 6. */
    uint8_t verified;              /* 1: the remote host's shim is believed. */
    uint8_t pad[6];                /* 0. */
    uint8_t local[16], remote[16]; /* As in struct shim_flow_key. */
    uint32_t refused;              /* Messages with a wrong hash. */
    uint32_t disobeyed; /* How often more arrived than was granted. */
};

/* Names of network interfaces, in the shim's namespace. */
struct shim_ports {
    char host[16], uplink[16];  /* Null-terminated. */
    uint64_t polls;             /* Iterations of the forwarding loop since the
                                 * shim started. */
    uint64_t poll_age_ns;       /* Time since the last of them began. */
};

enum { SHIM_STEP_STOP = 1, SHIM_STEP_LEAVE };

struct shim_take_over {
    uint32_t step;              /* SHIM_STEP_*. */
};

/* State for a new shim that is not in the slots. */
struct shim_state {
    uint64_t rate_bps;
    uint32_t min_share;         /* As in struct shim_min_share. */
    uint32_t default_dscp;
    uint32_t lease_left_ms;
    uint32_t control_dscp;      /* 0 from a shim without SHIM_CONTROL. */
    uint64_t level_dscps;       /* 'levels' of struct shim_control. */
};

/* Counters since the shim started.  "tx" is from the host to the uplink, "rx"
 * from the uplink to the host.  Bytes are those of whole frames without
 * FCS. */
struct shim_stats {
    uint64_t boot_id;           /* As in struct shim_hello. */
    uint64_t tx_packets, tx_bytes;
    uint64_t rx_packets, rx_bytes;
    uint64_t tx_ip_bytes;       /* Part of 'tx_bytes': IP packets, which can
                                 * carry a DSCP. */
    uint64_t tx_default_bytes;  /* Part of 'tx_ip_bytes': slot 0, or any slot
                                 * without a lease. */
    uint64_t queue_dropped;     /* Packets dropped: the queue was full. */
    uint64_t port_dropped;      /* Packets dropped: a port refused them. */
    uint64_t malformed;         /* Packets shorter than their headers, which
                                 * are forwarded at the default level. */
    uint64_t queued_bytes;      /* Bytes in all queues now. */
    uint64_t busy_ns;           /* CPU time of the forwarding thread. */
    uint64_t late_bytes;        /* Bytes that the kernel left in a transmit
                                 * ring and sent after another request. */
    uint64_t port_restarts;     /* Ports set up again, because they no longer
                                 * sent. */
    uint32_t n_slot_stats;      /* Elements that follow. */
    uint32_t pad;               /* 0. */
    uint64_t checksums_completed; /* Packets with a checksum that a
                                   * kernel had left to the network
                                   * card. */
    uint64_t long_refused;      /* Part of 'port_dropped': unsegmented packets
                                 * (TSO, GSO) from a kernel. */
    uint64_t policed;           /* Control packets above their share of the
                                 * uplink, sent as their job's other packets
                                 * or at the default level. */
    uint64_t cc_flows;          /* Connections of congestion control now. */
    uint64_t cc_windows;        /* ACKs with a lowered window. */
    uint64_t cc_grants_sent;    /* Grants sent to remote shims. */
    uint64_t cc_grants_taken;   /* Grants received from remote shims. */
    uint64_t cc_marks;          /* Packets marked by the network (ECN CE). */
    uint64_t untagged;          /* Packets from the host without a slot tag,
                                 * which are of no job. */
    uint64_t cc_forged;         /* Packets from the host to the port of shims'
                                 * messages, dropped. */
    uint64_t cc_refused;        /* Messages with a wrong hash. */
    uint64_t cc_repeated;       /* Messages that were not new. */
    uint64_t cc_disobeyed;      /* How often a remote host sent more than was
                                 * granted. */
    uint64_t control_dropped;   /* Part of 'queue_dropped': of control. */
};

/* Bursts of a job in one direction; all zeros while not known. */
struct shim_burst_stats {
    uint64_t period_ns;         /* Between the starts of two bursts. */
    uint64_t bytes;             /* Of a burst. */
    uint32_t duty;              /* Part of the period during which the burst
                                 * lasts, in millionths. */
    uint32_t regularity;        /* Similarity of the bursts, in millionths. */
};

/* Entries of a slot's job in the shim's tables beyond its share, taken,
 * refused or replaced, since the job got the slot; only slots with some.  Slot
 * 0 has those of all connections of no job, and no flows. */
struct shim_refused {
    uint16_t slot;
    uint16_t pad;     /* 0. */
    uint32_t records; /* Of congestion control: refused or replaced because a
                       * table was full. */
    uint64_t count;   /* Flows with received packets that would have the
                       * slot. */
};

#define SHIM_BIN_MS 10
#define SHIM_MAX_BINS 127

struct shim_bins_since {
    uint16_t slot;              /* 1 .. SHIM_MAX_SLOTS - 1. */
    uint16_t pad[3];            /* 0. */
    uint64_t since;             /* Number of the first bin wanted. */
};

struct shim_bins {
    uint16_t slot;
    uint16_t pad[3];            /* 0. */
    uint64_t first;             /* Number of the first bin that follows. */
};

/* Bytes of frames in a bin. */
struct shim_bin {
    uint32_t tx, rx;
};

/* Counters of a slot in use, since a job got it. */
struct shim_slot_stats {
    uint16_t slot;
    uint16_t level;             /* In force now. */
    uint32_t dscp;              /* In force now. */
    uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes;
    uint64_t tx_dropped;        /* Packets. */
    struct shim_burst_stats tx_bursts, rx_bursts;
};

/* Copies the header of the message at 'data' to '*msg'.  Returns 0 if the
 * 'size' bytes contain a whole message, EAGAIN if more bytes are needed, or
 * EPROTO if they can never become a message. */
int protocol_next(const void *data, size_t size, struct shim_msg *msg);

/* Checks the body of a request.  Returns 0, EPROTO if 'length' is wrong,
 * EINVAL if a value is, or EOPNOTSUPP if 'type' is not a request. */
int protocol_check_body(uint16_t type, const void *body, size_t length);

#endif /* wire/shim-protocol.h */
