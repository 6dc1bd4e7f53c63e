/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DATABASE_MEMBERS_H
#define DATABASE_MEMBERS_H 1

/* Follows who the members of a database's cluster are.
 *
 *
 * Motivation
 * ==========
 *
 * Clusters grow while controllers run.  A controller that only knew the
 * members of the day that it was started would find no leader once one that
 * came later is it.  The cluster is its own list of members, so the one
 * beside the controller is asked now and then, without waiting for it.
 *
 *
 * Usage
 * =====
 *
 *    dm = database_members_create(&database_intent, rundir);
 *
 *    remote = database_members_run(dm);
 *    if (remote) {
 *        ...it is another than before; free(remote)...
 *    }
 *    database_members_wait(dm);
 *    database_members_destroy(dm);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only. */

struct database;
struct database_members;

struct database_members *database_members_create(const struct database *,
                                                 const char *rundir);
void database_members_destroy(struct database_members *);

char *database_members_run(struct database_members *);
void database_members_wait(struct database_members *);

#endif /* controller/ovsdb/database-members.h */
