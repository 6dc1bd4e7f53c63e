/* SPDX-License-Identifier: Apache-2.0 */

#ifndef GROUPS_PRIVATE_H
#define GROUPS_PRIVATE_H 1

/* What the parts of the scheme "groups" share.
 *
 * groups-turns.c decides who is in which group and which group makes a step;
 * groups.c takes gradients, of workers and of groups, and what rests. */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/schemes/group-plan.h"
#include "trainer/schemes/groups.h"

struct group {
    bool running;               /* Its workers make a step. */
    uint64_t began;             /* 'n_applied' when it began. */
};

struct groups {
    struct group_plan plan, next;
    struct group *groups;       /* By number in 'plan'. */
    bool *arrived;              /* Each worker: has pushed its step, */
    bool *rests;                /* takes no part in steps, */
    bool *wakes;                /* but is to, from the next one on. */
    uint64_t n_plans;
    bool gathering;             /* For 'next', when all groups wait. */
    int n_fixed;                /* Groups that somebody else wants, or 0. */
    int limit;                  /* Groups that there are servers for. */
    uint64_t n_applied;         /* Gradients of workers. */
    uint64_t max_age;           /* A running group's, in gradients. */
    double *seconds;            /* Of each worker's steps, an average. */
    int *n_reports;             /* Since the last change. */
};

static inline const int *
groups_members(const struct groups *g, int group)
{
    return &g->plan.order[g->plan.first[group]];
}

/* How many workers of 'group' take part in its step or, if it does not run, in
 * its next one. */
int groups_n_active(const struct groups *, int group);

/* Of 'n' workers.  'n_fixed' groups, or 0; none gets older than 'tau'
 * batches. */
void groups_turns_init(struct groups *, int n, int n_fixed, int64_t tau);
void groups_turns_uninit(struct groups *);

/* Makes the first groups, of workers that all take part, and lets them
 * begin. */
void groups_turns_begin(struct groups *);

/* A step took 'worker' so many seconds. */
void groups_turns_report(struct groups *, int worker, double seconds);

/* What 'group' has pushed is in the weights: it and others may go on, or all
 * wait for other groups. */
void groups_turns_go_on(struct groups *, int group);

/* Says who goes on, after a rest has begun or ended. */
void groups_turns_settle(struct groups *);

#endif /* trainer/schemes/groups-private.h */
