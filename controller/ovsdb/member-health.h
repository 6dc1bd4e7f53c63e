/* SPDX-License-Identifier: Apache-2.0 */

#ifndef MEMBER_HEALTH_H
#define MEMBER_HEALTH_H 1

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

#include <stddef.h>

struct database;
struct json;
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

#endif /* controller/ovsdb/member-health.h */
