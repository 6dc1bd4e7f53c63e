/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/schemes/groups-private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define TOLERANCE 0.2           /* Of time, over what nobody's delay takes. */
#define CLEARLY 0.1             /* How much faster another plan has to be. */
#define FIRST_REPORTS 1         /* Of each worker, before the first change, */
#define MORE_REPORTS 4          /* and since the last one. */
#define NEW_PART 0.3            /* Of a report in the average. */

void
groups_turns_init(struct groups *g, int n, int n_fixed, int64_t tau)
{
    g->n_fixed = n_fixed;
    g->limit = n;
    g->max_age = (uint64_t) tau * n;
    group_plan_init(&g->plan, n);
    group_plan_init(&g->next, n);
    g->groups = allocate(n, sizeof *g->groups);
    g->arrived = allocate(n, sizeof *g->arrived);
    g->rests = allocate(n, sizeof *g->rests);
    g->wakes = allocate(n, sizeof *g->wakes);
    g->seconds = allocate(n, sizeof *g->seconds);
    g->n_reports = allocate(n, sizeof *g->n_reports);
}

void
groups_turns_uninit(struct groups *g)
{
    group_plan_uninit(&g->plan);
    group_plan_uninit(&g->next);
    free(g->groups);
    free(g->arrived);
    free(g->rests);
    free(g->wakes);
    free(g->seconds);
    free(g->n_reports);
}

void
groups_turns_report(struct groups *g, int worker, double seconds)
{
    g->seconds[worker] = g->seconds[worker]
                         ? (1 - NEW_PART) * g->seconds[worker]
                           + NEW_PART * seconds
                         : seconds;
    g->n_reports[worker]++;
}

int
groups_n_active(const struct groups *g, int group)
{
    int n = 0;

    for (int k = 0; k < g->plan.n[group]; k++) {
        int worker = groups_members(g, group)[k];

        n += !g->rests[worker]
             || (g->wakes[worker] && !g->groups[group].running);
    }
    return n;
}

/* Starts a step of 'group'. */
static void
begin(struct groups *g, int group)
{
    g->groups[group] = (struct group) {
        .running = true, .began = g->n_applied,
    };
    for (int k = 0; k < g->plan.n[group]; k++) {
        int worker = groups_members(g, group)[k];

        g->arrived[worker] = false;
        if (g->wakes[worker]) {
            g->rests[worker] = g->wakes[worker] = false;
        }
    }
}

/* Lets groups begin that do not rest, as long as no running one can become too
 * old by that: if all others that run end before it, it is still not older
 * than 'max_age'. */
static void
release(struct groups *g)
{
    uint64_t running = 0, oldest = UINT64_MAX;

    for (int i = 0; i < g->plan.n_groups; i++) {
        int n = groups_n_active(g, i);
        uint64_t end = g->groups[i].began + n;

        if (g->groups[i].running) {
            running += n;
            oldest = end < oldest ? end : oldest;
        }
    }
    for (int i = 0; i < g->plan.n_groups; i++) {
        int n = groups_n_active(g, i);
        uint64_t end = g->n_applied + n;

        if (!g->groups[i].running && n
            && (!running || end + running - oldest <= g->max_age)) {
            begin(g, i);
            running += n;
            oldest = end < oldest ? end : oldest;
        }
    }
}

static void
adopt(struct groups *g)
{
    g->gathering = false;
    g->n_plans++;
    group_plan_copy(&g->plan, &g->next);
    memset(g->groups, 0, g->plan.n_workers * sizeof *g->groups);
    memset(g->n_reports, 0, g->plan.n_workers * sizeof *g->n_reports);
    release(g);
}

void
groups_turns_begin(struct groups *g)
{
    int n = g->plan.n_workers;

    memset(g->rests, 0, n * sizeof *g->rests);
    memset(g->wakes, 0, n * sizeof *g->wakes);
    group_plan_divide(&g->next, g->n_fixed ? g->n_fixed : 1);
    adopt(g);
}

/* Whether all have said enough about what there is. */
static bool
have_reported(const struct groups *g)
{
    int enough = g->n_plans > 1 ? MORE_REPORTS : FIRST_REPORTS;

    for (int i = 0; i < g->plan.n_workers; i++) {
        if (g->n_reports[i] < enough) {
            return false;
        }
    }
    return true;
}

/* Decides whether there are to be other groups.  More, or others, if the job
 * is too slow and becomes clearly faster; fewer if it is far from too slow. */
static void
control(struct groups *g)
{
    double now;
    bool change;

    if (g->gathering || !have_reported(g)) {
        return;
    }
    now = group_plan_time(&g->plan, g->seconds);
    if (g->n_fixed) {
        group_plan_sort(&g->next, g->seconds);
        change = group_plan_time(&g->next, g->seconds) < now - CLEARLY;
    } else {
        group_plan_fit(&g->next, g->seconds, g->limit, TOLERANCE);
        change = now > 1 + TOLERANCE
                 && group_plan_time(&g->next, g->seconds) < now - CLEARLY;
        if (!change) {
            group_plan_fit(&g->next, g->seconds, g->limit, TOLERANCE / 2);
            change = g->next.n_groups < g->plan.n_groups;
        }
    }
    if (change) {
        g->gathering = true;
        fprintf(stderr, "server: %d groups\n", g->next.n_groups);
    }
}

void
groups_turns_settle(struct groups *g)
{
    bool any = false;

    for (int i = 0; i < g->plan.n_groups; i++) {
        any = any || g->groups[i].running;
    }
    if (!g->gathering) {
        release(g);
    } else if (!any) {
        adopt(g);
    }
}

void
groups_turns_go_on(struct groups *g, int group)
{
    g->n_applied += groups_n_active(g, group);
    g->groups[group].running = false;
    control(g);
    groups_turns_settle(g);
}
