/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DATABASE_CLUSTER_H
#define DATABASE_CLUSTER_H 1

/* Status and members of a database's RAFT cluster.
 *
 * The cluster itself stores the list of its members.  Every program therefore
 * gets it from the server on its own machine, by the unixctl command
 * "cluster/status".  Commands do that once and wait for the reply.  A
 * controller polls, without blocking, because clusters grow while it runs: a
 * controller that knew only the initial members would not find a leader among
 * the new ones.  It uses the list only when it searches for a leader, because
 * changing the list of a live connection would close it, and with it the lock
 * and the leadership.  It also asks each member whether it has a leader
 * (member_health_run()).
 *
 * Once:
 *
 *    error = database_cluster_get(&database_intent, rundir, &dc);
 *    remote = database_cluster_remote(&database_intent, rundir, &dc);
 *    database_cluster_uninit(&dc);
 *
 * In a main loop:
 *
 *    dm = database_members_create(&database_intent, rundir);
 *    remote = database_members_run(dm);
 *    if (remote) {
 *        ...the members have changed; free(remote)...
 *    }
 *    database_members_wait(dm);
 *    database_members_alarms(dm, alarms);
 *    database_members_destroy(dm);
 *
 * The caller frees returned strings.  Main thread only. */

#include <stddef.h>

#include "svec.h"

struct database;
struct database_members;
struct json;

struct database_cluster {
    char *text;                 /* Of the following members. */
    const char *status;         /* "cluster member", or an error. */
    const char *role;           /* "leader", "follower" or "candidate". */
    const char *leader;         /* "self", an id, or "unknown". */
    const char *term;           /* RAFT term, decimal. */
    const char *address;        /* This member's, "ssl:ADDRESS:PORT". */
    struct svec members;        /* Addresses of all members, sorted. */
};

char *database_cluster_get(const struct database *, const char *rundir,
                           struct database_cluster *);
void database_cluster_parse(const char *reply, struct database_cluster *);
void database_cluster_uninit(struct database_cluster *);

/* Returns the remote of all members for an IDL: the socket in 'rundir' for the
 * member on this machine, then the client ports of the others. */
char *database_cluster_remote(const struct database *, const char *rundir,
                              const struct database_cluster *);

struct database_members *database_members_create(const struct database *,
                                                 const char *rundir);
void database_members_destroy(struct database_members *);
char *database_members_run(struct database_members *);
void database_members_wait(struct database_members *);

/* Returns the number of members that do not answer or have no leader.  Appends
 * each to 'alarms', which may be null.  0 if 'dm' is null. */
size_t database_members_alarms(const struct database_members *dm,
                               struct json *alarms);

/* Whether each member of a database's cluster answers.
 *
 * A cluster of three works without one member.  An operator must nevertheless
 * learn that it is missing, because the loss of a second one stops the
 * database.  The connections that a controller uses show only the leader, and
 * "cluster/status" of a member that follows has nothing about others that
 * follow.  Therefore each controller asks all members once a second whether
 * they have a leader.  A member that has not answered for ANSWERS_MS is an
 * alarm, and so is one that has answered for ten seconds that it has no leader
 * while another one has: the others do not reach it, or it cannot write.
 *
 * A cluster of one member is not asked: the connection that uses it is enough.
 *
 *    mh = member_health_create(&database_intent);
 *    member_health_set_remote(mh, "unix:/x/intent.sock,ssl:192.0.2.1:6641");
 *    member_health_run(mh);
 *    member_health_wait(mh);
 *    member_health_alarms(mh, time_msec(), alarms);
 *    member_health_destroy(mh);
 *
 * Main thread only. */

struct member_health;

struct member_health *member_health_create(const struct database *);
void member_health_destroy(struct member_health *);

/* 'remote' is a comma-separated list of all members.  Members that are already
 * known keep their connection and state. */
void member_health_set_remote(struct member_health *, const char *remote);
void member_health_run(struct member_health *);
void member_health_wait(struct member_health *);

/* Returns the number of members with an alarm at 'now', a time_msec().
 * Appends each to 'alarms', which may be null. */
size_t member_health_alarms(const struct member_health *, long long now,
                            struct json *alarms);

#endif /* controller/ovsdb/database-cluster.h */
