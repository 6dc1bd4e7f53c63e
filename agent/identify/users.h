/* SPDX-License-Identifier: Apache-2.0 */

#ifndef USERS_H
#define USERS_H 1

/* Users of this host, and what each has of the agent's tables.
 *
 * Any user makes processes, and each takes an entry somewhere.  base/shares.h
 * has the rule by which no user fills a table for others.  A user is a uid
 * here; processes of a pod (launch.h) take any uid, so there it is the
 * pod.
 *
 *    user = users_find(users, uid, pid);
 *    if (shares_admit(&users->claims, &user->claims)) {
 *        ...
 *        shares_drop(&users->claims, &user->claims);
 *    }
 *
 * A user is valid while it has an entry, and until the next users_run().  Main
 * thread only. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/shares.h"
#include "openvswitch/hmap.h"
#include "openvswitch/list.h"

struct json;

#define USERS_POD_SIZE 37

struct user {
    struct hmap_node node;        /* In struct users's 'all'. */
    uint64_t uid;                 /* 0 for a pod. */
    char pod[USERS_POD_SIZE];     /* Its id, or "". */
    struct shares_user questions; /* Processes, in questions.c. */
    struct shares_user claims;    /* Of processes, in registry.c. */
    uint64_t n_other;     /* Refused to its jobs, by a shim or tracker.c. */
    uint64_t n_refused;   /* All that was, at the last run. */
    long long refused_at; /* When that grew, 0 if not lately. */
    struct ovs_list waiting, idle; /* Of questions.c. */
};

struct users {
    struct hmap all;
    struct shares questions, claims;
    const char *cgroup_mount; /* Of version 2, or NULL. */
};

void users_init(struct users *);
void users_uninit(struct users *);

/* Returns the user of process 'pid', which runs as 'uid'; of the uid if 'pid'
 * is 0. */
struct user *users_find(struct users *, uint64_t uid, pid_t pid);

/* Forgets those that have no entries and were refused none lately. */
void users_run(struct users *, long long now);

/* Returns [{"uid" or "pod", "entries", "refused"}...] of users that were
 * refused one lately, at most USERS_MAX_REPORTED. */
#define USERS_MAX_REPORTED 16
struct json *users_to_json(const struct users *);

#endif /* agent/identify/users.h */
