/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FLOW_TABLE_H
#define FLOW_TABLE_H 1

/* Our flows and groups of one switch: those wanted, or those that are there.
 *
 *
 * Motivation
 * ==========
 *
 * A switch must never be emptied to be filled again: traffic runs through it.
 * So what is there is read, what is wanted is computed, and what differs is
 * sent.  All of that is here, apart from connections, so that it can be tested
 * and fuzzed without one.
 *
 * What is ours is told by cookies (flows) and by numbers (groups); the rest of
 * a switch belongs to others and is not even read.
 *
 *
 * Usage
 * =====
 *
 *    struct flow_table *wanted = flow_table_create();
 *    flow_table_add_flow(wanted, 0, 100, FLOW_COOKIE(FLOW_LEVEL, dscp),
 *                        &match, &ofpacts);
 *    flow_table_add_group(wanted, FLOW_GROUP(3), ports, 2);
 *
 *    error = flow_table_take_flows(there, reply);    // Of each message of a
 *    error = flow_table_take_groups(there, reply);   // dump.
 *    n = flow_table_diff(wanted, there, protocol, 1000, &messages);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Arguments are copied, the messages of a difference are the caller's.  Main
 * thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "openvswitch/hmap.h"
#include "openvswitch/match.h"
#include "openvswitch/ofp-protocol.h"

struct ofpbuf;
struct ovs_list;

/* Cookies: the upper bits say that a flow is ours ("stage"), the next four
 * what it is for, the rest which one of those. */
#define FLOW_COOKIE_BASE UINT64_C(0x7374616765000000)
#define FLOW_COOKIE_MASK UINT64_C(0xffffffffff000000)
#define FLOW_COOKIE(KIND, INDEX) \
    (FLOW_COOKIE_BASE | (uint64_t) (KIND) << 20 | ((INDEX) & 0xfffff))

enum flow_kind {
    FLOW_LEVEL,                 /* DSCP -> queue; its index is the DSCP. */
    FLOW_NEXT,                  /* Whatever else -> the next table. */
    FLOW_ROUTE,                 /* A host's traffic -> a port or a group. */
    FLOW_PATH,                  /* Much traffic -> a port of its own. */
    FLOW_PROBE,                 /* What a cable brings -> the controller; its
                                 * index is the port. */
};

/* Groups "st": one of 65,536. */
#define FLOW_GROUP_BASE UINT32_C(0x73740000)
#define FLOW_GROUP(INDEX) (FLOW_GROUP_BASE | ((INDEX) & 0xffff))
#define FLOW_GROUP_MAX_PORTS 64

/* What no switch may exceed in what it says it has of ours. */
#define FLOW_TABLE_MAX 100000

struct of_flow {
    struct hmap_node node;      /* In struct flow_table's 'flows', by table,
                                 * priority and match, which name it. */
    uint8_t table;
    uint16_t priority;
    struct minimatch match;
    uint64_t cookie;
    struct ofpact *ofpacts;
    size_t ofpacts_len;
    bool altered;               /* Has time-outs or flags, as ours never do. */
    uint64_t packets, bytes;    /* As a dump says. */
};

/* Spreads flows evenly over ports. */
struct of_group {
    struct hmap_node node;      /* In struct flow_table's 'groups', by id. */
    uint32_t id;
    bool altered;               /* Is no such group. */
    uint32_t ports[FLOW_GROUP_MAX_PORTS];
    size_t n_ports;
};

struct flow_table {
    struct hmap flows;
    struct hmap groups;
};

struct flow_table *flow_table_create(void);
struct flow_table *flow_table_clone(const struct flow_table *);
void flow_table_destroy(struct flow_table *);
bool flow_table_equal(const struct flow_table *, const struct flow_table *);
size_t flow_table_count(const struct flow_table *);

void flow_table_add_flow(struct flow_table *, uint8_t table,
                         uint16_t priority, uint64_t cookie, struct match *,
                         const struct ofpbuf *ofpacts);
void flow_table_add_group(struct flow_table *, uint32_t id,
                          const uint32_t *ports, size_t n_ports);
const struct of_flow *flow_table_find(const struct flow_table *,
                                      const struct of_flow *);
const struct of_flow *flow_table_find_cookie(const struct flow_table *,
                                             uint64_t cookie);

int flow_table_take_flows(struct flow_table *, struct ofpbuf *reply);
int flow_table_take_groups(struct flow_table *, struct ofpbuf *reply);

/* How many of 'wanted' are there as they are wanted. */
size_t flow_table_n_applied(const struct flow_table *wanted,
                            const struct flow_table *there);

size_t flow_table_diff(const struct flow_table *wanted,
                       const struct flow_table *there,
                       enum ofputil_protocol, size_t max,
                       struct ovs_list *messages);

#endif /* controller/southbound/drivers/flow-table.h */
