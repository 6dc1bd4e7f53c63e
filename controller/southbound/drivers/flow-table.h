/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CONTROLLER_SOUTHBOUND_DRIVERS_FLOW_TABLE_H
#define CONTROLLER_SOUTHBOUND_DRIVERS_FLOW_TABLE_H 1

/* Flows and groups of one switch, and the differences between two sets.
 *
 * A switch must never be emptied to be filled again, because traffic runs
 * through it.  So the driver dumps the switch, compares the dump with the
 * desired entries and sends only the differences.  This module does all of
 * that except connections, so that unit tests and a fuzz target cover it.
 *
 * Our flows are identified by their cookie, our groups by their number.  Other
 * entries of the switch are not read.
 *
 *    struct flow_table *wanted = flow_table_create();
 *    flow_table_add_flow(wanted, 0, 100, FLOW_COOKIE(FLOW_LEVEL, dscp),
 *                        &match, &ofpacts);
 *    flow_table_add_group(wanted, FLOW_GROUP(3), ports, 2);
 *
 *    request = flow_table_request(OFP13_VERSION);
 *    error = flow_table_add_flows(there, reply);     // Each message of a
 *    error = flow_table_add_groups(there, reply);    // dump.
 *    n = flow_table_diff(wanted, there, protocol, 1000, &messages);
 *
 * Arguments are copied; the caller owns the messages of a difference.  Main
 * thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "openvswitch/hmap.h"
#include "openvswitch/match.h"
#include "openvswitch/ofp-protocol.h"

struct ofp_header;
struct ofpbuf;
struct ovs_list;

/* Cookie of a flow: "stage" in the upper 40 bits, then 4 bits of enum
 * flow_kind and 20 bits of an index. */
#define FLOW_COOKIE_BASE UINT64_C(0x7374616765000000)
#define FLOW_COOKIE_MASK UINT64_C(0xffffffffff000000)
#define FLOW_COOKIE(KIND, INDEX) \
    (FLOW_COOKIE_BASE | (uint64_t) (KIND) << 20 | ((INDEX) & 0xfffff))

enum flow_kind {
    FLOW_LEVEL, /* DSCP -> queue; the index is the DSCP. */
    FLOW_NEXT,  /* Other traffic -> the next table. */
    FLOW_ROUTE  /* Traffic to a host -> a port or a group. */
};

/* Number of a group: "st" in the upper 16 bits, then an index. */
#define FLOW_GROUP_BASE UINT32_C(0x73740000)
#define FLOW_GROUP(INDEX) (FLOW_GROUP_BASE | ((INDEX) & 0xffff))
#define FLOW_GROUP_MAX_PORTS 64

/* Maximum number of our flows, and of our groups, in a dump. */
#define FLOW_TABLE_MAX 100000

struct of_flow {
    struct hmap_node node;      /* In struct flow_table's 'flows', by table,
                                 * priority and match. */
    uint8_t table;
    uint16_t priority;
    struct minimatch match;
    uint64_t cookie;
    struct ofpact *ofpacts;
    size_t ofpacts_len;
    bool altered;               /* Has timeouts or flags that ours have not. */
    uint64_t packets, bytes;    /* Counters from a dump. */
};

/* A group that distributes flows evenly over ports. */
struct of_group {
    struct hmap_node node;      /* In struct flow_table's 'groups', by id. */
    uint32_t id;
    bool altered;               /* Has other types or buckets than ours. */
    uint32_t ports[FLOW_GROUP_MAX_PORTS];
    size_t n_ports;
};

struct flow_table {
    struct hmap flows;
    struct hmap groups;
};

struct flow_table *flow_table_create(void);
void flow_table_destroy(struct flow_table *);
bool flow_table_equal(const struct flow_table *, const struct flow_table *);
size_t flow_table_count(const struct flow_table *);

struct of_flow *flow_table_add_flow(struct flow_table *, uint8_t table,
                                    uint16_t priority, uint64_t cookie,
                                    struct match *,
                                    const struct ofpbuf *ofpacts);
void flow_table_add_group(struct flow_table *, uint32_t id,
                          const uint32_t *ports, size_t n_ports);
const struct of_flow *flow_table_find(const struct flow_table *,
                                      const struct of_flow *);
const struct of_flow *flow_table_find_cookie(const struct flow_table *,
                                             uint64_t cookie);

bool flow_table_names(const struct flow_table *,
                      const struct ofp_header *removed);

struct ofpbuf *flow_table_request(enum ofp_version);
int flow_table_add_flows(struct flow_table *, struct ofpbuf *reply);
int flow_table_add_groups(struct flow_table *, struct ofpbuf *reply);

/* Returns the number of entries of 'wanted' that are equal in 'there'. */
size_t flow_table_n_applied(const struct flow_table *wanted,
                            const struct flow_table *there);

size_t flow_table_diff(const struct flow_table *wanted,
                       const struct flow_table *there, enum ofputil_protocol,
                       size_t max, struct ovs_list *messages);

#endif /* controller/southbound/drivers/flow-table.h */
