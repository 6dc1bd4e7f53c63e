/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_SEGMENT_H
#define SHIM_CC_SEGMENT_H 1

/* A TCP segment in a frame: where its parts are, and how to change them.
 *
 *
 * Motivation
 * ==========
 *
 * Congestion control reads and writes TCP's headers.  Here a frame becomes a
 * struct whose offsets are checked once, and each change keeps the checksum
 * right by the difference (RFC 1624), so that a wrong one stays wrong.
 *
 * Segments behind IPv6 extension headers or in fragments are none, and nothing
 * is done to them.
 *
 *
 * Usage
 * =====
 *
 *    if (segment_parse(data, length, true, &seg)) {
 *        segment_set_window(data, &seg, seg.window / 2);
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

#include "wire/shim-protocol.h"

enum {
    SEGMENT_FIN = 1,
    SEGMENT_SYN = 2,
    SEGMENT_RST = 4,
    SEGMENT_PSH = 8,
    SEGMENT_ACK = 16,
    SEGMENT_ECE = 64,
    SEGMENT_CWR = 128,
};

enum {
    SEGMENT_NOT_ECT = 0,
    SEGMENT_ECT_0 = 2,
    SEGMENT_CE = 3,
};

struct segment {
    struct shim_flow_key key;
    uint16_t l3, l4;            /* Offsets in the frame. */
    uint8_t family;             /* 4 or 6. */
    uint8_t header;             /* Bytes of TCP header, with options. */
    uint8_t flags;              /* SEGMENT_*. */
    uint8_t ecn;                /* IP's two bits. */
    uint16_t window;            /* As it stands there. */
    uint32_t seq, ack;
    uint32_t payload;           /* Bytes. */
};

/* What the options say; 0 means that an option is not there. */
struct segment_options {
    uint16_t mss;
    uint16_t scale_at;          /* Offset in the frame of its value. */
    uint8_t scale;
    bool has_timestamp;
    uint32_t ts_value, ts_echo;
    uint16_t hello_at;          /* See hello.h: of the option's first byte. */
    uint8_t hello_size;
};

bool segment_parse(const uint8_t *frame, size_t length, bool from_host,
                   struct segment *);
void segment_options(const uint8_t *frame, const struct segment *,
                     struct segment_options *);

void segment_set_16(uint8_t *frame, const struct segment *, uint16_t at,
                    uint16_t value);
void segment_set_window(uint8_t *frame, struct segment *, uint16_t window);
void segment_set_byte(uint8_t *frame, const struct segment *, uint16_t at,
                      uint8_t value);
void segment_set_ecn(uint8_t *frame, struct segment *, uint8_t ecn);

/* One's complement: 'sum' of a header in which 'old' became 'new'. */
uint16_t checksum_change(uint16_t sum, uint16_t old, uint16_t new);
uint16_t checksum_of(const void *, size_t, uint32_t start);

static inline uint16_t
get_be16(const uint8_t *p)
{
    return p[0] << 8 | p[1];
}

static inline uint32_t
get_be32(const uint8_t *p)
{
    return (uint32_t) get_be16(p) << 16 | get_be16(p + 2);
}

static inline void
put_be16(uint8_t *p, uint16_t value)
{
    p[0] = value >> 8;
    p[1] = value;
}

static inline void
put_be32(uint8_t *p, uint32_t value)
{
    put_be16(p, value >> 16);
    put_be16(p + 2, value);
}

#endif /* shim/cc/segment.h */
