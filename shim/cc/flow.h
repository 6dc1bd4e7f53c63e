/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_FLOW_H
#define SHIM_CC_FLOW_H 1

/* The TCP connections that congestion control manages.
 *
 * Data to the host share the downlink, data from it share the uplink, and the
 * ACKs of one direction travel with the data of the other, so both directions
 * are one record of a table.
 *
 * The table is bounded.  A connection that does not fit, or that is older than
 * the shim, is plain TCP.  A record is removed some time after its connection
 * has ended or become idle; one whose windows are translated is kept for
 * hours, since without it the remote end would misread them. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/cc/estimate.h"
#include "shim/cc/record-table.h"
#include "shim/cc/window.h"

/* Data from the uplink to the host.  Times are nanoseconds, rates bit/s, both
 * 0 before the first. */
struct cc_arriving {
    struct cc_rate rate;        /* Measured. */
    uint64_t last;              /* Time of the last data. */
    uint64_t small_since;       /* Start of a period of CC_SMALL_NS. */
    uint32_t small_bytes;       /* Bytes that have arrived in that period. */
    bool bulk;                  /* Not a small flow: it is limited. */
    bool active;                /* One of those that share the downlink. */
    bool quiet;                 /* Active, but has nothing to send now. */
    bool pushed;                /* The last segment may end a burst. */
    uint64_t busy_at;           /* Time of the last report that its sender's
                                 * uplink is busy with other flows. */
    double could;               /* Bytes that its grant would have carried
                                 * since the last data. */
    double window_could;        /* Bytes that its grant would have carried in
                                 * the current window of 'rate'. */
    uint64_t step_bytes;        /* Arrived since the last division. */
    uint64_t free_at;           /* Time of the last burst whose first bytes
                                 * needed no grant. */
    double excess;              /* Bytes of the phantom queue that arrived
                                 * beyond its grants. */
    uint32_t position;          /* Index in the list of active flows. */
    uint32_t window;            /* Most bytes in flight, or CC_WINDOW_ANY. */
    uint64_t granted;           /* Rate of the last division. */
    uint64_t sent, sent_at;     /* Rate in the last grant that was sent to the
                                 * sender's shim, and its time. */

    /* Paced ACKs, if the smallest window is too large. */
    bool slow;                  /* The ACKs must be paced. */
    uint16_t ack_queue;         /* Queue for the ACKs, 0: none. */
    uint64_t ack_bps;           /* Rate of that queue. */
    uint32_t last_ack;          /* Acknowledgment number of the last ACK. */
    uint32_t per_ack;           /* Bytes that an ACK acknowledges, smoothed. */

    /* ECN marks by the network's core. */
    uint64_t round_end;         /* End of the current round trip. */
    uint32_t round_bytes, round_marked; /* Bytes that arrived in it. */
    double alpha;               /* Share of marked bytes, smoothed. */
    uint64_t core;              /* Limit that follows from them, 0: none. */
};

/* Data from the host to the uplink. */
struct cc_leaving {
    uint64_t last;              /* Time of the last data. */
    uint64_t granted;           /* Rate granted by the receiver's shim. */
    uint64_t granted_at;        /* Time of the last grant. */
    uint64_t until;             /* When that grant ends. */
    bool has_grant;             /* For the current burst. */
    bool starting;              /* Its queue sends a limited number of bytes
                                 * until a grant arrives. */
    bool unanswered;            /* No grant arrived in time: wait no more. */
    uint64_t burst_at;          /* Start of the burst without a grant. */
    uint32_t burst_bytes;       /* Bytes of that burst so far. */
    uint64_t empty_since;       /* Since when its queue is empty, or 0. */
    uint64_t empty_sent_at;     /* When the receiver's shim was informed of
                                 * that, 0: never. */
    uint64_t held_since;        /* Since when it waits for a grant, or 0. */
    uint64_t asked_at;          /* When the receiver's shim was last informed
                                 * of that. */
    uint64_t busy_sent_at;      /* When the receiver's shim was last informed
                                 * that the uplink is busy with other flows. */
    uint64_t paced;             /* Rate of its queue, 0: no limit. */
    uint16_t queue;             /* Queue for this flow alone, 0: none. */
    uint16_t slot;              /* Job of that queue. */
    uint32_t position;          /* Index in the list of flows with a queue. */
};

struct remote_shim;

struct cc_flow {
    struct record record;
    struct remote_shim *remote; /* Shared by all flows to its host, or NULL. */
    uint32_t remote_number;     /* That of its record: with another one it is
                                 * another host's. */
    bool ended;                 /* A FIN or RST was seen. */
    bool has_ecn;               /* The two hosts use ECN themselves. */
    bool hello_sent;            /* On a SYN: a repeated one gets none. */
    uint16_t mss;               /* Longest segment to the host, bytes. */
    struct {
        bool seen, scales, has_ecn;
    } remote_syn;               /* A SYN that the host has not taken. */
    uint64_t syn_at;            /* Time of the host's unanswered SYN, or 0. */
    uint32_t syn_seq;           /* Sequence number of the host's last SYN. */
    struct cc_window window;
    struct cc_rtt rtt;          /* Used without a remote shim's record. */
    struct cc_echo echo;
    struct cc_arriving in;
    struct cc_leaving out;
};

#endif /* shim/cc/flow.h */
