/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ANNOUNCEMENT_H
#define ANNOUNCEMENT_H 1

/* What a search announced of its later stages, and what it hid.
 *
 * A search that has more to do goes later, see iteration-weight.h, so a search
 * would gain by not announcing its later stages.  At the first stage it
 * equals a search that has no others.  When it begins a stage that it has not
 * announced, the order knows what the search hid, and adds this once and a
 * half to what the search still needs until its end: in its later stages it
 * loses what it gained before.  A search that hides its later stages takes
 * 1.01 to 1.20 times as long as if it announced them, and 0.74 to 0.95 times
 * as long if nothing is added (24 seeds of four families of order-iterating).
 * Adding what it hid once gives 0.95 to 1.09, twice 1.07 to 1.27.
 *
 * Where no search announces anything, no search gains by silence, and adding
 * what was hidden lengthens the mean by 8 to 17 %, because searches that are
 * nearly done wait for those that have just begun.  Therefore what a search
 * hid counts by the candor of the others: the share of their later stages that
 * they have announced.
 *
 * If the bytes that it announces are too few, this is such a debt as well,
 * once they are counted, whatever others announce.
 *
 * A search that judges trials one by one is one stage.  Trials that it did not
 * announce at first are what it hid.
 *
 * A search may still change an announcement while the stage runs, which the
 * order does not notice.  For those that begin each stage as a new search, see
 * account.h.
 *
 *    announcement_init(&a, later);         ...first stage of a search...
 *    announcement_next(&a, own, later);    ...each stage after it...
 *
 *    candor_add(&candor, &a);               ...each running stage...
 *    work += announcement_debt(&a, &candor) * ...work of an iteration...;
 *
 * Pure functions. */

#include <stddef.h>
#include <stdint.h>

/* A rung after the running one. */
struct announced_rung {
    int64_t iterations; /* Of each of its jobs. */
    size_t n_jobs;      /* At least 1. */
};

/* Returns the iterations of all jobs in 'n' rungs. */
double announced_iterations(const struct announced_rung *, size_t n);

/* Iterations, summed over the jobs of a search. */
struct announcement {
    double later;               /* That the search announces after the running
                                 * stage. */
    double after_first;         /* Of the stages after the first one, the
                                 * running one included. */
    double hidden;              /* Part of 'after_first' and 'later' that had
                                 * not been announced a stage earlier. */
    double understated;         /* What jobs moved of their first iterations
                                 * beyond what was announced for them, until
                                 * it was counted. */
};

/* At the first stage of a search. */
void announcement_init(struct announcement *, double later);

/* At a further stage, in which the jobs do 'own' iterations. */
void announcement_next(struct announcement *, double own, double later);

/* Sum of the shares of their later stages that searches have announced.  A
 * search in its first stage that announces nothing may have no other stage and
 * does not count. */
struct candor {
    double announced;           /* Sum of shares, each from 0 to 1. */
    int n;                      /* Number of searches that count. */
};

void candor_add(struct candor *, const struct announcement *);
void candor_remove(struct candor *, const struct announcement *);

/* Returns the iterations that count in addition to those that the search still
 * needs; 'candor' is the candor of all running stages, the search's
 * included. */
double announcement_debt(const struct announcement *,
                         const struct candor *candor);

/* Appends a rung of 'hidden' iterations to the 'n' 'rungs' of a search, at
 * least one, for a simulation: a search that owes would otherwise seem to end
 * early. Returns the new number. */
size_t announced_rungs_add(struct announced_rung *rungs, size_t n,
                           double hidden);

#endif /* order/problem/announcement.h */
