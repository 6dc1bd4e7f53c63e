/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_CLUSTER_H
#define LAB_CLUSTER_H 1

/* A cluster on one machine: hosts, fabric, and every daemon of ours.
 *
 *
 * Motivation
 * ==========
 *
 * This is where the parts meet: what an operator would deploy on real machines
 * is started here in namespaces, by the same command lines.
 *
 *
 * Usage
 * =====
 *
 *    error = cluster_lock(plan, &cluster);   // And clean up after the dead.
 *    error = cluster_up(cluster, "policies/stage.json");
 *    ...
 *    error = cluster_run(cluster);           // Often: restarts daemons.
 *    cluster_wait(cluster);
 *    ...
 *    cluster_down(cluster);                  // May be followed by an up.
 *    cluster_unlock(cluster);
 *
 * cluster_down() is right at any moment after cluster_lock(), also when
 * cluster_up() failed or was interrupted half-way.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only.  The plan must outlive the cluster. */

#include <sys/types.h>

#include "lab/cluster/plan.h"

struct cluster;

char *cluster_lock(const struct plan *, struct cluster **);
void cluster_unlock(struct cluster *);

/* Returns the process id of the running lab of this name, 0 if there is none,
 * and stores its run directory, which the caller must free, or NULL. */
pid_t cluster_holder(const struct plan *, char **rundirp);

char *cluster_up(struct cluster *, const char *policy_file);
char *cluster_run(struct cluster *);
void cluster_wait(struct cluster *);
char *cluster_down(struct cluster *);

unsigned int cluster_restarts(const struct cluster *);

/* Ends and removes whatever is there of the lab; needs the lock. */
char *cluster_clean(const struct plan *, const char *rundir);

/* Asks the controller that leads, or controller 'i'; the reply is JSON
 * (docs/interfaces.md). */
char *cluster_ask(const struct plan *, const char *command, char **replyp);
char *cluster_ask_one(const struct plan *, int i, const char *command,
                      char **replyp);

/* Process id of daemon 'name', 0 if it is not running. */
pid_t cluster_pid(const struct cluster *, const char *name);

#endif /* lab/cluster/cluster.h */
