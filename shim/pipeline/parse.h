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
 *
 * Usage
 * =====
 *
 *    struct parsed p;
 *
 *    parse_frame(data, length, true, &p);
 *    if (p.kind == PARSED_FLOW) {
 *        ...look p.key up...
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

#include "shim/control/protocol.h"

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
    uint8_t family;             /* 4 or 6, 0 if not IP. */
    struct shim_flow_key key;   /* Only if PARSED_FLOW. */
};

void parse_frame(const uint8_t *frame, size_t length, bool from_host,
                 struct parsed *);

#endif /* shim/pipeline/parse.h */
