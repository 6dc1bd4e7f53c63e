/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SWITCHES_H
#define SWITCHES_H 1

/* Programs all switches by the policy and the topology.
 *
 * The desired state of a switch follows from the policy (levels and queues)
 * and the topology (location of each host).  It is computed as a whole when
 * one of these changes, or when a link goes up or down, and given to the
 * driver of each switch, which sends only the differences.
 *
 * Each level of the policy, the control level and default traffic have a DSCP
 * value and a queue (docs/interfaces.md): queue 0 is the control level's, 7
 * the default.  A switch outside the topology selects the queue by DSCP and
 * then forwards NORMAL.  A switch of the topology needs routes, because a
 * fabric with several paths has loops: table 0 selects the queue, table 1 the
 * output port, by the destination of an IP packet or ARP request.  Traffic to
 * unknown hosts is dropped.
 *
 * A switch is refused if its datapath id differs from the topology's, or if
 * another connected switch has the same.  With TLS, its certificate must match
 * its datapath id, so that the key of one switch cannot be used for another.
 *
 *    struct switches *ss = switches_create();
 *
 *    switches_set_topology(ss, topology);        // Optional.
 *    switches_add(ss, "tcp:192.0.2.1:6653");     // Others.
 *    for (;;) {
 *        switches_run(ss);
 *        switches_set(ss, policy, generation);
 *        fabric = switches_take_fabric(ss);  // For the order, or NULL.
 *        ...or, as standby, switches_leave(ss)...
 *        switches_wait(ss);
 *        poll_block();
 *    }
 *
 * Owns the topology.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fabric;
struct flow_table;
struct json;
struct policy;
struct routes;
struct switches;
struct topology;

struct switches *switches_create(void);
void switches_destroy(struct switches *);

void switches_set_topology(struct switches *, struct topology *);
void switches_add(struct switches *, const char *target);
char *switches_add_identity(struct switches *, const char *text);

void switches_set(struct switches *, const struct policy *,
                  int64_t generation);
void switches_leave(struct switches *);

struct fabric *switches_take_fabric(struct switches *);

void switches_run(struct switches *);
void switches_wait(struct switches *);

/* Returns the share of all desired entries that are applied, 0 to 1. */
double switches_applied(const struct switches *);

/* Appends each active alarm to 'alarms' (wire/alarm.h). */
void switches_alarms(const struct switches *, struct json *alarms);

struct json *switches_status(const struct switches *);

/* Returns the number of switches; each is counted once for each driver. */
size_t switches_count(const struct switches *);

/* Returns the generation for which switch 'i' has refused this leader's, 0 if
 * it has not, and stores its name in '*name'. */
int64_t switches_newest(const struct switches *, size_t i, const char **name);

/* Returns the flows of a switch outside the topology. */
struct flow_table *switch_flows_alone(const struct policy *);

/* Returns the flows of switch 'sw' of the topology. */
struct flow_table *switch_flows(const struct policy *, const struct topology *,
                                const struct routes *, int sw);

#endif /* controller/southbound/switches.h */
