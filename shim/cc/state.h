/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_STATE_H
#define SHIM_CC_STATE_H 1

/* State that the parts of congestion control share: connections, and what is
 * of all of them.
 *
 *    cc.c              each packet
 *    takeover-state.c  exchange with a new shim
 *    downlink.c        flows to the host
 *    uplink.c          flows to the uplink
 *    exchange.c        hellos and messages of remote shims
 *
 * Each calls only files that are below it in this list.  Only these files
 * include it. */

#include "shim/cc/allocate.h"
#include "shim/cc/cc.h"
#include "shim/cc/record-table.h"
#include "shim/cc/remote-shim.h"
#include "shim/cc/segment.h"
#include "shim/queue/job-queue.h"
#include "shim/queue/rank-queue.h"

#define CC_STEP_NS 100000u      /* Minimum time between two divisions. */

/* Rate of a flow in the last two whole windows of time, so that one which
 * pauses for a moment keeps its share. */
struct cc_rate {
    uint64_t since;       /* Start of the current window. */
    uint64_t bytes;       /* In the current window. */
    uint64_t bps, before; /* Rate in the last window, and before it. */
};

/* Round trips at the receiver: from the first ACK with a new timestamp to the
 * first data that echo it, and from the SYN to its reply. */
struct cc_echo {
    uint64_t sent_at; /* Time at which 'stamp' was sent, 0: never. */
    uint32_t stamp;   /* Last timestamp that was measured. */
    bool waiting;     /* For the echo of 'stamp'. */
};

/* Data from the uplink to the host.  Times are nanoseconds, rates bit/s, both
 * 0 before the first. */
struct cc_arriving {
    struct cc_rate rate;    /* Measured. */
    uint64_t last;          /* Time of the last data. */
    uint64_t small_since;   /* Start of a period of CC_SMALL_NS. */
    uint32_t small_bytes;   /* Bytes that have arrived in that period. */
    bool bulk;              /* Not a small flow: it is limited. */
    bool active;            /* One of those that share the downlink. */
    bool quiet;             /* Active, but has nothing to send now. */
    bool pushed;            /* The last segment may end a burst. */
    uint64_t busy_at;       /* Time of the last report that its sender's
                             * uplink is busy with other flows. */
    double could;           /* Bytes that its grant would have carried
                             * since the last data. */
    double window_could;    /* Bytes that its grant would have carried in
                             * the current window of 'rate'. */
    uint64_t step_bytes;    /* Arrived since the last division. */
    uint64_t free_at;       /* Time of the last burst with first bytes that
                             * needed no grant. */
    double excess;          /* Bytes of the phantom queue that arrived
                             * beyond its grants. */
    uint32_t position;      /* Index in the list of active flows. */
    uint32_t window;        /* Most bytes in flight, or CC_WINDOW_ANY. */
    uint64_t granted;       /* Rate of the last division. */
    uint64_t sent, sent_at; /* Rate in the last grant that was sent to the
                             * sender's shim, and its time. */

    /* Paced ACKs, if the smallest window is too large. */
    bool slow;          /* The ACKs must be paced. */
    uint16_t ack_queue; /* Queue for the ACKs, 0: none. */
    uint64_t ack_bps;   /* Rate of that queue. */
    uint32_t last_ack;  /* Acknowledgment number of the last ACK. */
    uint32_t per_ack;   /* Bytes that an ACK acknowledges, smoothed. */

    /* ECN marks by the network's core. */
    uint64_t round_end;                 /* End of the current round trip. */
    uint32_t round_bytes, round_marked; /* Bytes that arrived in it. */
    double alpha;                       /* Share of marked bytes, smoothed. */
    uint64_t core; /* Limit that follows from them, 0: none. */
};

/* Data from the host to the uplink. */
struct cc_leaving {
    uint64_t last;          /* Time of the last data. */
    uint64_t granted;       /* Rate granted by the receiver's shim. */
    uint64_t granted_at;    /* Time of the last grant. */
    uint64_t until;         /* When that grant ends. */
    bool has_grant;         /* For the current burst. */
    bool starting;          /* Its queue sends a limited number of bytes
                             * until a grant arrives. */
    bool unanswered;        /* No grant arrived in time: wait no more. */
    uint64_t burst_at;      /* Start of the burst without a grant. */
    uint32_t burst_bytes;   /* Bytes of that burst so far. */
    uint64_t empty_since;   /* Since when its queue is empty, or 0. */
    uint64_t empty_sent_at; /* When the receiver's shim was informed of
                             * that, 0: never. */
    uint64_t held_since;    /* Since when it waits for a grant, or 0. */
    uint64_t asked_at;      /* When the receiver's shim was last informed
                             * of that. */
    uint64_t busy_sent_at;  /* When the receiver's shim was last informed
                             * that the uplink is busy with other flows. */
    uint64_t paced;         /* Rate of its queue, 0: no limit. */
    uint16_t queue;         /* Queue for this flow alone, 0: none. */
    uint16_t slot;          /* Job of that queue. */
    uint32_t position;      /* Index in the list of flows with a queue. */
};

/* A TCP connection.  Data to the host share the downlink, data from it share
 * the uplink, and the ACKs of one direction travel with the data of the other,
 * so both directions are one record.
 *
 * A connection that does not fit into the table, or that is older than the
 * shim, is plain TCP.  A record is removed some time after its connection has
 * ended or become idle; a flow with translated windows is kept for hours,
 * since without it the remote end would misread them. */
struct cc_flow {
    struct record record;
    struct remote_shim *remote; /* Shared by all flows to its host, or NULL. */
    uint32_t remote_number;     /* Number of the record of 'remote'.  A record
                                 * with another number is of another host. */
    bool ended;                 /* A FIN or RST was seen. */
    bool has_ecn;               /* The two hosts use ECN themselves. */
    bool hello_sent;            /* On a SYN: a repeated one gets none. */
    uint16_t mss;               /* Longest segment to the host, bytes. */
    struct {
        bool seen, scales, has_ecn;
    } remote_syn;     /* A SYN that the host has not taken. */
    uint64_t syn_at;  /* Time of the host's unanswered SYN, or 0. */
    uint32_t syn_seq; /* Sequence number of the host's last SYN. */
    struct cc_window window;
    struct cc_rtt rtt; /* Used without a remote shim's record. */
    struct cc_echo echo;
    struct cc_arriving in;
    struct cc_leaving out;
};

/* Flows that share a link. */
struct cc_link {
    struct cc_flow *flows[CC_MAX_FLOWS];
    uint32_t n;
    uint64_t stepped;           /* Time of the last division. */
};

struct cc {
    struct cc_config config;
    struct job_queues *jobs;   /* Of the config's queues. */
    struct record_table flows; /* Contains struct cc_flow. */
    struct remote_shims remotes;
    struct cc_law law;
    struct cc_budget budget;
    struct cc_link in, out;     /* Downlink, uplink. */
    struct cc_share shares[CC_MAX_FLOWS];       /* During a division. */
    uint64_t bytes;             /* Arrived since the last division. */
    uint64_t other_bytes;       /* Part of 'bytes': not limited by grants. */
    uint64_t other_bps;         /* Rate of 'other_bytes', smoothed. */
    uint64_t swept;             /* Time of the last search for old flows. */
    struct remote_shim *writing; /* The first that has a message. */

    /* Buffer for a message: Ethernet, IPv6, UDP, payload. */
    uint8_t frame[TAKEOVER_MAX_L2 + 40 + 8 + GRANT_MAX_MESSAGE];

    struct shim_congestion wanted; /* The law: written by the control thread,
                                    * read by the forwarding thread. */

    /* Counters: written by the forwarding thread, read by the control
     * thread. */
    uint64_t windows, grants_sent, grants_taken, marks;
    uint64_t forged, disobeyed;
};

/* downlink.c.  Data of a flow, in a frame of 'length' bytes, or a report that
 * its data wait for a grant, have arrived; the host sends a pure ACK, and gets
 * the queue for it, 0 for none; the flow is removed. */
void downlink_data(struct cc *, struct cc_flow *, const struct segment *,
                   uint32_t length, uint64_t now);
void downlink_waiting(struct cc *, struct cc_flow *, uint64_t now);
uint16_t downlink_ack(struct cc *, struct cc_flow *, const struct segment *,
                      uint32_t length, uint64_t now);
void downlink_remove(struct cc *, struct cc_flow *);
void downlink_poll(struct cc *, uint64_t now);

/* uplink.c.  uplink_queue() returns the queue for data of a flow, 0 for none.
 * uplink_hold() paces a flow until a time. */
uint16_t uplink_queue(struct cc *, struct cc_flow *, uint32_t length,
                      uint64_t now);
void uplink_hold(struct cc *, struct cc_flow *, uint64_t bps, uint64_t until,
                 uint64_t now);
void uplink_remove(struct cc *, struct cc_flow *);
void uplink_poll(struct cc *, uint64_t now);

/* exchange.c.  hello_send() adds the option to a segment from the host if it
 * is one of these: the first SYN of a flow (a repeated one has none, since a
 * middlebox may drop it), the SYN-ACK if the SYN had the option, and some ACKs
 * until the remote shim has replied.  hello_receive() removes the option from
 * a segment to the host, and notes the hint; the remote shim may be null. */
void hello_send(const struct cc *, struct cc_frame *, struct segment *,
                struct cc_flow *, uint64_t now);
void hello_receive(struct cc *, struct cc_frame *, struct segment *,
                   struct segment_options *, struct remote_shim *,
                   uint64_t now);

/* message_receive() returns true if the frame is a message to this shim, and
 * stores its content and the two hosts; type 0 means that it was refused.
 * message_add() adds a grant to the next message of a type to a shim that is
 * verified, and message_send_all() sends these messages.  message_ask() asks a
 * shim that is not verified. */
bool message_receive(struct cc *, const struct cc_frame *, uint64_t now,
                     struct shim_flow_key *hosts, struct grant_message *);
void message_add(struct cc *, struct remote_shim *, uint8_t type,
                 const struct grant *, uint64_t now);
void message_send_all(struct cc *, uint64_t now);
void message_ask(struct cc *, struct remote_shim *, uint64_t now);

static inline uint64_t
larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Returns the HELLO_* flags of this shim. */
static inline uint8_t
cc_own_flags(const struct cc *cc)
{
    return HELLO_ECN | (cc->config.strict_switch ? 0 : HELLO_WAITING);
}

/* Returns the record of the flow's remote host, or NULL. */
static inline struct remote_shim *
cc_remote_of(const struct cc_flow *flow)
{
    struct remote_shim *rs = flow->remote;

    return rs && rs->record.number == flow->remote_number ? rs : NULL;
}

/* Returns the flow's remote shim if messages can be sent to it and it is
 * believed to pace, or NULL. */
static inline struct remote_shim *
cc_verified_remote(const struct cc_flow *flow)
{
    struct remote_shim *rs = cc_remote_of(flow);

    return rs && remote_shim_is_trusted(rs) ? rs : NULL;
}

/* Notes a packet of 'flow' on the record of its remote host, maybe a new
 * one. */
static inline void
cc_find_remote(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct remote_shim *rs = cc_remote_of(flow);
    const struct record *r = &flow->record;

    if (rs) {
        remote_shims_share(&cc->remotes, rs, r->slot, now);
        return;
    }
    rs = remote_shims_find(&cc->remotes, &r->key);
    rs = rs ? rs : remote_shims_add(&cc->remotes, &r->key, r->slot, now);
    flow->remote = rs;
    flow->remote_number = rs ? rs->record.number : 0;
}

static inline struct cc_rtt *
cc_rtt_of(struct cc_flow *flow)
{
    struct remote_shim *rs = cc_remote_of(flow);

    return rs ? &rs->rtt : &flow->rtt;
}

/* Returns nanoseconds. */
static inline uint64_t
round_trip(struct cc_flow *flow)
{
    return cc_rtt_get(cc_rtt_of(flow));
}

#endif /* shim/cc/state.h */
