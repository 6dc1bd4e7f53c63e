/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_DAEMONS_H
#define LAB_DAEMONS_H 1

/* Command lines of the daemons of a lab.
 *
 *
 * Motivation
 * ==========
 *
 * Each function starts one daemon, or all daemons of a kind, with the command
 * line that an operator would use, under a supervisor.  cluster.c calls them
 * in order.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only.  Functions return NULL or a malloc()'d message. */

struct database;
struct plan;
struct supervisor;

struct daemons {
    const struct plan *plan;
    struct supervisor *sv;
};

/* Creates the directories and cgroups that the daemons need. */
char *daemons_make_directories(const struct plan *);

/* Starts Open vSwitch with a database and a run directory of its own. */
char *daemons_switch(const struct daemons *);

/* Starts all members of a database, and waits until they reply. */
char *daemons_database(const struct daemons *, const struct database *);

char *daemons_controllers(const struct daemons *, const char *policy_file);

/* Start the shim and the agent of host 'i'. */
char *daemons_shim(const struct daemons *, int i);
char *daemons_agent(const struct daemons *, int i);

#endif /* lab/cluster/daemons.h */
