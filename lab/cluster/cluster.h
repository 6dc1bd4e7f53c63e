/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_CLUSTER_H
#define LAB_CLUSTER_H 1

/* A cluster on one machine: hosts, fabric, and all daemons.
 *
 * The cluster runs the daemons of a deployment in network namespaces of one
 * machine, with the same command lines.
 *
 *    error = cluster_lock(plan, &cluster);   // Removes leftovers.
 *    error = cluster_up(cluster, "policies/stage.json");
 *    ...
 *    error = cluster_run(cluster);           // Periodically.
 *    cluster_wait(cluster);
 *    ...
 *    error = cluster_down(cluster);          // May be followed by an up.
 *    cluster_unlock(cluster);
 *
 * cluster_down() may be called at any time after cluster_lock(), also if
 * cluster_up() failed or was interrupted.
 *
 * Main thread only.  The plan must outlive the cluster. */

#include <sys/types.h>

#include "lab/cluster/plan.h"

struct cluster;

char *cluster_lock(const struct plan *, struct cluster **);
void cluster_unlock(struct cluster *);

/* Returns the process id of the running lab of this name and stores its run
 * directory, which the caller must free, unless 'rundirp' is null; or returns
 * 0. */
pid_t cluster_holder(const struct plan *, char **rundirp);

char *cluster_up(struct cluster *, const char *policy_file);
char *cluster_run(struct cluster *);
void cluster_wait(struct cluster *);
void cluster_stop(struct cluster *);
char *cluster_down(struct cluster *);

unsigned int cluster_restarts(const struct cluster *);

/* Calls a unixctl command of the active controller, or of controller 'i'.
 * Returns its reply (docs/interfaces.md), or NULL and stores a message in
 * '*errorp' unless that is null. */
struct cJSON *cluster_ask(const struct plan *, const char *command,
                          char **errorp);
struct cJSON *cluster_ask_one(const struct plan *, int i, const char *command,
                              char **errorp);

/* The same of the agent of 'host', which is asked for 'timeout_ms' at most;
 * NULL if it has none. */
struct cJSON *cluster_ask_agent(const struct plan *, int host,
                                const char *command, int timeout_ms);

/* Returns true if the controller has found all its flows, and all queues that
 * it creates, in the switches. */
bool cluster_switches_in_sync(const struct plan *);

/* Process id of daemon 'name', 0 if it is not running. */
pid_t cluster_pid(const struct cluster *, const char *name);

#endif /* lab/cluster/cluster.h */
