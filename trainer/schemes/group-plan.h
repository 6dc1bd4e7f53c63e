/* SPDX-License-Identifier: Apache-2.0 */

#ifndef GROUP_PLAN_H
#define GROUP_PLAN_H 1

/* Division of workers into groups, within which workers wait.
 *
 * A group is as slow as its slowest worker, so slow workers belong together: a
 * plan sorts the workers by speed, and each group is a range of that order.
 * Ranges need not be equal: if one worker of eight takes four times as long,
 * two equal groups are 60 % slower than eight workers without a delay; a group
 * of that worker and one of the others are 10 % slower.
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
 * 'seconds[i]' is the time of a step of worker i, more than 0.
 *
 * The caller owns a plan, which one thread uses at a time. */

struct group_plan {
    int n_workers, n_groups;
    int *order;                 /* Workers, group by group; the memory of all
                                 * four arrays. */
    int *first, *n;             /* Each group's range of 'order'. */
    int *group;                 /* Each worker's group. */
};

void group_plan_init(struct group_plan *, int n_workers);
void group_plan_uninit(struct group_plan *);
void group_plan_copy(struct group_plan *, const struct group_plan *from);

/* Sorts the workers, the fastest first; ranges stay as they are. */
void group_plan_sort(struct group_plan *, const double seconds[]);

/* Makes 'n_groups' ranges, with lengths that differ by at most one. */
void group_plan_divide(struct group_plan *, int n_groups);

/* Sorts the workers, and then doubles the number of groups from 1 to at most
 * 'max' while that helps and group_plan_time() is more than 1 + 'tolerance'.
 */
void group_plan_fit(struct group_plan *, const double seconds[], int max,
                    double tolerance);

/* Returns the time of the job, relative to one in which all workers are as
 * fast as the median one. */
double group_plan_time(const struct group_plan *, const double seconds[]);

#endif /* trainer/schemes/group-plan.h */
