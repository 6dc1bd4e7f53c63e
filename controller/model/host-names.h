/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HOST_NAMES_H
#define HOST_NAMES_H 1

/* Hosts by the names that topologies and jobs have for them.
 *
 * An agent reports the whole name of its host, "h7.a.example".  Topologies and
 * jobs may name it by the first label, "h7", as long as that is the first
 * label of no other host.  An agent that reports just "h7" has that name.
 *
 *    host_add_name(c, host);                   // By cluster_get_host().
 *    host = cluster_get_host(c, cluster_host_named(c, "h7"));
 *
 * The hosts and the table of labels are the cluster's.  Main thread only. */

#include <stdbool.h>
#include <stdint.h>

struct cluster;
struct host;

/* Adds 'host' to the hosts with the same first label, and sets the leaves of
 * all of them: a label that two hosts share names neither. */
void host_add_name(struct cluster *, struct host *);

/* Returns the leaf of 'host' in the cluster's fabric, -1 if unknown. */
int host_find_leaf(const struct cluster *, const struct host *);

/* Returns the name of the host that 'name' means: without a dot, the one that
 * has it as first label, unless an agent reports it as its host's name. */
const char *cluster_host_named(const struct cluster *, const char *name);

/* Returns true if a topology or a job names 'label', the first label of two
 * hosts. */
bool cluster_is_ambiguous(const struct cluster *, const char *label);

/* Returns the name of the host with the address 'ip', by the topology or by
 * the connection of its agent, or NULL. */
const char *cluster_find_address(const struct cluster *, uint32_t ip);

#endif /* controller/model/host-names.h */
