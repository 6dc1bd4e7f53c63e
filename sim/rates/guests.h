/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_GUESTS_H
#define SIM_GUESTS_H 1

/* The units with flows on a port, by rank.
 *
 *
 * Motivation
 * ==========
 *
 * What a unit can get at a port is what better ranks leave there.  A list by
 * rank that remembers it says at once whether a unit would find something else
 * than it did, and who comes next.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Part of rates-fill.c, which owns the members and frees 'guests'. */

#include <stdbool.h>
#include <stddef.h>

struct member;

/* A unit on a port, in bytes per second. */
struct guest {
    struct member *member;
    int rank;                   /* The member's, to be looked at without it. */
    double found, left;
};

struct guests {
    size_t n, allocated;
    struct guest *guests;
    bool dirty;                 /* Some have gone since the last update. */
};

/* Returns the place where a member is or should be. */
size_t guests_find(const struct guests *, const struct member *);

void guests_add(struct guests *, struct member *);
void guests_remove(struct guests *, const struct member *);

/* Sorts the list after ranks have changed. */
void guests_sort(struct guests *);

#endif /* sim/rates/guests.h */
