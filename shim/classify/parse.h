/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_PARSE_H
#define SHIM_PARSE_H 1

/* What the shim needs to know of a frame.
 *
 *
 * Motivation
 * ==========
 *
 * A frame belongs to a job if its 5-tuple does.  The parser finds the 5-tuple
 * as the host sees it ("local" is the host's side in both directions), and
 * where the IP header is, so that its DSCP can be rewritten.  It trusts
 * nothing in the frame: every header is checked against what is there.
 *
 * Up to two VLAN tags and, in IPv6, up to four extension headers are skipped.
 * Fragments have no key, not even the first one, which does carry the ports:
 * all parts of a datagram thus take the same queue and keep their order.
 *
 * RoCEv2 is UDP like any other: its flow is the 5-tuple, whose source port the
 * sender derives from the queue pair, and not the destination queue pair in
 * the header behind it.
 *
 * VXLAN's flow is that of the frame inside if that one has a flow, so that
 * what virtual machines and containers send can be told apart; otherwise it is
 * the tunnel's own.  The IP header that counts stays the outer one: the fabric
 * reads its DSCP, while the inner one belongs to whoever sent the packet.
 *
 * Nearly all packets are TCP or UDP over plain Ethernet and IPv4 without
 * options.  parse_common() recognizes those by a few words, and gives their
 * key as the flow table has it; it takes no frame of which parse_frame() would
 * think otherwise.  Where it takes none, the key is worth nothing.
 *
 *
 * Usage
 * =====
 *
 *    struct parsed p;
 *
 *    if (parse_common(data, length, true, &id)) {
 *        ...look id up...
 *    } else {
 *        parse_frame(data, length, true, &p);
 *        if (p.kind == PARSED_FLOW) {
 *            ...look p.key up...
 *        }
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

#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#include "wire/shim-protocol.h"
#include "shim/classify/flow-table.h"

#define PARSE_COMMON_L3 14      /* Offset of the IP header there. */

enum parsed_kind {
    PARSED_OTHER,               /* Not IP: ARP, LLDP and the like. */
    PARSED_IP,                  /* IP without ports: ICMP, a fragment... */
    PARSED_NEIGHBOUR,           /* IPv6 neighbour discovery: IPv6's ARP. */
    PARSED_FLOW,                /* TCP or UDP with both ports: 'key' holds. */
    PARSED_MALFORMED,           /* Ended before its headers did. */
};

struct parsed {
    enum parsed_kind kind;
    uint16_t l3;                /* Offset of the IP header, 0 if none. */
    uint16_t l4;                /* Offset of TCP's or UDP's header... */
    uint16_t end;               /* ...and of the IP packet's end, only if
                                 * PARSED_FLOW. */
    uint8_t family;             /* 4 or 6, 0 if not IP. */
    struct shim_flow_key key;   /* Only if PARSED_FLOW. */
};

void parse_frame(const uint8_t *frame, size_t length, bool from_host,
                 struct parsed *);
void parse_inner(const uint8_t *frame, bool from_host, struct parsed *);

/* By protocol: the least length of a packet with ports, UINT32_MAX if it has
 * none. */
extern const uint32_t parse_common_min[256];

/* Is an IPv4 packet of 'total' bytes, as its header says, there in a frame of
 * 'length', and does it have ports? */
static inline bool
parse_is_whole(uint32_t total, uint8_t protocol, uint32_t length)
{
    return (total >= parse_common_min[protocol]
            && total <= length - PARSE_COMMON_L3);
}

/* parse_common() for any processor. */
static inline bool
parse_common_portable(const uint8_t *frame, size_t length, bool from_host,
                      struct flow_id *id)
{
    uint64_t start, addresses;  /* Ethernet's type, IP's first bytes... */
    uint32_t middle, ports;     /* ...fragment, time to live, protocol. */
    uint32_t protocol;

    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || length < 42) {
        return false;
    }
    memcpy(&start, frame + 12, sizeof start);
    memcpy(&middle, frame + 20, sizeof middle);
    memcpy(&addresses, frame + 26, sizeof addresses);
    memcpy(&ports, frame + 34, sizeof ports);

    protocol = middle >> 24;
    if (((start & 0xffffff) ^ 0x450008) | (middle & 0xff3f)
        || !parse_is_whole(__builtin_bswap16(start >> 32), protocol,
                           length)) {
        return false;
    }
    if (!from_host) {
        addresses = addresses << 32 | addresses >> 32;
        ports = ports << 16 | ports >> 16;
    }
    *id = flow_id_init(addresses, ports, protocol);
    return true;
}

/* Stores the key of 'frame' in '*id' and returns true if it is TCP or UDP as
 * nearly all of it is; otherwise parse_frame() has to look. */
#ifdef __SSE4_1__
static inline bool
parse_common(const uint8_t *frame, size_t length, bool from_host,
             struct flow_id *id)
{
    /* Type and version, and no fragment: from 12 on. */
    const __m128i common = _mm_setr_epi8(8, 0, 0x45, 0, 0, 0, 0, 0,
                                         0, 0, 0, 0, 0, 0, 0, 0);
    const __m128i matters = _mm_setr_epi8(-1, -1, -1, 0, 0, 0, 0, 0,
                                          0x3f, -1, 0, 0, 0, 0, 0, 0);

    /* Protocol, ports, 0, addresses: bytes from 22 on. */
    const __m128i local_first = _mm_setr_epi8(1, 12, 13, 14, 15, -1, -1, -1,
                                              4, 5, 6, 7, 8, 9, 10, 11);
    const __m128i remote_first = _mm_setr_epi8(1, 14, 15, 12, 13, -1, -1, -1,
                                               8, 9, 10, 11, 4, 5, 6, 7);
    __m128i start, end;
    uint16_t total;

    if (length < 42) {
        return false;
    }
    start = _mm_loadu_si128((const __m128i *) (frame + 12));
    end = _mm_loadu_si128((const __m128i *) (frame + 22));
    memcpy(&total, frame + 16, sizeof total);
    end = _mm_shuffle_epi8(end, from_host ? local_first : remote_first);
    _mm_store_si128((__m128i *) id, end);
    return (_mm_testz_si128(_mm_xor_si128(start, common), matters)
            && parse_is_whole(__builtin_bswap16(total), frame[23], length));
}
#else
#define parse_common parse_common_portable
#endif

#endif /* shim/classify/parse.h */
