/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_PARSE_H
#define SHIM_PARSE_H 1

/* Parses frames.
 *
 * A received frame belongs to the job that has sent packets with the same
 * 5-tuple from this host.  The parser finds the 5-tuple as the host sees it
 * ("local" is the host's side in both directions), and the IP header, so that
 * its DSCP can be written.  All lengths in the frame are checked against its
 * size.  With segmentation by its card, a sender writes 0 as an IPv4 total
 * length or an IPv6 payload length, with or without the jumbo option: such a
 * packet ends where its frame does.
 *
 * Up to two VLAN tags and, in IPv6, up to four extension headers are skipped.
 * Fragments have no key, not even the first one, which has the ports: so all
 * fragments of a datagram take the same queue and stay in order.
 *
 * RoCEv2 is parsed as UDP: its flow is the 5-tuple, in which the sender
 * derives the source port from the queue pair.  The destination queue pair in
 * the header behind it is ignored.
 *
 * In a tunnel, the flow of the frame or packet inside counts, so that the
 * traffic of virtual machines and containers can be distinguished, or the
 * tunnel's own if nothing is inside or one of its ends is not a known
 * endpoint of tunnels (prefix.h).  Tunnels are VXLAN, Geneve with a frame or
 * an IP packet, and IPv4 or IPv6 in either.  'l3' is always the outer IP
 * header, with the DSCP for the fabric.  What WireGuard and IPsec encrypt
 * cannot be seen.
 *
 * Nearly all packets are TCP or UDP over plain Ethernet and IPv4 without
 * options.  parse_common() recognizes those by a few words and returns their
 * flow id.  It accepts only frames for which parse_frame() has the same
 * result; otherwise the id is undefined.
 *
 *    struct parsed p;
 *
 *    if (parse_common(data, length, true, &id)) {
 *        ...id is the flow...
 *    } else {
 *        parse_frame(data, length, true, &p);
 *        if (p.kind == PARSED_FLOW) {
 *            ...p.key is the flow...
 *        }
 *    }
 *
 * Pure functions over the caller's memory. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#include "shim/classify/flow-cache.h"
#include "shim/classify/prefix.h"
#include "wire/shim-protocol.h"

#define PARSE_COMMON_L3 14      /* Offset of the IP header in frames that
                                 * parse_common() accepts. */

enum parsed_kind {
    PARSED_OTHER,               /* Not IP: ARP, LLDP and the like. */
    PARSED_IP,                  /* IP without ports: ICMP, a fragment... */
    PARSED_NEIGHBOUR,           /* IPv6 neighbour discovery. */
    PARSED_FLOW,                /* TCP or UDP with both ports: 'key' is set. */
    PARSED_MALFORMED,           /* Shorter than its headers. */
};

struct parsed {
    enum parsed_kind kind;
    uint16_t l3;                /* Offset of the IP header, 0 if none. */
    uint16_t l4;                /* Offset of the TCP or UDP header, only if
                                 * PARSED_FLOW, or of what else is behind the
                                 * IP header. */
    uint32_t end;               /* Offset of the end of the IP packet, if 'l4'
                                 * is known. */
    uint16_t udp;               /* Offset of the UDP header of a datagram's
                                 * first fragment, 0 in other packets. */
    uint8_t family;             /* 4 or 6, 0 if not IP. */
    struct shim_flow_key key;   /* Only if PARSED_FLOW; without the ports if
                                 * 'l4' is known. */
};

static inline uint16_t
get_be16(const uint8_t *p)
{
    return p[0] << 8 | p[1];
}

void parse_frame(const uint8_t *frame, size_t length, bool from_host,
                 struct parsed *);
void parse_inner(const uint8_t *frame, bool from_host,
                 const struct prefix_list *tunnels, struct parsed *);
bool parse_is_udp_to(const uint8_t *frame, const struct parsed *,
                     const struct prefix_list *tunnels, uint16_t port);

/* By protocol: the minimum length of an IPv4 packet with ports, or UINT32_MAX
 * if the protocol has none. */
extern const uint32_t parse_common_min[256];

/* Returns true if an IPv4 packet of 'total' bytes fits in a frame of 'length'
 * and has ports. */
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
    uint64_t start, addresses;  /* 'start': Ethernet type, first IP bytes. */
    uint32_t middle, ports;     /* 'middle': fragment, TTL, protocol. */
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
        || !parse_is_whole(__builtin_bswap16(start >> 32), protocol, length)) {
        return false;
    }
    if (!from_host) {
        addresses = addresses << 32 | addresses >> 32;
        ports = ports << 16 | ports >> 16;
    }
    *id = flow_id_init(addresses, ports, protocol);
    return true;
}

/* Stores the flow id of 'frame' in '*id' and returns true if it is common TCP
 * or UDP, otherwise returns false. */
#ifdef __SSE4_1__
static inline bool
parse_common(const uint8_t *frame, size_t length, bool from_host,
             struct flow_id *id)
{
    /* Type and version, and no fragment: bytes from 12 on. */
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
