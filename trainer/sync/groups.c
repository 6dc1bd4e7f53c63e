/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/sync/groups.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/message.h"
#include "trainer/ps/shard.h"
#include "trainer/sync/group-plan.h"
#include "trainer/sync/sync-state.h"

#define TOLERANCE 0.2           /* Of time, over what nobody's delay takes. */
#define CLEARLY 0.1             /* How much faster another plan has to be. */
#define FIRST_REPORTS 1         /* Of each worker, before the first change, */
#define MORE_REPORTS 4          /* and since the last one. */
#define NEW_PART 0.3            /* Of a report in the average. */

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

static const int *
members(const struct groups *g, int group)
{
    return &g->plan.order[g->plan.first[group]];
}

/* How many workers of 'group' take part in its step or, if it does not run, in
 * its next one. */
static int
n_active(const struct groups *g, int group)
{
    int n = 0;

    for (int k = 0; k < g->plan.n[group]; k++) {
        int worker = members(g, group)[k];

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
        int worker = members(g, group)[k];

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
        int n = n_active(g, i);
        uint64_t end = g->groups[i].began + n;

        if (g->groups[i].running) {
            running += n;
            oldest = end < oldest ? end : oldest;
        }
    }
    for (int i = 0; i < g->plan.n_groups; i++) {
        int n = n_active(g, i);
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

/* The first groups, of workers that all take part. */
static void
begin_anew(struct sync *sync)
{
    struct groups *g = sync->own;
    int n = sync->config.n_workers;

    memset(g->rests, 0, n * sizeof *g->rests);
    memset(g->wakes, 0, n * sizeof *g->wakes);
    group_plan_divide(&g->next, g->n_fixed ? g->n_fixed : 1);
    adopt(g);
    for (int i = 0; i < n; i++) {
        sync_state_post(sync, i, &(struct sync_message) {
            .kind = SYNC_ROLE, .n = SYNC_ROLE_REPORTS,
        });
    }
}

static struct sync *
groups_create(const struct sync_config *config)
{
    struct sync *sync = sync_state_create(config, sizeof(struct groups));
    const struct sync_spec *spec = config->spec;
    struct groups *g = sync->own;
    int n = config->n_workers;

    g->n_fixed = spec ? spec->groups : 0;
    g->limit = n;
    g->max_age = (uint64_t) (spec && spec->tau ? spec->tau : 8) * n;
    group_plan_init(&g->plan, n);
    group_plan_init(&g->next, n);
    g->groups = allocate(n, sizeof *g->groups);
    g->arrived = allocate(n, sizeof *g->arrived);
    g->rests = allocate(n, sizeof *g->rests);
    g->wakes = allocate(n, sizeof *g->wakes);
    g->seconds = allocate(n, sizeof *g->seconds);
    g->n_reports = allocate(n, sizeof *g->n_reports);
    begin_anew(sync);
    return sync;
}

static void
groups_resume(struct sync *sync, uint64_t iteration)
{
    sync_state_resume_counts(sync, iteration);
    begin_anew(sync);
}

static void
groups_destroy(struct sync *sync)
{
    if (sync) {
        struct groups *g = sync->own;

        group_plan_uninit(&g->plan);
        group_plan_uninit(&g->next);
        free(g->groups);
        free(g->arrived);
        free(g->rests);
        free(g->wakes);
        free(g->seconds);
        free(g->n_reports);
    }
    sync_state_destroy(sync);
}

static char *
groups_message(struct sync *sync, int worker, const struct sync_message *m)
{
    struct groups *g = sync->own;

    if (m->kind != SYNC_REPORT || !(m->seconds > 0)
        || !isfinite(m->seconds)) {
        return message("message of kind %u, reports are allowed", m->kind);
    }
    g->seconds[worker] = g->seconds[worker]
                         ? (1 - NEW_PART) * g->seconds[worker]
                           + NEW_PART * m->seconds
                         : m->seconds;
    g->n_reports[worker]++;
    return NULL;
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

/* Says who goes on. */
static void
settle(struct groups *g)
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

/* What 'group' has pushed is in the weights. */
static void
go_on(struct groups *g, int group)
{
    g->n_applied += n_active(g, group);
    g->groups[group].running = false;
    control(g);
    settle(g);
}

/* The mean of those of 'group' that have pushed, as their part of a batch,
 * makes the next weights once nobody is waited for.  One that rests has no
 * samples. */
static void
update_if_all_have_arrived(struct sync *sync, int group)
{
    struct groups *g = sync->own;
    int n = g->plan.n[group];
    double part = (double) n_active(g, group) / sync->config.n_workers;
    uint64_t n_samples = 0;

    for (int i = 0; i < n; i++) {
        int worker = members(g, group)[i];

        if (!g->arrived[worker] && !g->rests[worker]) {
            return;
        }
        n_samples += sync->workers[worker].n_samples;
    }
    sync_state_clear(sync);
    for (int i = 0; i < n && n_samples; i++) {
        const struct sync_worker *w = &sync->workers[members(g, group)[i]];

        if (w->n_samples) {
            sync_state_add(sync, w->gradient,
                           (double) w->n_samples / n_samples * part);
        }
    }
    sync_state_update(sync);
    sync->loss = sync_state_mean_loss(sync);
    go_on(g, group);
}

/* Whether somebody of 'group' has: of those who have not rested since. */
static bool
has_pushed(const struct groups *g, int group)
{
    for (int i = 0; i < g->plan.n[group]; i++) {
        if (g->arrived[members(g, group)[i]]) {
            return true;
        }
    }
    return false;
}

static char *
groups_take_push(struct sync *sync, int worker, uint64_t iteration,
                 uint32_t n_samples, float loss)
{
    struct groups *g = sync->own;
    struct sync_worker *w = &sync->workers[worker];
    int group = g->plan.group[worker];

    if (sync->config.follows) {
        return message("groups: one server is allowed");
    }
    if (iteration != w->n_pushed || g->arrived[worker] || g->rests[worker]
        || !g->groups[group].running) {
        return sync_state_refuse(iteration, w->n_pushed);
    }
    w->n_pushed++;
    w->n_samples = n_samples;
    w->loss = loss;
    g->arrived[worker] = true;
    update_if_all_have_arrived(sync, group);
    return NULL;
}

static bool
groups_worker_ready(const struct sync *sync, int worker, uint64_t *iteration,
                    float *loss)
{
    const struct groups *g = sync->own;

    *iteration = sync->workers[worker].n_pushed;
    *loss = sync->loss;
    return g->groups[g->plan.group[worker]].running && !g->arrived[worker]
           && !g->rests[worker];
}

void
groups_limit(struct sync *sync, int n)
{
    struct groups *g = sync->own;

    g->limit = n < sync->config.n_workers ? n : sync->config.n_workers;
}

int
groups_wanted(const struct sync *sync)
{
    const struct groups *g = sync->own;

    return g->gathering ? g->next.n_groups : g->plan.n_groups;
}

const struct group_plan *
groups_plan(const struct sync *sync)
{
    const struct groups *g = sync->own;

    return &g->plan;
}

uint64_t
groups_n_plans(const struct sync *sync)
{
    const struct groups *g = sync->own;

    return g->n_plans;
}

uint64_t
groups_counted(const struct sync *sync, int worker)
{
    return sync->workers[worker].n_pushed;
}

/* That of the group's first worker, which has nothing of its own here. */
float *
groups_inbox(struct sync *sync, int group)
{
    const struct groups *g = sync->own;

    return sync_state_inbox(sync, *members(g, group));
}

char *
groups_push(struct sync *sync, int group, uint32_t n_samples, float loss)
{
    struct groups *g = sync->own;
    int n = n_active(g, group), k = 0;

    if (!g->groups[group].running) {
        return message("mean of group %d, which waits", group);
    }
    for (int i = 0; i < g->plan.n[group]; i++) {
        int worker = members(g, group)[i];
        struct sync_worker *w = &sync->workers[worker];

        if (!g->rests[worker]) {
            w->n_pushed++;
            w->n_samples = shard_range(n_samples, k++, n).n;
            w->loss = loss;
        }
    }
    if (n_samples) {
        sync_state_clear(sync);
        sync_state_add(sync, sync->workers[*members(g, group)].gradient,
                       (double) n / sync->config.n_workers);
        sync_state_update(sync);
    }
    sync->loss = sync_state_mean_loss(sync);
    go_on(g, group);
    return NULL;
}

bool
groups_ready(const struct sync *sync, int group)
{
    const struct groups *g = sync->own;

    return g->groups[group].running;
}

/* A step in which nobody takes part any more is none. */
char *
groups_rest(struct sync *sync, int worker)
{
    struct groups *g = sync->own;
    int group = g->plan.group[worker];
    bool running = g->groups[group].running;

    if ((g->rests[worker] && !g->wakes[worker])
        || (running && g->arrived[worker])) {
        return message("rest of a worker that %s",
                       g->rests[worker] ? "rests" : "has pushed");
    }
    g->rests[worker] = true;
    g->wakes[worker] = false;
    sync->workers[worker].n_samples = 0;
    if (running && !n_active(g, group)) {
        g->groups[group].running = false;
        settle(g);
    } else if (running && has_pushed(g, group)) {
        update_if_all_have_arrived(sync, group);
    }
    return NULL;
}

char *
groups_wake(struct sync *sync, int worker)
{
    struct groups *g = sync->own;

    if (!g->rests[worker]) {
        return message("end of a rest, there is none");
    }
    g->wakes[worker] = true;
    settle(g);
    return NULL;
}

bool
groups_rests(const struct sync *sync, int worker)
{
    const struct groups *g = sync->own;

    return g->rests[worker];
}

const struct sync_class sync_groups = {
    .name = "groups",
    .help = "workers of a group wait for each other, groups do not",
    .create = groups_create,
    .destroy = groups_destroy,
    .weights = sync_state_weights,
    .inbox = sync_state_inbox,
    .push = groups_take_push,
    .ready = groups_worker_ready,
    .message = groups_message,
    .take = sync_state_take,
    .iteration = sync_state_least_pushed,
    .spans = sync_state_count_spans,
    .resume = groups_resume,
};
