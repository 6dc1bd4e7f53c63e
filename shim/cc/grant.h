/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_GRANT_H
#define SHIM_CC_GRANT_H 1

/* What one shim tells another: rates.
 *
 *
 * Motivation
 * ==========
 *
 * A window bounds what is under way; a rate also says how evenly.  So the shim
 * of a receiver tells that of the sender how fast each flow may go, in UDP
 * datagrams between the flow's own two addresses, which the other shim takes
 * out.  It does so only to a shim that has shown itself (see hello.h).  All
 * integers are in network byte order:
 *
 *    offset  size  what
 *    0       4     "SGCC"
 *    4       1     version, 1
 *    5       1     type: 1 hello, 2 grants, 3 flows that have nothing to send
 *    6       1     flags of the hello, see hello.h
 *    7       1     number of grants, 0 to 32
 *    8       4     nonce of the shim that this is for
 *    12      4     nonce of the shim that this is from
 *    16      16    each grant:
 *                    0   2   port of the flow's sender
 *                    2   2   port of its receiver
 *                    4   4   milliseconds for which it holds
 *                    8   8   bit/s
 *
 * The third type goes the other way, from the sender's shim, whose grants have
 * 0 for the last two: silence is noticed late, and at a slow rate very late.
 * Who knows only two types ignores it.
 *
 * A receiver of another version, of a nonce that is not its own, or of a flow
 * that it does not have ignores what it does not know.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Pure functions over the caller's memory; hostile bytes are what
 * grant_message_read() is for. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRANT_PORT 8473         /* UDP, both ends. */
#define GRANT_VERSION 1
#define GRANT_MAX 32            /* In a message: fits an MTU of 576. */
#define GRANT_HEADER 16
#define GRANT_SIZE 16
#define GRANT_MAX_MESSAGE (GRANT_HEADER + GRANT_MAX * GRANT_SIZE)

enum grant_type {
    GRANT_HELLO = 1,
    GRANT_RATES,
    GRANT_EMPTY,
};

struct grant {
    uint16_t sender_port, receiver_port;        /* Network byte order. */
    uint32_t ms;
    uint64_t bps;
};

struct grant_message {
    uint8_t type;               /* enum grant_type. */
    uint8_t flags;
    uint8_t n;
    uint32_t to, from;          /* Nonces. */
    struct grant grants[GRANT_MAX];
};

size_t grant_message_write(const struct grant_message *, uint8_t *);
bool grant_message_read(const uint8_t *, size_t, struct grant_message *);

#endif /* shim/cc/grant.h */
