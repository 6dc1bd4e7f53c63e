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
 * without new hellos, and none of them counts twice.  Rates and round trips
 * are not: they are measured again within milliseconds.
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

#include "shim/cc/segment.h"
#include "wire/shim-protocol.h"

struct takeover_state {
    struct shim_congestion law; /* In force. */
    uint32_t managed;           /* 1: keys have come. */
    uint32_t n_remotes, n_connections;
};

#define TAKEOVER_MAX_L2 22 /* Bytes: Ethernet with two VLAN tags. */

/* A key of messages. */
struct takeover_key {
    enum key_kind {
        KEY_NONE,
        KEY_OPEN,  /* The two nonces. */
        KEY_GIVEN, /* 'bytes', from the controller. */
    } kind;
    uint8_t bytes[SHIM_KEY_BYTES]; /* Otherwise 0. */
};

/* A remote host.  Addresses as in struct shim_flow_key. */
struct takeover_remote {
    uint64_t nonce;     /* Goes into messages to it. */
    uint64_t own_nonce; /* Must be in messages from it. */
    uint64_t sent;      /* Number of the last message to it. */
    uint64_t seen;      /* Largest number of a message from it. */
    uint64_t window;    /* Bit N: number 'seen' - N has arrived. */
    uint64_t key_at;    /* When 'key' came. */
    uint64_t old_until; /* When 'old_key' ends. */
    struct takeover_key key, old_key;
    uint8_t local[16], remote[16];
    uint8_t l2[TAKEOVER_MAX_L2]; /* Ethernet header of packets to it. */
    uint8_t l2_size;             /* Bytes of 'l2', 0 if not known. */
    uint8_t family;              /* 4 or 6. */
    uint8_t flags;               /* HELLO_* of its last message. */
    bool verified;               /* Messages to its shim may be sent. */
    bool confirmed;              /* A message with 'key' has arrived. */
    uint8_t pad[5];              /* 0. */
};

/* A TCP connection: see struct cc_flow. */
struct takeover_connection {
    struct shim_flow_key key;
    uint64_t last;           /* Time of the last packet. */
    uint64_t out_bps;        /* Rate granted for data to the uplink. */
    uint64_t out_until;      /* Time at which that grant ends. */
    uint64_t core;           /* Limit of arriving data by ECN, or 0. */
    double alpha;            /* Share of marked data, 0 to 1. */
    struct cc_window window; /* Its shifts are at most those of RFC 7323. */
    uint32_t most;           /* Bytes that the remote end may have in flight,
                              * CC_WINDOW_ANY: no limit. */
    uint32_t syn_seq;        /* Sequence number of the host's SYN. */
    uint16_t slot;           /* 0 .. SHIM_MAX_SLOTS - 1. */
    uint16_t mss;            /* Of data to the host. */
    bool has_ecn, hello_sent, ended, bulk;
};

/* Returns the size of a body. */
size_t takeover_state_size(uint32_t n_remotes, uint32_t n_connections);

/* Returns the remote shims and the connections of a body. */
static inline struct takeover_remote *
takeover_state_remotes(const struct takeover_state *head)
{
    return (struct takeover_remote *) (head + 1);
}

static inline struct takeover_connection *
takeover_state_connections(const struct takeover_state *head)
{
    return (struct takeover_connection *) (takeover_state_remotes(head)
                                           + head->n_remotes);
}

/* Checks an aligned body.  Returns 0, EPROTO if the size is wrong, or EINVAL
 * if a value is. */
int takeover_state_check(const void *body, size_t size);

#endif /* shim/cc/takeover-state.h */
