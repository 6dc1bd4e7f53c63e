/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ACCOUNT_H
#define ACCOUNT_H 1

/* What owners were served in the last minutes, for their next searches.
 *
 * A search that has less to do goes first, so an owner would gain by slicing a
 * search: into small ones that follow each other, or that run side by side.
 * An account remembers what the searches of an owner were served, and forgets
 * half of it in each period of the policy's memory.  What it has beyond its
 * two largest searches counts for each running search of the owner, in
 * addition to what that search still needs, as far as all but the largest are
 * smaller than the running searches of the others in the mean, or as the owner
 * was served more than they in the mean.  So a second search of an honest
 * owner keeps its place, and so do searches like those of others, while slices
 * go behind honest searches of the same total.  Only what exceeds the least of
 * all owners with running searches counts, because where all owners slice, or
 * all searches have one owner, no owner gains by it.
 *
 * Announcing 400 iterations in 4 or 8 parts beside searches of 100, in
 * sequence, made an owner 2.4 and 3.3 times as fast as announcing them at
 * once, and now makes him 0.95 and 0.73 times as fast; side by side 0.65 and
 * 0.64 times (test mixed-traffic).  Two halves gain what two searches gain,
 * since they are two searches (docs/notes/fairness.md, "Slices of one owner",
 * has that, and what the rule costs the mean).
 *
 *    account_add(&accounts[o], work, now, memory_s);    // A search ended.
 *
 *    searches[i] = (struct account_search){ .owner = o, .work = work };
 *    account_debts(accounts, n_owners, now, memory_s, searches, n);
 *    work += searches[i].debt;
 *
 * Works are seconds of all ports, times are seconds of the caller's clock.
 * Pure functions. */

#include <stddef.h>

/* Of one owner.  All is 0 at first. */
struct account {
    double total;         /* Of all searches. */
    double count;         /* Their number; falls like 'total'. */
    double first, second; /* Parts of the two largest. */
    double at;            /* Time for which these hold. */
};

/* A running search. */
struct account_search {
    size_t owner; /* Index of its account. */
    double work;  /* From its begin to its announced end. */
    double debt;  /* What counts in addition. */
};

/* Adds a search of 'work' that ended at 'now'. */
void account_add(struct account *, double work, double now, double memory_s);

/* Sets 'debt' of all running searches at 'now'; 0 without a memory. */
void account_debts(const struct account *, size_t n_accounts, double now,
                   double memory_s, struct account_search *, size_t n);

#endif /* order/problem/account.h */
