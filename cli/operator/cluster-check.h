/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLUSTER_CHECK_H
#define CLUSTER_CHECK_H 1

/* Finds what is wrong in a cluster, from the replies of its controller.
 *
 * All facts are in the controller: telemetry has the state of a host and its
 * clock, Host_Reported what its agent and its shim have found out
 * (agent/host-facts.h), and the alarms the rest.  What is compared between
 * hosts, such as MTUs, is compared with the value that most of them have.  A
 * disconnected host has only that finding, because its facts are old. */

#include <stdint.h>

struct findings;
struct json;

struct cluster_replies {
    const struct json *status, *hosts, *facts, *switches;       /* Of
                                 * "controller/NAME". */
};

/* Adds findings.  'now' is in seconds since the epoch. */
void cluster_check(const struct cluster_replies *, int64_t now,
                   struct findings *);

#endif /* cli/operator/cluster-check.h */
