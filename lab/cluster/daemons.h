/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_DAEMONS_H
#define LAB_DAEMONS_H 1

/* The command lines of what runs in a lab.
 *
 *
 * Motivation
 * ==========
 *
 * Each function starts one daemon, or all of one kind, as an operator would,
 * and gives it to the supervisor.  In which order, and what must be there
 * before, cluster.c knows.
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

/* Open vSwitch, with a database and a run directory of its own. */
char *daemons_switch(const struct daemons *);

/* All members of a database.  Waits until they answer. */
char *daemons_database(const struct daemons *, const struct database *);

char *daemons_controllers(const struct daemons *, const char *policy_file);

/* Of host 'i'. */
char *daemons_shim(const struct daemons *, int i);
char *daemons_agent(const struct daemons *, int i);

#endif /* lab/cluster/daemons.h */
