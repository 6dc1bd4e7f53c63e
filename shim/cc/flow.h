/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_FLOW_H
#define SHIM_CC_FLOW_H 1

/* The TCP connections that congestion control knows.
 *
 *
 * Motivation
 * ==========
 *
 * What arrives of a connection takes part in the downlink, what leaves of it
 * in the uplink, and acknowledgements of the one travel with the other, so
 * both directions are one record.
 *
 * The table is bounded.  When it is full, or a connection was there before the
 * shim, nothing worse happens than that it is plain TCP.  A record goes some
 * time after the connection ended or fell silent; one whose windows are
 * translated stays long, since without it the peer misreads them.
 *
 *
 * Usage
 * =====
 *
 *    flow = cc_flows_find(flows, &key);
 *    flow = flow ? flow : cc_flows_add(flows, &key, now);    (may be null)
 *    ...
 *    while ((flow = cc_flows_sweep(flows, now))) {
 *        ...let go of what it holds...
 *        cc_flows_remove(flows, flow);
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The table owns its records; they do not move.  One thread.  Nothing is
 * allocated after the start. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/cc/estimate.h"
#include "shim/cc/window.h"
#include "wire/shim-protocol.h"

#define CC_NOBODY UINT32_MAX

/* What arrives from the network. */
struct cc_arriving {
    struct cc_rate rate;
    uint64_t last;              /* When data came. */
    uint64_t small_since;       /* The period in which it may yet be... */
    uint32_t small_bytes;       /* ...a small flow. */
    bool bulk;                  /* It is not: it has windows and rates. */
    bool active;                /* Among those that share the downlink... */
    bool quiet;                 /* ...but has sent nothing although it
                                 * could. */
    bool pushed;                /* The last segment looked like an end. */
    double could;               /* Bytes that its rates since data came last
                                 * would have carried... */
    double window_could;        /* ...and since 'rate' has its window. */
    uint64_t step_bytes;        /* Since the downlink was divided... */
    double excess;              /* ...and ever, beyond what was granted. */
    uint32_t position;          /* If active, in the list of them. */
    uint32_t window;            /* Bytes, CC_WINDOW_ANY if not bounded. */
    uint64_t granted;           /* Bit/s. */
    uint64_t told, told_at;     /* What the sender's shim knows, and since
                                 * when. */

    /* Acknowledgements, if the smallest window is too much. */
    bool slow;                  /* It is. */
    uint16_t ack_queue;         /* Where they wait, 0: nowhere. */
    uint64_t ack_bps;           /* Of that queue. */
    uint32_t last_ack;
    uint32_t per_ack;           /* Bytes that one acknowledges, smoothed. */

    /* Of this round trip: the core's marks. */
    uint64_t round_end;
    uint32_t round_bytes, round_marked;
    double alpha;               /* Share of marked bytes, smoothed. */
    uint64_t core;              /* Bit/s that the core lets through, 0 for
                                 * any. */
};

/* What leaves towards it. */
struct cc_leaving {
    uint64_t last;              /* When data left. */
    uint64_t granted;           /* Bit/s, by the receiver's shim... */
    uint64_t told_at, until;    /* ...since then, and for so long. */
    bool told;                  /* In this burst... */
    bool starts;                /* ...or it has sent what it may before... */
    bool unanswered;            /* ...once in vain. */
    uint64_t begun;             /* Since when it has sent, untold... */
    uint32_t begun_bytes;       /* ...so much. */
    uint64_t empty;             /* Since when its queue is, 0: it is not. */
    uint64_t said_empty;        /* When the receiver's shim was told so, 0:
                                 * never. */
    uint64_t started;           /* Since when it waits, 0: it does not. */
    uint64_t paced;             /* Bit/s of the queue, 0 for any. */
    uint16_t queue;             /* Of its own, 0 if none... */
    uint16_t slot;              /* ...as a flow of that job. */
    uint32_t position;          /* If it has a queue, in the list of them. */
};

struct cc_flow {
    struct shim_flow_key key;
    uint32_t next;              /* In its bucket, or free; CC_NOBODY. */
    uint32_t peer;              /* CC_NOBODY if not known. */
    bool used, ended;
    bool has_ecn;               /* The two hosts use it themselves. */
    bool said_hello;            /* On a SYN: the next one goes without. */
    uint16_t slot;
    uint16_t mss;               /* Of what arrives. */
    uint64_t last;              /* When there was a packet. */
    uint64_t syn_at;            /* When the host sent its SYN, 0 if not. */
    uint32_t syn_seq;           /* Of the host's last SYN. */
    struct cc_window window;
    struct cc_rtt rtt;          /* If it has no peer. */
    struct cc_echo echo;
    struct cc_arriving in;
    struct cc_leaving out;
};

struct cc_flows;

struct cc_flows *cc_flows_create(uint32_t max, uint64_t seed);
void cc_flows_destroy(struct cc_flows *);

struct cc_flow *cc_flows_find(const struct cc_flows *,
                              const struct shim_flow_key *);
struct cc_flow *cc_flows_add(struct cc_flows *, const struct shim_flow_key *,
                             uint64_t now);
void cc_flows_remove(struct cc_flows *, struct cc_flow *);
struct cc_flow *cc_flows_sweep(struct cc_flows *, uint64_t now);
struct cc_flow *cc_flows_get(const struct cc_flows *, uint32_t id);
uint32_t cc_flows_id(const struct cc_flows *, const struct cc_flow *);
uint32_t cc_flows_count(const struct cc_flows *);

#endif /* shim/cc/flow.h */
