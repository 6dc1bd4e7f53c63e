/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_TAG_H
#define SHIM_TAG_H 1

/* Writes the DSCP of IP headers.
 *
 * Switches choose their queue by the DSCP, so every IP packet that leaves the
 * host gets the one of its level, and an application cannot raise its own.
 * The two ECN bits stay.  IPv4's header checksum is updated by the difference
 * (RFC 1624), which keeps a wrong checksum wrong.  The checksums of TCP and
 * UDP do not cover the field. */

#include <stddef.h>
#include <stdint.h>

struct packet;
struct verdict;

/* 'ip' is a complete IPv4 or IPv6 header, 'dscp' 0 to 63. */
void tag_ipv4(uint8_t *ip, uint8_t dscp);
void tag_ipv6(uint8_t *ip, uint8_t dscp);

/* Parses the frame; does nothing without an IP header. */
void tag_frame(uint8_t *frame, size_t length, uint8_t dscp);

void tag_burst(const struct packet *, const struct verdict *, uint32_t n);

#endif /* shim/classify/tag.h */
