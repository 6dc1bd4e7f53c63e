/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_TAG_H
#define SHIM_TAG_H 1

/* Writes the DSCP of IP headers.
 *
 * Switches choose their queue by the DSCP, so every IP packet of a job that
 * leaves the host gets the one of its level, and an application cannot raise
 * its own.  A packet of no job keeps the DSCP of its sender, which may be that
 * of storage or voice, unless the policy uses it for a level or for control:
 * then it gets the default DSCP, because IP_TOS needs no right.
 *
 * The two ECN bits stay.  IPv4's header checksum is updated by the difference
 * (RFC 1624), which keeps a wrong checksum wrong.  The checksums of TCP and
 * UDP do not cover the field. */

#include <stddef.h>
#include <stdint.h>

#include "shim/classify/job-slot.h"

struct packet;
struct verdict;

/* 'ip' is a complete IPv4 or IPv6 header, 'dscp' 0 to 63. */
void tag_ipv4(uint8_t *ip, uint8_t dscp);
void tag_ipv6(uint8_t *ip, uint8_t dscp);

/* Parses the frame; does nothing without an IP header.  'levels' is from
 * job_slots_level_dscps(). */
void tag_frame(uint8_t *frame, size_t length, struct treatment,
               uint64_t levels);

void tag_burst(const struct packet *, const struct verdict *, uint32_t n,
               uint64_t levels);

#endif /* shim/classify/tag.h */
