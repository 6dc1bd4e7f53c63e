/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_MEMBERS_H
#define LAB_MEMBERS_H 1

/* The database members and controllers of a lab, and their paths.
 *
 *
 * Motivation
 * ==========
 *
 * A lab has one member of each database and one controller, or three and two
 * if plan->ha is set.  The names of the first ones do not depend on plan->ha.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state; strings belong to the caller. */

#include <stdbool.h>

struct database;
struct plan;

int members_n(const struct plan *);
int members_n_controllers(const struct plan *);

/* Run directory of member 'i', and the name of its daemon. */
char *members_rundir(const struct plan *, int i);
char *members_daemon(const struct database *, int i);

/* Remote for clients of 'db': all members. */
char *members_remote(const struct plan *, const struct database *);

/* Returns the leader of 'db', or -1 if no member is leader. */
int members_leader(const struct plan *, const struct database *);

/* Creates 'file' as the database of member 'i', unless it exists. */
char *members_init(const struct plan *, const struct database *, int i,
                   const char *file);

/* "RUNDIR/NAME.SUFFIX" of controller 'i', and the name of its daemon. */
char *members_controller_file(const struct plan *, int i, const char *name,
                              const char *suffix);
char *members_controller_daemon(int i);

/* Remote for agents: all controllers. */
char *members_telemetry(const struct plan *);

#endif /* lab/cluster/members.h */
