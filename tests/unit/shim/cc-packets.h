/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CC_PACKETS_H
#define CC_PACKETS_H 1

/* TCP segments on the wire, for tests of congestion control. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/cc/cc.h"
#include "shim/cc/segment.h"

enum {
    PACKET_ROOM = 64,           /* Before a packet. */
    PACKET_SIZE = 10000,
};

struct cc_packet {
    uint8_t buffer[PACKET_ROOM + PACKET_SIZE];
    struct cc_frame frame;
};

/* A packet to make; 0 for what is missing. */
struct packet_spec {
    uint8_t family;             /* 4 (also 0) or 6. */
    uint8_t from, to;           /* Hosts: 10.0.0.N or fd00::N. */
    uint16_t from_port, to_port;
    uint8_t flags;              /* SEGMENT_*. */
    uint32_t seq, ack;
    uint16_t window;
    uint16_t mss;               /* Options. */
    uint8_t scale;
    bool has_scale;
    uint32_t ts_value, ts_echo;
    uint32_t payload;
    uint8_t ecn;
    uint8_t options;            /* Bytes of NOPs before the others. */
};

void packet_make(struct cc_packet *, const struct packet_spec *);

/* Returns true if the checksums of IP and of TCP or UDP are right. */
bool packet_is_right(const uint8_t *frame, size_t length);

#endif /* tests/unit/shim/cc-packets.h */
