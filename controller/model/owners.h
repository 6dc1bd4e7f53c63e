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
 * The caller owns the map; an owner lives until owners_forget(), if no cojob
 * has it any more.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "order/problem/account.h"

struct shash;

struct owner {
    struct account account; /* Times are time_msec(), in seconds. */
    bool stored;            /* The database has it. */
    bool written;           /* A transaction has it, which may fail. */
    size_t n_cojobs;        /* That have it. */
    size_t place;           /* Used by decide-problem.c. */
};

/* Returns the owner of that user, a new one if it is missing; NULL if the
 * user is unknown. */
struct owner *owners_get(struct shash *, const char *user, uint64_t uid);

/* The same by its name in the database. */
struct owner *owners_find(struct shash *, const char *name);

/* Adds a search of 'work' that has ended now. */
void owners_add(struct owner *, double work, double memory_s);

/* Removes owners without a cojob, when their accounts have faded. */
void owners_forget(struct shash *, double memory_s);

#endif /* controller/model/owners.h */
