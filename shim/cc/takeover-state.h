/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_TAKEOVER_STATE_H
#define SHIM_CC_TAKEOVER_STATE_H 1

/* State of congestion control that an old shim passes to a new one: the body
 * of the reply to SHIM_CONNECTIONS.
 *
 * Only a connection's SYNs contain its window scale, and the right edge of its
 * window moves step by step.  A new shim can learn neither again, so it
 * requests them once the old shim has stopped.  The keys, nonces and numbers
 * of messages are included, so that remote shims continue to exchange messages
 * without new hellos.  Rates are not: they are measured again within
 * milliseconds.
 *
 * The body is a struct takeover_state, then its remote shims, then its
 * connections.  Both processes are on one host: times are nanoseconds of
 * CLOCK_MONOTONIC, addresses and ports are in network byte order, other
 * integers in host byte order.  cc_save() writes a body and cc_restore() reads
 * it, see cc.h.
 *
 * Pure functions over the caller's memory; takeover_state_check() is safe on
 * arbitrary bytes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct takeover_state {
    uint64_t managed_at;        /* When the first keys came, 0: never. */
    struct shim_congestion law; /* In force. */
    uint32_t pad;               /* 0. */
    uint32_t n_remotes, n_connections;
};

#define TAKEOVER_MAX_L2 22      /* Bytes: Ethernet with two VLAN tags. */

/* A remote host.  Addresses as in struct shim_flow_key. */
struct takeover_remote {
    uint64_t nonce;             /* Goes into messages to it. */
    uint64_t own_nonce;         /* Must be in messages from it. */
    uint64_t sent;              /* Number of the last message to it. */
    uint64_t seen;              /* Largest number of a message from it. */
    uint64_t window;            /* Bit N: number 'seen' - N has arrived. */
    uint64_t key_at;            /* When 'key' came. */
    uint8_t family;             /* 4 or 6. */
    bool verified;              /* Messages to its shim may be sent. */
    bool has_key, has_old_key;  /* These keys are set. */
    bool confirmed;             /* A message with 'key' has arrived. */
    uint8_t flags;              /* HELLO_* of its last message. */
    uint8_t l2_size;            /* Bytes of 'l2', 0 if not known. */
    bool open;                  /* It was verified without a key when the first
                                 * keys came. */
    uint8_t key[SHIM_KEY_BYTES], old_key[SHIM_KEY_BYTES];
    uint8_t local[16], remote[16];
    uint8_t l2[TAKEOVER_MAX_L2];        /* Ethernet header of packets to it. */
    uint8_t pad2[2];                    /* 0. */
};

enum connection_flags {
    CONNECTION_HOST_SYN_SEEN = 1 << 0,
    CONNECTION_REMOTE_SYN_SEEN = 1 << 1,
    CONNECTION_HOST_SCALES = 1 << 2,    /* The host's SYN has a scale. */
    CONNECTION_REMOTE_SCALES = 1 << 3,  /* The remote end's SYN has one. */
    CONNECTION_HAS_EDGE = 1 << 4,       /* 'edge' is valid. */
    CONNECTION_HAS_ECN = 1 << 5,        /* The two hosts use it. */
    CONNECTION_HELLO_SENT = 1 << 6,     /* On a SYN. */
    CONNECTION_ENDED = 1 << 7,          /* A FIN or RST was seen. */
    CONNECTION_BULK = 1 << 8,           /* Not a small flow to the host. */
    CONNECTION_FLAGS = (1 << 9) - 1,
};

#define CONNECTION_MAX_SHIFT 14 /* RFC 7323, section 2.3. */
#define CONNECTION_UNIT 1000000u

/* A TCP connection: see struct cc_flow. */
struct takeover_connection {
    struct shim_flow_key key;
    uint64_t last;              /* Time of the last packet. */
    uint64_t rtt_ns;            /* Shortest recent round trip, 0: unknown. */
    uint64_t out_bps;           /* Rate granted for data to the uplink. */
    uint64_t out_until;         /* Time at which that grant ends. */
    uint64_t core_bps;          /* Limit of arriving data by ECN, or 0. */
    uint32_t marked;            /* Share of marked data in CONNECTION_UNIT. */
    uint32_t window;            /* Bytes that the remote end may have in
                                 * flight, UINT32_MAX: no limit. */
    uint32_t edge;              /* Farthest right edge sent to it. */
    uint32_t syn_seq;           /* Sequence number of the host's SYN. */
    uint16_t flags;             /* CONNECTION_*. */
    uint16_t slot;              /* 0 .. SHIM_MAX_SLOTS - 1. */
    uint16_t mss;               /* Of data to the host. */
    uint8_t host_shift;         /* Window scale that the host uses. */
    uint8_t wire_shift;         /* Window scale that the remote end uses. */
};

/* Returns the size of a body. */
size_t takeover_state_size(uint32_t n_remotes, uint32_t n_connections);

/* Copies connection 'i' of a valid body, in which it is not aligned. */
void takeover_state_connection(const struct takeover_state *, uint32_t i,
                               struct takeover_connection *);

/* Checks an aligned body.  Returns 0, EPROTO if the size is wrong, or EINVAL
 * if a value is. */
int takeover_state_check(const void *body, size_t size);

#endif /* shim/cc/takeover-state.h */
