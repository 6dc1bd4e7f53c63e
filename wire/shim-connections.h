/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CONNECTIONS_H
#define SHIM_CONNECTIONS_H 1

/* What congestion control has learned of connections, for a successor.
 *
 *
 * Motivation
 * ==========
 *
 * What the windows of a connection mean is told once, by its SYNs, and how far
 * a sender may send only changes step by step.  A shim that takes the place of
 * another cannot find either out again, so it asks with SHIM_CONNECTIONS once
 * the other one receives no more.  The nonces go along, so that other hosts'
 * shims go on with their messages as if nothing had happened.
 *
 * The body of the reply is a struct shim_connections, then its peers, then its
 * connections.  It is for a process of the same host: times are nanoseconds of
 * CLOCK_MONOTONIC, other integers in host byte order, addresses and ports in
 * network byte order.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Pure functions over the caller's memory; hostile bytes are what they are
 * for. */

#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct shim_connections {
    struct shim_congestion law; /* In force. */
    uint32_t n_peers, n_connections;
};

#define SHIM_PEER_MAX_L2 22     /* Ethernet with two VLAN tags. */

/* Another host, as this one's address talks to it. */
struct shim_peer {
    uint8_t family;             /* 4 or 6. */
    uint8_t proven;             /* 1: it has a shim... */
    uint8_t flags;              /* ...with these HELLO_* ... */
    uint8_t l2_size;            /* Bytes of 'l2', 0 if not known. */
    uint32_t nonce;             /* ...that wants to see this. */
    uint32_t own_nonce;         /* What this shim wants to see. */
    uint8_t local[16], remote[16];      /* As in struct shim_flow_key. */
    uint8_t l2[SHIM_PEER_MAX_L2];       /* Of the host's frames to it. */
    uint8_t pad[2];             /* 0. */
};

enum shim_connection_flags {
    SHIM_CONNECTION_HOST_SAID = 1 << 0,         /* A SYN of that side was
                                                 * seen... */
    SHIM_CONNECTION_PEER_SAID = 1 << 1,
    SHIM_CONNECTION_HOST_SCALES = 1 << 2,       /* ...and had the option. */
    SHIM_CONNECTION_PEER_SCALES = 1 << 3,
    SHIM_CONNECTION_HAS_EDGE = 1 << 4,
    SHIM_CONNECTION_HAS_ECN = 1 << 5,   /* The two hosts use it. */
    SHIM_CONNECTION_SAID_HELLO = 1 << 6,
    SHIM_CONNECTION_ENDED = 1 << 7,
    SHIM_CONNECTION_BULK = 1 << 8,      /* Its data have windows and rates. */
    SHIM_CONNECTION_FLAGS = (1 << 9) - 1,
};

#define SHIM_CONNECTION_MAX_SHIFT 14    /* RFC 7323, section 2.3. */
#define SHIM_CONNECTION_UNIT 1000000u

struct shim_connection {
    struct shim_flow_key key;   /* Of TCP. */
    uint64_t last;              /* When there was a packet. */
    uint64_t rtt_ns;            /* The shortest of late, 0 if not known. */
    uint64_t out_bps;           /* What its data to the uplink may have... */
    uint64_t out_until;         /* ...and until when. */
    uint64_t core_bps;          /* What the network's core lets through of
                                 * its data to the host, 0 for any. */
    uint32_t marked;            /* Share that the core marks, smoothed, in
                                 * SHIM_CONNECTION_UNIT. */
    uint32_t window;            /* Bytes that its peer may have under way,
                                 * UINT32_MAX for any. */
    uint32_t edge;              /* Farthest right edge that was told. */
    uint32_t syn_seq;           /* Of the host's SYN. */
    uint16_t flags;             /* SHIM_CONNECTION_*. */
    uint16_t slot;              /* 0 .. SHIM_MAX_SLOTS - 1. */
    uint16_t mss;               /* Of what arrives. */
    uint8_t host_shift;         /* Of the host's windows... */
    uint8_t wire_shift;         /* ...and what the peer takes it for. */
};

/* Returns the bytes of a body. */
size_t connections_size(uint32_t n_peers, uint32_t n_connections);

/* Copy a body's elements, the first of which is number 0, to where they are
 * aligned. */
void connections_head(const void *body, struct shim_connections *);
void connections_peer(const void *body, uint32_t i, struct shim_peer *);
void connections_get(const void *body, uint32_t i, struct shim_connection *);

/* Returns 0, EPROTO if the size is wrong, or EINVAL if a value is. */
int connections_check(const void *body, size_t size);

#endif /* wire/shim-connections.h */
