/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_GRANT_MESSAGE_H
#define SHIM_CC_GRANT_MESSAGE_H 1

/* Messages between two shims: the rates that a receiver grants.
 *
 * A window limits how much is in flight; a rate also limits how evenly it is
 * sent.  So the receiver's shim sends the sender's shim a rate for each flow,
 * in UDP datagrams between the flow's own two addresses, which the other shim
 * removes from the traffic.  They are sent only to verified shims (see
 * hello.h).  All integers are in network byte order:
 *
 *    offset  size  what
 *    0       4     "SGCC"
 *    4       1     version, 1
 *    5       1     type: 1 hello, 2 grants, 3 flows without data to send,
 *                  4 flows whose data wait for a grant, 5 flows that cannot
 *                  use their grants because the uplink is busy with others
 *    6       1     flags of the hello, see hello.h
 *    7       1     number of grants, 0 to 32
 *    8       4     nonce that the receiver of the message expects
 *    12      4     nonce that the sender of the message expects
 *    16      16    each grant:
 *                    0   2   port of the flow's sender
 *                    2   2   port of its receiver
 *                    4   4   milliseconds for which it holds
 *                    8   8   bit/s
 *
 * Types 3 to 5 are sent by the shim of the flow's sender, with 0 for the last
 * two fields: without them the receiver would notice the end of a burst only
 * after a timeout, which is long at a low rate, and its beginning only after
 * data that need no grant, and could not distinguish a sender that is busy
 * with other flows from a gap between two frames.  Types 4 and 5 are sent to
 * shims with HELLO_WAITING.
 *
 * A receiver ignores messages of another version or type or with a wrong
 * nonce, and grants for flows that it does not have.
 *
 * Pure functions; grant_message_read() is safe on arbitrary bytes.  exchange.c
 * sends and receives messages. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRANT_PORT 8473 /* UDP, both ends. */
#define GRANT_VERSION 1
#define GRANT_MAX 32 /* In a message: fits an MTU of 576. */
#define GRANT_HEADER 16
#define GRANT_SIZE 16
#define GRANT_MAX_MESSAGE (GRANT_HEADER + GRANT_MAX * GRANT_SIZE)

enum grant_type {
    GRANT_HELLO = 1,
    GRANT_RATES,
    GRANT_EMPTY,
    GRANT_WAITING,
    GRANT_BUSY,
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
    uint32_t to, from; /* Nonces. */
    struct grant grants[GRANT_MAX];
};

/* Writes the message to a buffer of GRANT_MAX_MESSAGE bytes.  Returns its
 * size. */
size_t grant_message_write(const struct grant_message *, uint8_t *);

/* Returns false if the bytes are not a message. */
bool grant_message_read(const uint8_t *, size_t, struct grant_message *);

#endif /* shim/cc/grant-message.h */
