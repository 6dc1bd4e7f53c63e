/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_HELLO_H
#define SHIM_CC_HELLO_H 1

/* How two shims find out about each other: a TCP option.
 *
 *
 * Motivation
 * ==========
 *
 * A shim may tell another one rates, but a host without a shim must never see
 * such a message.  So a shim adds an option to segments that carry no data
 * (SYN, SYN with ACK, and some acknowledgements of connections that were there
 * before it), and the shim at the other end takes it out again.  An operating
 * system ignores an option that it does not know, and no packets are added.
 *
 * The option is of the experimental kind 253 with an experiment's number (RFC
 * 6994), and comes first in the header, after two NOPs that align it:
 *
 *    1 1 253 10 ExID(2) version(1) flags(1) nonce(4)
 *
 * The nonce is what the sender of the option wants to see in messages to it:
 * who has never seen its traffic cannot guess it.
 *
 *
 * Usage
 * =====
 *
 *    data = hello_insert(data, &seg, &hello);
 *    ...
 *    segment_options(data, &seg, &options);
 *    if (options.hello_at) {
 *        hello_read(data + options.hello_at, &hello);
 *        data = hello_remove(data, &seg, &options);
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Pure functions over the caller's memory. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct segment;
struct segment_options;

#define HELLO_ROOM 12           /* Bytes, with the NOPs. */
#define HELLO_VERSION 1

enum hello_flags {
    HELLO_ECN = 1,              /* Counts and takes out CE marks. */
};

struct hello {
    uint8_t version;
    uint8_t flags;              /* HELLO_*. */
    uint32_t nonce;
};

bool hello_is(const uint8_t *option, uint8_t size);
bool hello_fits(const struct segment *);
void hello_read(const uint8_t *option, struct hello *);
uint8_t *hello_insert(uint8_t *frame, struct segment *, const struct hello *);
uint8_t *hello_remove(uint8_t *frame, struct segment *,
                      const struct segment_options *);

#endif /* shim/cc/hello.h */
