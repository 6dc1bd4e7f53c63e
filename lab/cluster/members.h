/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_MEMBERS_H
#define LAB_MEMBERS_H 1

/* The databases' members and the controllers of a lab, and where they are.
 *
 *
 * Motivation
 * ==========
 *
 * A lab has one member of each database and one controller, or, if it is to
 * lose some (plan->ha), three and two.  The first have the names that a lab
 * without others has.
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

/* Run directory of member 'i', and its daemon's name. */
char *members_rundir(const struct plan *, int i);
char *members_daemon(const struct database *, int i);

/* Where clients find 'db': all its members. */
char *members_remote(const struct plan *, const struct database *);

/* The member that leads 'db', -1 if none says that it does. */
int members_leader(const struct plan *, const struct database *);

/* Creates the file of member 'i', 'file', unless it is there. */
char *members_init(const struct plan *, const struct database *, int i,
                   const char *file);

/* "RUNDIR/NAME.SUFFIX" of controller 'i', and its daemon's name. */
char *members_controller_file(const struct plan *, int i, const char *name,
                              const char *suffix);
char *members_controller_daemon(int i);

/* Where agents find the controllers. */
char *members_telemetry(const struct plan *);

#endif /* lab/cluster/members.h */
