/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/message.h"
#include "trainer/sync/sync-state.h"

#define TOLERANCE 0.2           /* Of time, over what nobody's delay takes. */
#define SETTLE 2                /* Reports of each worker before a change. */
#define NEW_PART 0.3            /* Of a report in the average. */

/* Workers of a group wait for each other; groups do not.  A group is known by
 * its first member in 'order'. */
struct groups {
    int n_groups;               /* Wanted: a power of 2. */
    bool fixed;                 /* Somebody else decided that. */
    int *order;                 /* Workers; a group's are side by side. */
    int *place;                 /* Of a worker in 'order'. */
    int *first, *n;             /* Of the group at a place. */
    int *level;                 /* How often it was split. */
    double *seconds;            /* Of each worker's steps, an average. */
    int *n_reports;             /* Since the last change. */
};

static void *
ints(int n)
{
    return allocate(n, sizeof(int));
}

static struct sync *
groups_create(const struct sync_config *config)
{
    struct sync *sync = sync_state_create(config, sizeof(struct groups));
    struct groups *g = sync->own;
    int n = config->n_workers;

    g->n_groups = config->spec && config->spec->groups
                  ? config->spec->groups : 1;
    g->fixed = g->n_groups > 1;
    g->order = ints(n);
    g->place = ints(n);
    g->first = ints(n);
    g->n = ints(n);
    g->level = ints(n);
    g->n_reports = ints(n);
    g->seconds = allocate(n, sizeof *g->seconds);
    for (int i = 0; i < n; i++) {
        g->order[i] = g->place[i] = i;
        g->n[i] = n;
        sync_state_post(sync, i, &(struct sync_message) {
            .kind = SYNC_ROLE, .n = SYNC_ROLE_REPORTS,
        });
    }
    return sync;
}

static void
groups_destroy(struct sync *sync)
{
    if (sync) {
        struct groups *g = sync->own;

        free(g->order);
        free(g->place);
        free(g->first);
        free(g->n);
        free(g->level);
        free(g->n_reports);
        free(g->seconds);
    }
    sync_state_destroy(sync);
}

static char *
groups_message(struct sync *sync, int worker, const struct sync_message *m)
{
    struct groups *g = sync->own;

    if (m->kind != SYNC_REPORT || !(m->seconds >= 0)
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

static int
compare_doubles(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return x < y ? -1 : x > y;
}

/* The time that the job takes with its groups as they are, in parts of the
 * time that it would take if all were as fast as the median worker. */
static double
relative_time(const struct sync *sync)
{
    const struct groups *g = sync->own;
    int n = sync->config.n_workers;
    double *sorted = allocate(n, sizeof *sorted), median, speed = 0;

    memcpy(sorted, g->seconds, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_doubles);
    median = sorted[n / 2];
    free(sorted);
    for (int at = 0; at < n; at += g->n[at]) {
        double slowest = 0;

        for (int k = at; k < at + g->n[at]; k++) {
            slowest = fmax(slowest, g->seconds[g->order[k]]);
        }
        speed += g->n[at] / slowest;
    }
    return n / median / speed;
}

/* Doubles the groups if that helps, once all have reported about those there
 * are. */
static void
control(struct sync *sync)
{
    struct groups *g = sync->own;
    int n = sync->config.n_workers, n_groups = 0;

    for (int at = 0; at < n; at += g->n[at]) {
        n_groups++;
    }
    for (int i = 0; i < n; i++) {
        if (g->n_reports[i] < SETTLE || !g->seconds[i]) {
            return;
        }
    }
    if (!g->fixed && n_groups == g->n_groups && 2 * g->n_groups <= n
        && relative_time(sync) > 1 + TOLERANCE) {
        g->n_groups *= 2;
        fprintf(stderr, "server: %d groups\n", g->n_groups);
        memset(g->n_reports, 0, n * sizeof *g->n_reports);
    }
}

static void
form(struct groups *g, int first, int n, int level)
{
    for (int at = first; at < first + n; at++) {
        g->first[at] = first;
        g->n[at] = n;
        g->level[at] = level;
        g->place[g->order[at]] = at;
    }
}

/* Splits the group from place 'first', whose members all wait, into its
 * faster and its slower half, so that slow ones are among themselves. */
static void
split(struct groups *g, int first)
{
    int n = g->n[first], level = g->level[first] + 1, faster = (n + 1) / 2;

    if (n < 2 || 1 << level > g->n_groups) {
        return;
    }
    for (int i = first + 1; i < first + n; i++) {
        for (int j = i; j > first && g->seconds[g->order[j - 1]]
                                     > g->seconds[g->order[j]]; j--) {
            int other = g->order[j];

            g->order[j] = g->order[j - 1];
            g->order[j - 1] = other;
        }
    }
    form(g, first, faster, level);
    form(g, first + faster, n - faster, level);
}

/* All of the group have pushed: its mean, as its part of a batch, makes the
 * next weights. */
static void
update(struct sync *sync, int first)
{
    struct groups *g = sync->own;
    int end = first + g->n[first];
    uint64_t n_samples = 0;

    for (int at = first; at < end; at++) {
        n_samples += sync->workers[g->order[at]].n_samples;
    }
    sync_state_clear(sync);
    for (int at = first; at < end && n_samples; at++) {
        const struct sync_worker *w = &sync->workers[g->order[at]];

        sync_state_add(sync, w->gradient,
                       (double) w->n_samples / n_samples * g->n[first]
                       / sync->config.n_workers);
    }
    sync_state_update(sync);
    sync->loss = sync_state_mean_loss(sync);
    control(sync);
    split(g, first);
}

/* True if no member of the group at 'first' has pushed less than 'worker'. */
static bool
all_have_pushed(const struct sync *sync, int worker)
{
    const struct groups *g = sync->own;
    int first = g->first[g->place[worker]];

    for (int at = first; at < first + g->n[first]; at++) {
        if (sync->workers[g->order[at]].n_pushed
            < sync->workers[worker].n_pushed) {
            return false;
        }
    }
    return true;
}

static char *
groups_push(struct sync *sync, int worker, uint64_t iteration,
            uint32_t n_samples, float loss)
{
    const struct groups *g = sync->own;
    struct sync_worker *w = &sync->workers[worker];

    if (sync->config.follows) {
        return message("groups: one server is allowed");
    }
    if (iteration != w->n_pushed || !all_have_pushed(sync, worker)) {
        return sync_state_refuse(iteration, w->n_pushed);
    }
    w->n_pushed++;
    w->n_samples = n_samples;
    w->loss = loss;
    if (all_have_pushed(sync, worker)) {
        update(sync, g->first[g->place[worker]]);
    }
    return NULL;
}

static bool
groups_ready(const struct sync *sync, int worker, uint64_t *iteration,
             float *loss)
{
    *iteration = sync->workers[worker].n_pushed;
    *loss = sync->loss;
    return all_have_pushed(sync, worker);
}

const struct sync_class sync_groups = {
    .name = "groups",
    .help = "workers of a group wait for each other, groups do not",
    .create = groups_create,
    .destroy = groups_destroy,
    .weights = sync_state_weights,
    .inbox = sync_state_inbox,
    .push = groups_push,
    .ready = groups_ready,
    .message = groups_message,
    .take = sync_state_take,
};
