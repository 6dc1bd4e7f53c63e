/* SPDX-License-Identifier: Apache-2.0 */

#ifndef OWNERS_H
#define OWNERS_H 1

/* What the owners of searches were served in the last minutes.
 *
 * An owner is the user of a cojob by number, or by name without a number, as
 * the intent has it.  When a search ends, what its jobs did is added to the
 * account of its owner (order/problem/account.h), which the next decisions
 * count; intent-db.h stores the accounts, so that the next leader goes on with
 * them.
 *
 *    owner = owners_get(&owners, "ann", 1000);
 *    owners_add(owner, work, memory_s);
 *    owners_forget(&owners, memory_s);
 *
 * An owner also counts which of its requests were refused.
 *
 * The caller owns the map; an owner lives until owners_forget(), if no cojob
 * has it any more.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "order/problem/account.h"

struct shash;

struct owner {
    const char *name;       /* In the database: "1000" or "@ann". */
    struct account account; /* Times are time_msec(), in seconds. */
    bool stored;            /* The database has it. */
    bool written;           /* A transaction has it, which may fail. */
    size_t n_cojobs;        /* That have it. */
    size_t place;           /* Used by decide-problem.c. */
    uint64_t refused;       /* Requests of it that were refused. */
    char *refusal;          /* Why the last one was, NULL without one. */
    long long refused_at;   /* time_msec() of that one. */
};

/* A refusal is shown for this time. */
#define OWNER_REFUSED_MS 600000

/* Most owners that a refusal adds to. */
#define OWNERS_MAX 10000

/* Returns the owner of that user, a new one if it is missing; NULL if the
 * user is unknown. */
struct owner *owners_get(struct shash *, const char *user, uint64_t uid);

/* The same by its name in the database. */
struct owner *owners_find(struct shash *, const char *name);

/* Adds a search of 'work' that has ended now. */
void owners_add(struct owner *, double work, double memory_s);

/* Notes that a request of that user was refused, and why, for views: a client
 * that writes to the database of another machine is not among them. */
void owners_refuse(struct shash *, const char *user, uint64_t uid,
                   const char *why);

/* Returns the last refusal of 'owner', which may be null, or NULL. */
const char *owner_refusal(const struct owner *);

/* Returns what 'owner' was served, of what is not forgotten. */
double owner_served(const struct owner *, double memory_s);

/* Removes owners without a cojob, when their accounts have faded; and all. */
void owners_forget(struct shash *, double memory_s);
void owners_destroy(struct shash *);

#endif /* controller/model/owners.h */
