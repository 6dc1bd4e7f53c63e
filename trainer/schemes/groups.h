/* SPDX-License-Identifier: Apache-2.0 */

#ifndef GROUPS_H
#define GROUPS_H 1

/* The scheme "groups" for a central server, beside sync.h, and its plans: how
 * workers are divided into groups.
 *
 * Under "groups" the workers of a group wait for each other, and groups do
 * not.  The scheme takes either the gradient of each worker, as other schemes
 * do, or, through the functions below, the mean gradient of each group, which
 * a group server computes.  In both cases it decides which workers form a
 * group, which changes during the training, and which group has to wait.
 *
 * Groups change when all groups wait after an update, so that every worker is
 * between two steps.  While a group makes a step, the updates of the other
 * groups contain no more samples than 'tau' batches: a group that would exceed
 * this waits.
 *
 * A worker that reaches its target is paused: the steps of its group consist
 * of the others, and a group of paused workers makes none and delays no other
 * group.  A worker that resumes takes part from the next step of its group.
 *
 *    ...write group 2's mean to groups_inbox(sync, 2)...
 *    error = groups_push(sync, 2, n_samples, loss);
 *    if (groups_plan(sync)->number != seen) {
 *        ...the plan has changed, all workers are to move...
 *    } else if (groups_ready(sync, 2)) {
 *        ...send sync_weights(sync)...
 *    }
 *
 * A group is as slow as its slowest worker, so slow workers belong together: a
 * plan sorts the workers by speed, and each group is a range of that order.
 * Ranges need not be equal: if one worker of eight takes four times as long,
 * two equal groups are 60 % slower than eight workers without a delay; a group
 * of that worker and one of the others are 10 % slower.
 *
 *    group_plan_init(&plan, 8);                // One group of all.
 *    group_plan_fit(&plan, seconds, 8, 0.2);
 *    for (int i = 0; i < plan.n[g]; i++) {
 *        ...plan.order[plan.first[g] + i] is in group 'g'...
 *    }
 *    group_plan_uninit(&plan);
 *
 * 'seconds[i]' is the time of a step of worker i, more than 0.  The caller
 * owns a plan.
 *
 * 'sync' was created by sync_groups.  Returned pointers are valid until the
 * next call with a non-const 'sync'.  One thread. */

#include <stdbool.h>
#include <stdint.h>

struct sync;

/* Limits the number of groups to 'n', the number of group servers, besides the
 * configured limit. */
void groups_limit(struct sync *, int n);

/* Number of groups, or of those that are to replace them. */
int groups_wanted(const struct sync *);

const struct group_plan *groups_plan(const struct sync *);

/* Number of gradients of 'worker' that the weights contain, or that had no
 * samples. */
uint64_t groups_counted(const struct sync *, int worker);

float *groups_inbox(struct sync *, int group);

/* The inbox of 'group' has the mean gradient of 'n_samples' samples of its
 * workers; 'loss' is their mean loss.  Returns NULL, or a message if the group
 * has to wait. */
char *groups_push(struct sync *, int group, uint32_t n_samples, float loss);

/* Returns true if 'group' may have the weights for its next step. */
bool groups_ready(const struct sync *, int group);

/* Pauses or resumes 'worker', which is between two steps.  Returns NULL, or a
 * message if the worker is in no state for that. */
char *groups_pause_worker(struct sync *, int worker);
char *groups_resume_worker(struct sync *, int worker);

/* Returns true if 'worker' takes no part in the running step of its group, or
 * in the next one if none is running. */
bool groups_is_paused(const struct sync *, int worker);

struct group_plan {
    uint64_t number;            /* Of a scheme's plan, from 1. */
    int n_workers, n_groups;
    int *order;                 /* Workers, group by group; the memory of all
                                 * four arrays. */
    int *first, *n;             /* Each group's range of 'order'. */
    int *group;                 /* Each worker's group. */
};

void group_plan_init(struct group_plan *, int n_workers);
void group_plan_uninit(struct group_plan *);

/* Makes 'n_groups' ranges, with lengths that differ by at most one. */
void group_plan_divide(struct group_plan *, int n_groups);

/* Sorts the workers, and then doubles the number of groups from 1 to at most
 * 'max' while that helps and group_plan_time() is more than 1 + 'tolerance'.
 * If it still is, all stay in one group, unless more save a quarter of its
 * time: gradients of other groups are stale, which a small gain is not worth.
 */
void group_plan_fit(struct group_plan *, const double seconds[], int max,
                    double tolerance);

/* Returns the time of the job, relative to one in which all workers are as
 * fast as the median one. */
double group_plan_time(const struct group_plan *, const double seconds[]);

#endif /* trainer/schemes/groups.h */
