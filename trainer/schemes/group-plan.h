/* SPDX-License-Identifier: Apache-2.0 */

#ifndef GROUP_PLAN_H
#define GROUP_PLAN_H 1

/* Which workers wait for each other.
 *
 *
 * Motivation
 * ==========
 *
 * A group is as slow as its slowest worker, so slow ones belong together: a
 * plan has the workers in the order of their speed, and each group is a piece
 * of that order.  Pieces need not be equal.  One worker of eight that takes
 * four times as long costs two equal groups 60 % more time than nobody's
 * delay would, but if it is alone, two groups only 10 %.
 *
 *
 * Usage
 * =====
 *
 *    struct group_plan plan;
 *
 *    group_plan_init(&plan, 8);                // One group of all.
 *    group_plan_fit(&plan, seconds, 8, 0.2);
 *    for (int i = 0; i < plan.n[g]; i++) {
 *        ...plan.order[plan.first[g] + i] is in group 'g'...
 *    }
 *    group_plan_uninit(&plan);
 *
 * 'seconds' are those of each worker's steps, and positive.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Allocates at initialisation only.  Pure functions; one thread a plan. */

struct group_plan {
    int n_workers, n_groups;
    int *order;                 /* Workers; a group's are side by side. */
    int *first, *n;             /* Of each group in 'order'. */
    int *group;                 /* Of each worker. */
};

void group_plan_init(struct group_plan *, int n_workers);
void group_plan_uninit(struct group_plan *);
void group_plan_copy(struct group_plan *, const struct group_plan *from);

/* Puts fast workers first.  Groups keep their places, not their members. */
void group_plan_sort(struct group_plan *, const double seconds[]);

/* Makes 'n_groups' equal groups, but for one worker, of the order. */
void group_plan_divide(struct group_plan *, int n_groups);

/* Sorts, and then doubles the groups from one on, at most to 'max', as long
 * as that is worth it and the job is more than 'tolerance' slower than it
 * would be if all were as fast as the median worker. */
void group_plan_fit(struct group_plan *, const double seconds[], int max,
                    double tolerance);

/* The time that the job takes, in parts of that time. */
double group_plan_time(const struct group_plan *, const double seconds[]);

#endif /* trainer/schemes/group-plan.h */
