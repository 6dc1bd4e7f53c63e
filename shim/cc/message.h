/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_MESSAGE_H
#define SHIM_CC_MESSAGE_H 1

/* Messages between shims: hellos, by which they detect each other, and grants,
 * the rates of a receiver.
 *
 * A host without a shim must never receive a message for a shim.  So a shim
 * adds a TCP option to segments without data (SYN, SYN-ACK, and some ACKs of
 * connections that are older than the shim), and the shim at the other end
 * removes it.  An operating system ignores unknown options, and no packets are
 * added.  The option has the experimental kind 253 and an experiment id (RFC
 * 6994).  It is the first one, after two NOPs for alignment:
 *
 *    1 1 253 14 ExID(2) version(1) flags(1) nonce(8)
 *
 * The nonce is what the option's sender expects in messages to it.  A hello is
 * a hint: any host can send one, so that nothing follows from it but a message
 * to the shim that it tells of (remote-shim.h).
 *
 *    hello_insert(&frame, &seg, flags, nonce);
 *    ...
 *    segment_options(frame.data, &seg, &options);
 *    if (options.hello_at) {
 *        nonce = hello_read(frame.data, &options);
 *        hello_remove(&frame, &seg, &options);
 *    }
 *
 * A window limits how much is in flight; a rate also limits how evenly it is
 * sent.  So the receiver's shim sends the sender's shim a rate for each flow,
 * in UDP datagrams between the flow's own two addresses, which the other shim
 * removes from the traffic.  All integers are in network byte order:
 *
 *    offset  size  what
 *    0       4     "SGCC"
 *    4       1     version, 2
 *    5       1     type: 1 hello, 2 grants, 3 flows without data to send,
 *                  4 flows with data that wait for a grant, 5 flows that
 *                  cannot use their grants because the uplink is busy with
 *                  others, 6 welcome, the answer to 1
 *    6       1     flags, as in the option
 *    7       1     number of grants, 0 to 31
 *    8       8     nonce that the receiver of the message expects
 *    16      8     nonce that the sender of the message expects
 *    24      8     number of the message, above the earlier numbers
 *    32      16    each grant:
 *                    0   2   port of the flow's sender
 *                    2   2   port of its receiver
 *                    4   4   milliseconds for which it holds
 *                    8   8   bit/s
 *    ...     8     SipHash-2-4 of family, sender's address, receiver's
 *                  address and all before
 *
 * Types 3 to 5 are sent by the shim of the flow's sender, with 0 for the last
 * two fields: without them the receiver would notice the end of a burst only
 * after a timeout, which is long at a low rate, and its beginning only after
 * data that need no grant, and could not distinguish a sender that is busy
 * with other flows from a gap between two frames.  Types 4 and 5 are sent to
 * shims with HELLO_WAITING.
 *
 * A receiver ignores messages of another version or type, with a wrong hash or
 * nonce or with a number that is not new, and grants for flows that it does
 * not have.
 *
 * Pure functions over the caller's memory; the two that read a message are
 * safe on arbitrary bytes.  exchange.c sends and receives. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct cc_frame;
struct segment;
struct segment_options;

#define HELLO_BYTES 16 /* Of the option with the NOPs. */
#define HELLO_VERSION 2

enum hello_flags {
    HELLO_ECN = 1,     /* The shim counts and clears CE marks. */
    HELLO_WAITING = 2, /* Bursts to the shim must wait for grants, which it
                        * sends when it is informed of them (GRANT_WAITING).
                        * It uses reports of busy uplinks (GRANT_BUSY). */
};

/* Returns true for the option of any version. */
bool hello_is(const uint8_t *option, uint8_t size);

/* Returns true if the TCP header has space for the option. */
bool hello_fits(const struct segment *);

/* Returns the nonce, 0 for an option of another version. */
uint64_t hello_read(const uint8_t *frame, const struct segment_options *);

/* Adds the option.  Needs a headroom of HELLO_BYTES. */
void hello_insert(struct cc_frame *, struct segment *, uint8_t flags,
                  uint64_t nonce);

/* Removes an option where hello_insert() puts it, and overwrites others with
 * NOPs, until the segment has none. */
void hello_remove(struct cc_frame *, struct segment *,
                  struct segment_options *);

#define GRANT_PORT 8473 /* UDP, both ends. */
#define GRANT_VERSION 2
#define GRANT_MAX 31 /* In a message: fits an MTU of 576. */
#define GRANT_HEADER 32
#define GRANT_SIZE 16
#define GRANT_HASH 8
#define GRANT_MAX_MESSAGE (GRANT_HEADER + GRANT_MAX * GRANT_SIZE + GRANT_HASH)

enum grant_type {
    GRANT_HELLO = 1,
    GRANT_RATES,
    GRANT_EMPTY,
    GRANT_WAITING,
    GRANT_BUSY,
    GRANT_WELCOME,
};

struct grant {
    uint16_t sender_port, receiver_port; /* Network byte order. */
    uint32_t ms;
    uint64_t bps;
};

struct grant_message {
    uint8_t type;      /* enum grant_type. */
    uint8_t flags;     /* HELLO_*. */
    uint8_t n;         /* Elements of 'grants'. */
    uint64_t to, from; /* Nonces. */
    uint64_t number;
    struct grant grants[GRANT_MAX];
};

/* The two hosts of a message, as in struct shim_flow_key, and their key. */
struct grant_ends {
    uint8_t family;
    const uint8_t *sender, *receiver;
    const uint8_t *key; /* SHIM_KEY_BYTES. */
};

/* Writes the message to a buffer of GRANT_MAX_MESSAGE bytes.  Returns its
 * size. */
size_t grant_message_write(const struct grant_message *,
                           const struct grant_ends *, uint8_t *);

/* Returns false if the bytes are not a message, whatever its hash. */
bool grant_message_read(const uint8_t *, size_t, struct grant_message *);

/* Returns true if bytes that are a message have the right hash. */
bool grant_message_is_right(const uint8_t *, const struct grant_ends *);

#endif /* shim/cc/message.h */
