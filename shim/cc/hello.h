/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_HELLO_H
#define SHIM_CC_HELLO_H 1

/* The hello: a TCP option by which two shims detect each other.
 *
 * A host without a shim must never receive a message for a shim.  So a shim
 * adds an option to segments without data (SYN, SYN-ACK, and some ACKs of
 * connections that are older than the shim), and the shim at the other end
 * removes it.  An operating system ignores unknown options, and no packets are
 * added.
 *
 * The option has the experimental kind 253 and an experiment id (RFC 6994).
 * It is the first option, after two NOPs for alignment:
 *
 *    1 1 253 14 ExID(2) version(1) flags(1) nonce(8)
 *
 * The nonce is what the option's sender expects in messages to it.  A hello is
 * a hint: any host can send one, so that nothing follows from it but a message
 * to the shim that it tells of (remote-shim.h).  A shim removes hellos that
 * its own host sends.
 *
 *    data = hello_insert(data, &seg, &hello);
 *    ...
 *    segment_options(data, &seg, &options);
 *    if (options.hello_at) {
 *        hello_read(data + options.hello_at, options.hello_size, &hello);
 *        data = hello_remove(data, &seg, &options);
 *    }
 *
 * Pure functions over the caller's memory.  exchange.c decides when to send a
 * hello, and what follows from one. */

#include <stdbool.h>
#include <stdint.h>

struct segment;
struct segment_options;

#define HELLO_BYTES 16 /* Of the option with the NOPs. */
#define HELLO_VERSION 2

enum hello_flags {
    HELLO_ECN = 1,              /* The shim counts and clears CE marks. */
    HELLO_WAITING = 2,          /* Bursts to the shim must wait for grants,
                                 * which it sends when it is informed of them
                                 * (GRANT_WAITING).  It uses reports of busy
                                 * uplinks (GRANT_BUSY). */
};

struct hello {
    uint8_t flags;              /* HELLO_*. */
    uint64_t nonce;
};

/* Returns true for the option of any version. */
bool hello_is(const uint8_t *option, uint8_t size);

/* Returns true if the TCP header has space for the option. */
bool hello_fits(const struct segment *);

/* Returns false for an option of another version. */
bool hello_read(const uint8_t *option, uint8_t size, struct hello *);

/* Adds the option.  Needs HELLO_BYTES before 'frame', and returns the new
 * start of the frame, which is that much longer. */
uint8_t *hello_insert(uint8_t *frame, struct segment *, const struct hello *);

/* Removes the option if it is where hello_insert() puts it, otherwise
 * overwrites it with NOPs.  Returns the new start of the frame. */
uint8_t *hello_remove(uint8_t *frame, struct segment *,
                      const struct segment_options *);

#endif /* shim/cc/hello.h */
