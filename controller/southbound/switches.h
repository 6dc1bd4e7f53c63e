/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SWITCHES_H
#define SWITCHES_H 1

/* The switches that the controller keeps as its policy and the order want
 * them.
 *
 *
 * Motivation
 * ==========
 *
 * What a switch shall have follows from the policy (levels and queues), the
 * topology (who is where) and the order (which traffic gets a path of its
 * own).  It is computed as a whole when one of these changes, or a link goes
 * up or down, and given to each switch's driver, which finds out what differs.
 *
 * A switch is who it says it is only if nobody else says the same: one whose
 * datapath id is not the topology's, or is another connected switch's too, is
 * refused, and so is a listener that leads to a switch that is already there.
 * With TLS it must also have that switch's certificate: somebody who has got
 * hold of one switch cannot speak for another.
 *
 *
 * Usage
 * =====
 *
 *    struct switches *ss = switches_create();
 *
 *    switches_set_topology(ss, topology, &key);  // Or none.
 *    switches_add(ss, "tcp:192.0.2.1:6653");     // Others.
 *    for (;;) {
 *        switches_run(ss);
 *        switches_set(ss, policy, generation, cluster, version);
 *        ...or switches_leave(ss), while somebody else leads...
 *        switches_wait(ss);
 *        poll_block();
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Takes over the topology.  Main thread only. */

#include <stddef.h>
#include <stdint.h>

struct cluster;
struct json;
struct lldp_key;
struct policy;
struct switches;
struct topology;

struct switches *switches_create(void);
void switches_destroy(struct switches *);

void switches_set_topology(struct switches *, struct topology *,
                           const struct lldp_key *);
void switches_add(struct switches *, const char *target);
char *switches_add_identity(struct switches *, const char *text);

void switches_set(struct switches *, const struct policy *,
                  int64_t generation, const struct cluster *,
                  int64_t version);
void switches_leave(struct switches *);

void switches_run(struct switches *);
void switches_wait(struct switches *);

/* Parts of what is wanted in all switches that are there, 0 to 1. */
double switches_applied(const struct switches *);

/* Appends a line for each thing to look at, of which there are so many. */
void switches_alarms(const struct switches *, struct json *alarms);
size_t switches_n_alarms(const struct switches *);

struct json *switches_status(const struct switches *);

#endif /* controller/southbound/switches.h */
