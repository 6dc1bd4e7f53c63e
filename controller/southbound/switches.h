/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SWITCHES_H
#define SWITCHES_H 1

/* The switches that the controller keeps as its policy wants them.
 *
 * Each level of the policy, the control level and the default level have a
 * DSCP value; every switch gets one flow for each, "DSCP -> queue", by the
 * numbers of docs/interfaces.md: queue 0 is the control level's, 7 the
 * default's.  A switch that is away costs nothing and gets the difference when
 * it is back.
 *
 * Main thread only. */

#include <stdint.h>

struct json;
struct policy;
struct switches;

struct switches *switches_create(void);
void switches_destroy(struct switches *);

/* Adds the switch whose OpenFlow listener is 'target', such as
 * "unix:/run/openvswitch/br0.mgmt" or "tcp:192.0.2.1:6653". */
void switches_add(struct switches *, const char *target);

/* Wants 'policy' in all switches, as the leader of 'generation'.  Until the
 * first call none is connected to. */
void switches_set(struct switches *, const struct policy *,
                  int64_t generation);

void switches_run(struct switches *);
void switches_wait(struct switches *);

/* {"switches": [openflow_status(), ...]} */
struct json *switches_status(const struct switches *);

#endif /* controller/southbound/switches.h */
