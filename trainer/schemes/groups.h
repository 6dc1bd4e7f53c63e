/* SPDX-License-Identifier: Apache-2.0 */

#ifndef GROUPS_H
#define GROUPS_H 1

/* What a central server asks of the scheme "groups" beyond sync.h.
 *
 *
 * Motivation
 * ==========
 *
 * Under "groups", workers of a group wait for each other and groups do not.
 * The scheme can be told each worker's gradient, as any other; or, by the
 * functions below, each group's mean, which group servers have made.  It
 * decides in both cases who is in which group, which changes while training,
 * and which group has to wait.
 *
 * Groups change when all have made an update and wait, so that every worker
 * is between two steps.  A group that could make another one's gradient older
 * than 'tau' batches waits for that one: while it makes its step, the others'
 * updates are of no more samples than 'tau' batches have.
 *
 * A worker that has nothing to do for a while rests: its group's steps are of
 * the others, and a group that rests as a whole makes none, so that neither
 * its age nor its place holds anybody up.  A worker that wakes takes part from
 * its group's next step on.
 *
 *
 * Usage
 * =====
 *
 *    ...write group 2's mean to groups_inbox(sync, 2)...
 *    error = groups_push(sync, 2, n_samples, loss);
 *    if (groups_n_plans(sync) != seen) {
 *        ...groups_plan(sync) is another one, everybody moves...
 *    } else if (groups_ready(sync, 2)) {
 *        ...send sync_groups.weights(sync)...
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * 'sync' is one of sync_groups.  What is returned belongs to it, until the
 * next call that takes a non-const one.  One thread. */

#include <stdbool.h>
#include <stdint.h>

struct group_plan;
struct sync;

/* There are servers for at most 'n' groups; the default is no limit. */
void groups_limit(struct sync *, int n);

/* How many groups there are, or will be when all have come to wait. */
int groups_wanted(const struct sync *);

const struct group_plan *groups_plan(const struct sync *);
uint64_t groups_n_plans(const struct sync *);   /* 1 for the first one. */

/* How many gradients of 'worker' are in the weights, or dropped for having
 * no samples. */
uint64_t groups_counted(const struct sync *, int worker);

float *groups_inbox(struct sync *, int group);

/* The inbox of 'group' has the mean gradient of the 'n_samples' samples that
 * its workers have taken; 'loss' is their mean loss.  Returns NULL, or a
 * message if the group waits. */
char *groups_push(struct sync *, int group, uint32_t n_samples, float loss);

/* True if 'group' may have weights for its next step. */
bool groups_ready(const struct sync *, int group);

/* 'worker', which is between two steps, takes no part in them until it wakes.
 * Both return NULL, or a message if that is not what it may say now. */
char *groups_rest(struct sync *, int worker);
char *groups_wake(struct sync *, int worker);

/* Whether the step that 'worker''s group makes, or makes next, is without
 * it. */
bool groups_rests(const struct sync *, int worker);

#endif /* trainer/schemes/groups.h */
