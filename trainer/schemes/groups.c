/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/schemes/groups-private.h"

#include <math.h>

#include "base/memory.h"
#include "trainer/schemes/shard.h"
#include "trainer/schemes/sync-state.h"

/* The first groups, of workers that all take part. */
static void
begin_anew(struct sync *sync)
{
    struct groups *g = sync->own;

    groups_turns_begin(g);
    for (int i = 0; i < g->plan.n_workers; i++) {
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

    groups_turns_init(sync->own, config->n_workers, spec ? spec->groups : 0,
                      spec && spec->tau ? spec->tau : 8);
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
        groups_turns_uninit(sync->own);
    }
    sync_state_destroy(sync);
}

static char *
groups_message(struct sync *sync, int worker, const struct sync_message *m)
{
    if (m->kind != SYNC_REPORT || !(m->seconds > 0)
        || !isfinite(m->seconds)) {
        return message("message of kind %u, reports are allowed", m->kind);
    }
    groups_turns_report(sync->own, worker, m->seconds);
    return NULL;
}

/* The mean of those of 'group' that have pushed, as their part of a batch,
 * makes the next weights once nobody is waited for.  One that rests has no
 * samples. */
static void
update_if_all_have_arrived(struct sync *sync, int group)
{
    struct groups *g = sync->own;
    int n = g->plan.n[group];
    double part = (double) groups_n_active(g, group) / sync->config.n_workers;
    uint64_t n_samples = 0;

    for (int i = 0; i < n; i++) {
        int worker = groups_members(g, group)[i];

        if (!g->arrived[worker] && !g->rests[worker]) {
            return;
        }
        n_samples += sync->workers[worker].n_samples;
    }
    sync_state_clear(sync);
    for (int i = 0; i < n && n_samples; i++) {
        int worker = groups_members(g, group)[i];
        const struct sync_worker *w = &sync->workers[worker];

        if (w->n_samples) {
            sync_state_add(sync, w->gradient,
                           (double) w->n_samples / n_samples * part);
        }
    }
    sync_state_update(sync);
    sync->loss = sync_state_mean_loss(sync);
    groups_turns_go_on(g, group);
}

/* Whether somebody of 'group' has: of those who have not rested since. */
static bool
has_pushed(const struct groups *g, int group)
{
    for (int i = 0; i < g->plan.n[group]; i++) {
        if (g->arrived[groups_members(g, group)[i]]) {
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

    return sync_state_inbox(sync, *groups_members(g, group));
}

char *
groups_push(struct sync *sync, int group, uint32_t n_samples, float loss)
{
    struct groups *g = sync->own;
    int n = groups_n_active(g, group), k = 0;

    if (!g->groups[group].running) {
        return message("mean of group %d, which waits", group);
    }
    for (int i = 0; i < g->plan.n[group]; i++) {
        int worker = groups_members(g, group)[i];
        struct sync_worker *w = &sync->workers[worker];

        if (!g->rests[worker]) {
            w->n_pushed++;
            w->n_samples = shard_range(n_samples, k++, n).n;
            w->loss = loss;
        }
    }
    if (n_samples) {
        sync_state_clear(sync);
        sync_state_add(sync, sync->workers[*groups_members(g, group)].gradient,
                       (double) n / sync->config.n_workers);
        sync_state_update(sync);
    }
    sync->loss = sync_state_mean_loss(sync);
    groups_turns_go_on(g, group);
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
    if (running && !groups_n_active(g, group)) {
        g->groups[group].running = false;
        groups_turns_settle(g);
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
    groups_turns_settle(g);
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
