/* SPDX-License-Identifier: Apache-2.0 */

#ifndef USERS_REPORT_H
#define USERS_REPORT_H 1

/* What each user has of the cluster, and what was refused to him.
 *
 * A user is an owner of searches (owners.h), the user of processes that claim
 * a job of another user, or a user or pod that requests more of a host than
 * its share of a table, as agents report it.  A user without any of these and
 * with a faded account is left out.
 *
 *    rows = users_collect(c, &n);
 *    ...rows[i].weight...
 *    free(rows);
 *
 * Names are the cluster's, and live as long as its rows.  Main thread only. */

#include <stddef.h>
#include <stdint.h>

struct cluster;
struct json;
struct owner;

/* What is refused to a user. */
enum user_refusal {
    REFUSED_REQUESTS, /* Of REST, since the controller started. */
    REFUSED_CLAIMS,   /* Jobs that its processes claim on a host, in the last
                       * ten minutes. */
    REFUSED_ENTRIES,  /* Of tables of hosts, lately. */
    N_USER_REFUSALS
};
extern const char *const user_refusal_names[N_USER_REFUSALS];

struct user_row {
    const char *name;          /* "" if only the number is known. */
    const char *pod;           /* Id of a pod, or "". */
    uint64_t uid;              /* 0 without one; of a namespace above
                                * MEMBERSHIP_MAX_UID. */
    const struct owner *owner; /* NULL without a search. */
    size_t cojobs, jobs;       /* That run. */
    size_t places;             /* Processes of these jobs, by the intent. */
    double weight;             /* Sum of the running cojobs'. */
    double served;             /* Seconds of all ports that count for its next
                                * searches. */
    uint64_t entries;          /* Of tables, where they exceed the share. */
    uint64_t refused[N_USER_REFUSALS];
};

/* Returns the users, sorted by number and name; the caller frees. */
struct user_row *users_collect(const struct cluster *, size_t *np);

/* Returns {"users": [...]} of docs/interfaces.md. */
struct json *users_report(const struct cluster *);

#endif /* controller/northbound/views/users-report.h */
