/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_CC_H
#define SHIM_CC_CC_H 1

/* Explicit congestion control at the edge.
 *
 * If eight hosts send to one, the queue builds up before that host's downlink.
 * No switch is needed to avoid it: the receiving shim has the link's capacity,
 * the flows and their ranks.  It divides the link (see allocate.h) and
 * enforces the result by the strongest means that it has for a flow:
 *
 *    the remote shim is believed     it gets a grant, a rate, for each flow
 *      (remote-shim.h)               and paces it; windows limit the rest
 *    only the SYNs were seen         windows in the ACKs
 *    neither                         none: plain TCP
 *
 * As the sender's shim it paces the flows for which it has grants.  If those
 * exceed its own uplink, the uplink's queues divide it as the allocation
 * would: by rank, in equal parts within a rank, with a minimum share.
 *
 * Flows of less than CC_SMALL_BYTES in CC_SMALL_NS and flows of the control
 * ports are neither paced nor limited.  Flows of the control ports are also in
 * the control class of their job, or of packets without a job, with its share
 * of the uplink (queue/control-share.h).  Small flows keep their job's level:
 * otherwise an application could raise its level by sending little at a time.
 *
 * Where the switch's port to the host has one queue, the order is in the
 * grants alone, so they keep that queue short.  Where the port serves the
 * levels in order, what waits there does no harm to earlier ranks, and it
 * keeps the link busy while senders are busy with others: then all of the link
 * is granted, bursts do not wait for grants, and only a long queue lowers
 * them.
 *
 * ECN protects the core of the network, because no host can measure its
 * queues: where loops sleep for up to a millisecond, a round trip time depends
 * more on the hosts than on the network.  If both shims support it and the two
 * hosts do not use ECN themselves, the sender's shim marks data as
 * ECN-capable, and the receiver's shim clears the marks and lowers the flow's
 * rate by the share of marked data, as DCTCP does.
 *
 * The limit for the core rises by at most a thirty-second of the downlink per
 * step, because one segment of 9,000 bytes per round trip of half a
 * millisecond is more than most links.  It falls to no less than half of what
 * arrives: a long queue keeps delivering marked packets for a hundred round
 * trips, and one cut for each of them drove flows into TCP's timeouts.
 *
 * A flow counts as idle only after its granted rate would have carried several
 * segments: at 2 Mbit/s a frame of 9,000 bytes takes 36 ms, and with windows
 * of 2 ms flows alternated between the whole link and nothing.
 *
 *    cc = cc_create(&config);
 *    ...from the host: if (!cc_from_host(cc, &frame, &verdict, now)) drop...
 *    ...from the uplink: if (!cc_from_uplink(cc, &frame, slot, now)) drop...
 *    ...in each poll: cc_poll(cc, now)...
 *
 * After a takeover, before the first packet:
 *
 *    cc_restore(cc, body, now);
 *
 * What the config points to stays the caller's.  The forwarding thread, except
 * for the functions marked otherwise.  Nothing is allocated after the start
 * and nothing is logged. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct cc;
struct job_slots;
struct prefix_list;
struct rank_queues;
struct verdict;

#define CC_MAX_FLOWS 4096
#define CC_MAX_PEERS 512
#define CC_MAX_CONTROL_PORTS 16
#define CC_SMALL_BYTES 16384u
#define CC_SMALL_NS 10000000u

/* Largest size of takeover-state.h. */
#define CC_TAKEOVER_BYTES (576u << 10)

/* A frame. cc_from_host() and cc_from_uplink() may move its start by
 * HELLO_BYTES in either direction. */
struct cc_frame {
    uint8_t *data;
    uint32_t length;
    uint32_t headroom;          /* Bytes before 'data'. */
};

struct cc_config {
    const struct job_slots *slots;
    uint64_t downlink_bps;
    bool strict_switch;         /* The switch's port to this host serves the
                                 * levels in order. */
    uint64_t uplink_bps;
    uint8_t secret[SHIM_KEY_BYTES]; /* Random: of hashes and nonces. */
    uint64_t number;                /* Microseconds of the clock at time 0: of
                                     * messages, see remote-shim.h. */
    const struct prefix_list *tunnels; /* As in struct classifier. */
    uint32_t mtu;
    uint32_t max_flows;         /* Size of the table, 1 .. CC_MAX_FLOWS. */
    uint16_t control_ports[CC_MAX_CONTROL_PORTS];       /* 0: none. */

    struct rank_queues *queues; /* Of the uplink. */

    /* Sends a frame to the uplink, at the control level. */
    void (*send)(void *aux, const uint8_t *frame, size_t length);
    void *aux;
};

struct cc *cc_create(const struct cc_config *);
void cc_destroy(struct cc *);

/* Handles a frame from the host, classified as the verdict, before it is
 * tagged and queued.  Returns false if it is to be dropped: messages to shims
 * are for shims only. */
bool cc_from_host(struct cc *, struct cc_frame *, struct verdict *,
                  uint64_t now);

/* Handles a frame from the uplink for the job of 'slot'.  Returns false if it
 * was a message for this shim, which must not reach the host. */
bool cc_from_uplink(struct cc *, struct cc_frame *, uint16_t slot,
                    uint64_t now);

/* Divides the links again if it is time to. */
void cc_poll(struct cc *, uint64_t now);

/* Write and read the state for a takeover, see takeover-state.h.  cc_save()
 * returns the size of 'body', an aligned buffer of CC_TAKEOVER_BYTES.  The
 * body for cc_restore() must be valid; what exceeds the tables is ignored.
 * Any thread, while no other one uses 'cc'. */
size_t cc_save(struct cc *, void *body);
void cc_restore(struct cc *, const void *body, uint64_t now);

/* The control thread; see SHIM_KEYS and SHIM_PEERS.  'peers' has CC_MAX_PEERS
 * elements; returns false before the first list. */
void cc_set_law(struct cc *, const struct shim_congestion *);
void cc_set_keys(struct cc *, const struct shim_key *, size_t n);
bool cc_peers(struct cc *, struct shim_peer *peers, size_t *n);

/* Returns how many records of connections and of remote hosts were refused to
 * the job of 'slot', or taken from it, beyond its share.  cc_forget(): the
 * slot is another job's from now on. */
uint64_t cc_refused(const struct cc *, uint16_t slot);
void cc_forget(struct cc *, uint16_t slot);

/* Fills in the counters of congestion control. */
void cc_stats(const struct cc *, struct shim_stats *);

#endif /* shim/cc/cc.h */
