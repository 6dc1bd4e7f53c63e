/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/schemes/groups.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compare.h"
#include "base/memory.h"
#include "trainer/schemes/shard.h"
#include "trainer/schemes/sync-state.h"

#define TOLERANCE 0.2           /* Slowdown relative to an undelayed step. */
#define MIN_GAIN 0.1            /* Of the slowdown, by another plan. */
#define MIN_SPLIT_GAIN 0.05     /* Of the time, by twice the groups. */
#define WORTH 0.75              /* Of one group's time, beyond TOLERANCE. */
#define FIRST_REPORTS 1         /* Reports of each worker before the first */
#define MORE_REPORTS 4          /* plan changes, and before later ones do. */
#define NEW_PART 0.3            /* Weight of a report in the average. */

/* Plans. */

void
group_plan_init(struct group_plan *plan, int n_workers)
{
    plan->n_workers = n_workers;
    plan->order = allocate(4 * n_workers, sizeof *plan->order);
    plan->first = plan->order + n_workers;
    plan->n = plan->first + n_workers;
    plan->group = plan->n + n_workers;
    for (int i = 0; i < n_workers; i++) {
        plan->order[i] = i;
    }
    group_plan_divide(plan, 1);
}

void
group_plan_uninit(struct group_plan *plan)
{
    free(plan->order);
}

static void
group_plan_copy(struct group_plan *plan, const struct group_plan *from)
{
    plan->n_groups = from->n_groups;
    memcpy(plan->order, from->order,
           4 * from->n_workers * sizeof *from->order);
}

static void
set_worker_groups(struct group_plan *plan)
{
    for (int g = 0; g < plan->n_groups; g++) {
        for (int i = 0; i < plan->n[g]; i++) {
            plan->group[plan->order[plan->first[g] + i]] = g;
        }
    }
}

void
group_plan_divide(struct group_plan *plan, int n_groups)
{
    plan->n_groups = n_groups;
    for (int g = 0; g < n_groups; g++) {
        struct shard part = shard_range(plan->n_workers, g, n_groups);

        plan->first[g] = part.first;
        plan->n[g] = part.n;
    }
    set_worker_groups(plan);
}

static int
compare_workers(const void *a_, const void *b_, void *seconds_)
{
    const int *a = a_, *b = b_;
    const double *seconds = seconds_;

    return seconds[*a] != seconds[*b] ? (seconds[*a] < seconds[*b] ? -1 : 1)
                                      : *a - *b;
}

/* Sorts the workers, the fastest first; ranges stay as they are. */
static void
group_plan_sort(struct group_plan *plan, const double seconds[])
{
    qsort_r(plan->order, plan->n_workers, sizeof *plan->order,
            compare_workers, (void *) seconds);
    set_worker_groups(plan);
}

/* Returns after how many workers to split group 'g' of a sorted plan, or 0.
 * '*gain' is the increase in steps per second of all workers. */
static int
best_split(const struct group_plan *plan, int g, const double seconds[],
           double *gain)
{
    const int *members = &plan->order[plan->first[g]];
    double slowest = seconds[members[plan->n[g] - 1]];
    int best = 0;

    *gain = 0;
    for (int k = 1; k < plan->n[g]; k++) {
        double x = k / seconds[members[k - 1]] - k / slowest;

        if (x > *gain) {
            *gain = x;
            best = k;
        }
    }
    return best;
}

/* Splits the group for which that helps most.  Returns false if it helps for
 * none. */
static bool
split_best(struct group_plan *plan, const double seconds[])
{
    double most = 0, gain;
    int group = 0, split = 0;

    for (int g = 0; g < plan->n_groups; g++) {
        int at = best_split(plan, g, seconds, &gain);

        if (gain > most) {
            most = gain;
            group = g;
            split = at;
        }
    }
    if (!split) {
        return false;
    }
    for (int g = plan->n_groups++; g > group; g--) {
        plan->first[g] = plan->first[g - 1];
        plan->n[g] = plan->n[g - 1];
    }
    plan->first[group + 1] += split;
    plan->n[group + 1] -= split;
    plan->n[group] = split;
    return true;
}

void
group_plan_fit(struct group_plan *plan, const double seconds[], int max,
               double tolerance)
{
    struct group_plan more;
    double time, one;

    group_plan_divide(plan, 1);
    group_plan_sort(plan, seconds);
    group_plan_init(&more, plan->n_workers);
    group_plan_copy(&more, plan);
    time = one = group_plan_time(plan, seconds);
    while (2 * plan->n_groups <= max && time > 1 + tolerance) {
        double before = time;

        while (more.n_groups < 2 * plan->n_groups
               && split_best(&more, seconds)) {
            continue;
        }
        time = group_plan_time(&more, seconds);
        if (time > before - MIN_SPLIT_GAIN) {
            time = before;
            break;
        }
        set_worker_groups(&more);
        group_plan_copy(plan, &more);
    }
    group_plan_uninit(&more);
    if (time > 1 + tolerance && time > WORTH * one) {
        group_plan_divide(plan, 1);
    }
}

double
group_plan_time(const struct group_plan *plan, const double seconds[])
{
    int n = plan->n_workers;
    double *sorted = allocate(n, sizeof *sorted), median, speed = 0;

    memcpy(sorted, seconds, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_doubles);
    median = sorted[(n - 1) / 2];
    free(sorted);
    for (int g = 0; g < plan->n_groups; g++) {
        double slowest = 0;

        for (int i = 0; i < plan->n[g]; i++) {
            slowest = fmax(slowest, seconds[plan->order[plan->first[g] + i]]);
        }
        speed += plan->n[g] / slowest;
    }
    return n / median / speed;
}

/* The scheme. */

struct group {
    bool running;               /* Its workers make a step. */
    uint64_t began;             /* 'n_applied' at the start of the step. */
};

struct group_worker {
    bool arrived;               /* It has pushed in this step. */
    bool paused;                /* It takes no part in steps. */
    bool resuming;              /* It is paused until the next step. */
    int n_reports;              /* Reports under this plan. */
};

struct groups {
    struct group_plan plan, next;
    struct group *groups;       /* By number in 'plan'. */
    bool gathering;             /* Groups stop, until 'next' can be applied. */
    int n_fixed;                /* Number of groups if configured, else 0. */
    int most, limit;            /* Of groups: as configured; and not more than
                                 * group servers. */
    uint64_t n_applied;         /* Gradients of workers in the weights. */
    uint64_t max_age;           /* Of a running group, in gradients. */
    double *seconds;            /* Per worker: average time of a step. */
    struct group_worker workers[];
};

static const int *
members(const struct groups *g, int group)
{
    return &g->plan.order[g->plan.first[group]];
}

/* Returns the number of workers in the step of 'group', or in its next one if
 * none is running. */
static int
count_active(const struct groups *g, int group)
{
    int n = 0;

    for (int k = 0; k < g->plan.n[group]; k++) {
        const struct group_worker *w = &g->workers[members(g, group)[k]];

        n += !w->paused || (w->resuming && !g->groups[group].running);
    }
    return n;
}

static void
start_step(struct groups *g, int group)
{
    g->groups[group] =
        (struct group){ .running = true, .began = g->n_applied };
    for (int k = 0; k < g->plan.n[group]; k++) {
        struct group_worker *w = &g->workers[members(g, group)[k]];

        w->arrived = false;
        w->paused = w->paused && !w->resuming;
        w->resuming = false;
    }
}

/* Starts a step of each idle group with active workers, unless that could make
 * the gradient of a running group staler than 'max_age' even if all other
 * running groups finish first. */
static void
start_idle_groups(struct groups *g)
{
    uint64_t running = 0, oldest = UINT64_MAX;

    for (int i = 0; i < g->plan.n_groups; i++) {
        int n = count_active(g, i);
        uint64_t end = g->groups[i].began + n;

        if (g->groups[i].running) {
            running += n;
            oldest = end < oldest ? end : oldest;
        }
    }
    for (int i = 0; i < g->plan.n_groups; i++) {
        int n = count_active(g, i);
        uint64_t end = g->n_applied + n;

        if (!g->groups[i].running && n
            && (!running || end + running - oldest <= g->max_age)) {
            start_step(g, i);
            running += n;
            oldest = end < oldest ? end : oldest;
        }
    }
}

static void
apply_plan(struct groups *g)
{
    g->gathering = false;
    g->plan.number++;
    group_plan_copy(&g->plan, &g->next);
    memset(g->groups, 0, g->plan.n_workers * sizeof *g->groups);
    for (int i = 0; i < g->plan.n_workers; i++) {
        g->workers[i].n_reports = 0;
    }
    start_idle_groups(g);
}

static bool
have_reported(const struct groups *g)
{
    int enough = g->plan.number > 1 ? MORE_REPORTS : FIRST_REPORTS;

    for (int i = 0; i < g->plan.n_workers; i++) {
        if (g->workers[i].n_reports < enough) {
            return false;
        }
    }
    return true;
}

/* Decides whether to regroup: into more or other groups if the job is slow and
 * becomes clearly faster, into fewer if it is far from slow. */
static void
consider_regrouping(struct groups *g)
{
    double now;
    bool change;

    if (g->gathering || !have_reported(g)) {
        return;
    }
    now = group_plan_time(&g->plan, g->seconds);
    if (g->n_fixed) {
        group_plan_sort(&g->next, g->seconds);
        change = group_plan_time(&g->next, g->seconds) < now - MIN_GAIN;
    } else {
        group_plan_fit(&g->next, g->seconds, g->limit, TOLERANCE);
        change = now > 1 + TOLERANCE
                 && group_plan_time(&g->next, g->seconds) < now - MIN_GAIN;
        if (!change) {
            group_plan_fit(&g->next, g->seconds, g->limit, TOLERANCE / 2);
            change = g->next.n_groups < g->plan.n_groups
                     && group_plan_time(&g->next, g->seconds) <= 1 + TOLERANCE;
        }
    }
    if (change) {
        g->gathering = true;
        fprintf(stderr, "server: %d groups, %.2f of the time without delays\n",
                g->next.n_groups, group_plan_time(&g->next, g->seconds));
    }
}

/* Starts groups, or applies the next plan once no group is running. */
static void
proceed(struct groups *g)
{
    bool any = false;

    for (int i = 0; i < g->plan.n_groups; i++) {
        any = any || g->groups[i].running;
    }
    if (!g->gathering) {
        start_idle_groups(g);
    } else if (!any) {
        apply_plan(g);
    }
}

/* The gradient of 'group' is in the weights. */
static void
end_step(struct groups *g, int group)
{
    g->n_applied += count_active(g, group);
    g->groups[group].running = false;
    consider_regrouping(g);
    proceed(g);
}

/* Starts with the first plan, and with all workers active. */
static void
groups_start(struct sync *sync)
{
    struct groups *g = sync->own;

    for (int i = 0; i < g->plan.n_workers; i++) {
        g->workers[i].paused = g->workers[i].resuming = false;
    }
    group_plan_divide(&g->next, g->n_fixed ? g->n_fixed : 1);
    apply_plan(g);
    sync_state_post_all(sync, &(struct sync_message){
                                  .kind = SYNC_ROLE, .n = SYNC_ROLE_REPORTS });
}

static void
groups_init(struct sync *sync, const struct sync_spec *spec)
{
    struct groups *g = sync->own;
    int n = sync->config.n_workers;

    g->n_fixed = spec->groups;
    g->limit = g->most = spec->max_groups ? spec->max_groups : n;
    g->max_age = (uint64_t) spec->tau * n;
    group_plan_init(&g->plan, n);
    group_plan_init(&g->next, n);
    g->groups = allocate(n, sizeof *g->groups);
    g->seconds = allocate(n, sizeof *g->seconds);
}

static void
groups_uninit(struct sync *sync)
{
    struct groups *g = sync->own;

    group_plan_uninit(&g->plan);
    group_plan_uninit(&g->next);
    free(g->groups);
    free(g->seconds);
}

static char *
groups_message(struct sync *sync, int worker, const struct sync_message *m)
{
    struct groups *g = sync->own;

    if (m->kind != SYNC_REPORT || !(m->seconds > 0) || !isfinite(m->seconds)) {
        return message("message of kind %u; expected reports", m->kind);
    }
    g->seconds[worker] = g->seconds[worker]
                         ? (1 - NEW_PART) * g->seconds[worker]
                           + NEW_PART * m->seconds
                         : m->seconds;
    g->workers[worker].n_reports++;
    return NULL;
}

/* Once all active workers of 'group' have pushed, applies their mean gradient,
 * weighted by samples and scaled by n_active / n_workers.  A paused worker has
 * no samples. */
static void
update_if_all_have_arrived(struct sync *sync, int group)
{
    struct groups *g = sync->own;
    int n = g->plan.n[group];
    double part = (double) count_active(g, group) / sync->config.n_workers;
    uint64_t n_samples = 0;

    for (int i = 0; i < n; i++) {
        int worker = members(g, group)[i];

        if (!g->workers[worker].arrived && !g->workers[worker].paused) {
            return;
        }
        n_samples += sync->workers[worker].n_samples;
    }
    for (int i = 0; i < n && n_samples; i++) {
        const struct sync_worker *w = &sync->workers[members(g, group)[i]];

        if (w->n_samples) {
            sync_state_add(sync, w->gradient,
                           (double) w->n_samples / n_samples * part);
        }
    }
    sync_state_update(sync, 0, sync->config.n);
    sync->loss = sync_state_mean_loss(sync);
    end_step(g, group);
}

static char *
groups_take_push(struct sync *sync, int worker, uint64_t iteration,
                 uint32_t n_samples, float loss)
{
    struct groups *g = sync->own;
    struct sync_worker *w = &sync->workers[worker];
    struct group_worker *gw = &g->workers[worker];
    int group = g->plan.group[worker];

    if (sync->config.follows) {
        return message("groups: expected one server");
    }
    if (iteration != w->n_pushed || gw->arrived || gw->paused
        || !g->groups[group].running) {
        return sync_state_refuse(iteration, w->n_pushed);
    }
    w->n_pushed++;
    w->n_samples = n_samples;
    w->loss = loss;
    gw->arrived = true;
    update_if_all_have_arrived(sync, group);
    return NULL;
}

static bool
groups_worker_ready(const struct sync *sync, int worker, uint64_t *iteration,
                    float *loss)
{
    const struct groups *g = sync->own;
    const struct group_worker *gw = &g->workers[worker];

    *iteration = sync->workers[worker].n_pushed;
    *loss = sync->loss;
    return g->groups[g->plan.group[worker]].running && !gw->arrived
           && !gw->paused;
}

void
groups_limit(struct sync *sync, int n)
{
    struct groups *g = sync->own;

    g->limit = n < g->most ? n : g->most;
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
groups_counted(const struct sync *sync, int worker)
{
    return sync->workers[worker].n_pushed;
}

/* The inbox of the group's first worker, which is not used otherwise. */
float *
groups_inbox(struct sync *sync, int group)
{
    return sync_inbox(sync, *members(sync->own, group));
}

char *
groups_push(struct sync *sync, int group, uint32_t n_samples, float loss)
{
    struct groups *g = sync->own;
    int n = count_active(g, group), k = 0;

    if (!g->groups[group].running) {
        return message("mean of group %d, which waits", group);
    }
    for (int i = 0; i < g->plan.n[group]; i++) {
        int worker = members(g, group)[i];
        struct sync_worker *w = &sync->workers[worker];

        if (!g->workers[worker].paused) {
            w->n_pushed++;
            w->n_samples = shard_range(n_samples, k++, n).n;
            w->loss = loss;
        }
    }
    if (n_samples) {
        sync_state_apply(sync, groups_inbox(sync, group),
                         (double) n / sync->config.n_workers);
    }
    sync->loss = sync_state_mean_loss(sync);
    end_step(g, group);
    return NULL;
}

bool
groups_ready(const struct sync *sync, int group)
{
    const struct groups *g = sync->own;

    return g->groups[group].running;
}

static bool
any_has_arrived(const struct groups *g, int group)
{
    for (int i = 0; i < g->plan.n[group]; i++) {
        if (g->workers[members(g, group)[i]].arrived) {
            return true;
        }
    }
    return false;
}

char *
groups_pause_worker(struct sync *sync, int worker)
{
    struct groups *g = sync->own;
    struct group_worker *gw = &g->workers[worker];
    int group = g->plan.group[worker];
    bool running = g->groups[group].running;

    if ((gw->paused && !gw->resuming) || (running && gw->arrived)) {
        return message("pause of a worker that %s",
                       gw->paused ? "is paused" : "has pushed");
    }
    gw->paused = true;
    gw->resuming = false;
    sync->workers[worker].n_samples = 0;
    if (running && !count_active(g, group)) {
        g->groups[group].running = false;
        proceed(g);
    } else if (running && any_has_arrived(g, group)) {
        update_if_all_have_arrived(sync, group);
    }
    return NULL;
}

char *
groups_resume_worker(struct sync *sync, int worker)
{
    struct groups *g = sync->own;

    if (!g->workers[worker].paused) {
        return message("resumption of a worker that is not paused");
    }
    g->workers[worker].resuming = true;
    proceed(g);
    return NULL;
}

bool
groups_is_paused(const struct sync *sync, int worker)
{
    const struct groups *g = sync->own;

    return g->workers[worker].paused;
}

const struct sync_class sync_groups = {
    .name = "groups",
    .own_size = sizeof(struct groups),
    .per_worker = sizeof(struct group_worker),
    .asynchronous = true,
    .needs_messages = true,
    .init = groups_init,
    .uninit = groups_uninit,
    .start = groups_start,
    .push = groups_take_push,
    .ready = groups_worker_ready,
    .message = groups_message,
};
