/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_PEER_H
#define SHIM_CC_PEER_H 1

/* The hosts at the other ends, and which of them have a shim.
 *
 *
 * Motivation
 * ==========
 *
 * A message to another shim needs the two addresses and the Ethernet header
 * that packets of this host to it have, and the nonce that it wants to see.
 * It may be sent only after the peer has shown itself.  The nonce that this
 * shim wants differs from peer to peer, so that none can speak for another.
 *
 * Between a pair of hosts all flows share the record, and the round trip, as if
 * they all went the same way: longer ways of a fabric differ by less than what a
 * flow waits in its sender's shim.  The table is bounded;
 * a new peer takes the place of one that was not heard of for long, or has
 * none: its flows are then bounded by windows alone.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The table owns its records, which do not move.  One thread.  Nothing is
 * allocated after the start. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/cc/estimate.h"
#include "shim/cc/grant.h"
#include "shim/cc/hello.h"
#include "wire/shim-protocol.h"

#define CC_MAX_PEERS 512
#define CC_MAX_L2 22            /* Ethernet with two VLAN tags. */

struct cc_peer {
    uint8_t family;             /* 4 or 6; 0: the record is free. */
    uint8_t local[16], remote[16];
    uint64_t last;              /* When there was a packet. */
    bool proven;                /* It has a shim... */
    uint8_t flags;              /* ...with these HELLO_* ... */
    uint32_t nonce;             /* ...that wants to see this. */
    uint32_t own_nonce;         /* What this shim wants to see. */
    uint64_t asked;             /* When a hello went to it last... */
    uint8_t asks;               /* ...after so many without an answer. */
    uint8_t l2_size;            /* 0: not known yet. */
    uint8_t l2[CC_MAX_L2];      /* Of the host's packets to it. */
    struct cc_rtt rtt;          /* Of all flows. */
    bool tells;                 /* It tells rates, or has done so last. */
    bool due;                   /* Its flows' rates are to be told. */
    struct grant_message message;       /* To it, being written. */
};

struct cc_peers;

struct cc_peers *cc_peers_create(uint64_t seed);
void cc_peers_destroy(struct cc_peers *);

uint32_t cc_peers_find(struct cc_peers *, const struct shim_flow_key *,
                       uint64_t now, bool add);
struct cc_peer *cc_peers_get(struct cc_peers *, uint32_t id);
void cc_peer_prove(struct cc_peer *, uint8_t flags, uint32_t nonce);
void cc_peer_learn_l2(struct cc_peer *, const uint8_t *frame, uint16_t l3);

#endif /* shim/cc/peer.h */
