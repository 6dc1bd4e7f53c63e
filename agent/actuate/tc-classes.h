/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TC_CLASSES_H
#define TC_CLASSES_H 1

/* HTB classes and filters of a tc_plan; used by tc-link.h, which reads and
 * writes them.
 *
 * The root is 5363:, its classes are 5363:1 (the link) and 5363:10 to 5363:17
 * (levels), and the queues of these are 5370: to 5377:.
 *
 * No state. */

#include <linux/pkt_sched.h>
#include <stdint.h>

#include "agent/actuate/tc-link.h"

#define TC_ROOT (0x5363u << 16)
#define TC_LINK_CLASS (TC_ROOT | 1)
#define TC_LEVEL_CLASS(LEVEL) (TC_ROOT | (0x10 + (LEVEL)))
#define TC_LEVEL_QUEUE(LEVEL) ((0x5370u + (LEVEL)) << 16)

#define TC_CONTROL_LEVEL 0
#define TC_DEFAULT_LEVEL (TC_LEVELS - 1)
#define TC_MIN_RATE_BPS 8000    /* Lowest rate of a class. */

/* Filters: IPv4 and IPv6 for each level, and ARP. */
#define TC_N_FILTERS (2 * TC_LEVELS + 1)

struct tc_filter {
    uint16_t protocol;
    uint32_t mask, value;       /* Match on the first four bytes. */
    int level;
};

struct tc_filter tc_filter_of(int i);

/* Parameters of a class. */
struct tc_class {
    uint32_t id, parent;
    uint64_t rate_bps, ceil_bps;
    uint32_t priority;
    uint64_t burst;             /* Bytes, at 'rate_bps'. */
    uint64_t ceil_burst;        /* Bytes, at 'ceil_bps'. */
};

/* Returns the class of a level, or of the link if 'level' is -1, on an
 * interface with this MTU. */
struct tc_class tc_class_of(const struct tc_plan *, int mtu, int level);

/* Returns the class in the format of HTB. */
struct tc_htb_opt tc_class_options(const struct tc_class *);

#endif /* agent/actuate/tc-classes.h */
