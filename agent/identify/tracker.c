/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/tracker.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/identify/cgroup-id.h"
#include "agent/identify/cgroup.h"
#include "agent/identify/process.h"
#include "agent/identify/tracker-private.h"
#include "agent/identify/whose.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(tracker);

#define TICK_MS 1000            /* Between looks at the cgroups that nobody
                                 * asked for, */
#define SCAN_GAP_MS 100         /* and least time between any. */

static void
job_begins(struct job *job, void *t_)
{
    struct tracker *t = t_;

    VLOG_INFO("%s: job is on this host", job->name);
    t->class->job_begin(job, t->aux);
}

struct tracker *
tracker_create(const struct tracker_config *config,
               const struct tracker_class *class, void *aux)
{
    struct whose_config whose = {
        .cgroup_mount = config->cgroup_mount,
        .cgroup_root = config->cgroup_root,
        .ports = config->ports,
        .n_ports = config->n_ports,
    };
    struct tracker *t = xzalloc(sizeof *t);

    t->class = class;
    t->aux = aux;
    t->cgroup_mount = nullable_xstrdup(config->cgroup_mount);
    t->cgroup_root = nullable_xstrdup(config->cgroup_root);
    t->n_netns = config->n_netns;
    t->netns = xcalloc(MAX(t->n_netns, 1), sizeof *t->netns);
    for (size_t i = 0; i < t->n_netns; i++) {
        t->netns[i] = xstrdup(config->netns[i]);
    }
    registry_init(&t->registry);
    t->registry.begin = job_begins;
    t->registry.aux = t;
    flow_table_init(&t->flows);
    miss_filter_init(&t->misses);
    netns_views_init(&t->views);
    t->ids = cgroup_ids_open(t->cgroup_mount);
    t->whose = whose_create(&whose, &t->registry);
    t->last_scan = t->last_views = LLONG_MIN / 2;

    /* Jobs may be running already. */
    t->now = time_msec();
    t->next_tick = t->now + TICK_MS;
    tracker_look_at_cgroups(t);
    tracker_dump(t, true);
    return t;
}

void
tracker_destroy(struct tracker *t)
{
    if (!t) {
        return;
    }
    flow_table_uninit(&t->flows);
    registry_uninit(&t->registry);
    miss_filter_uninit(&t->misses);
    netns_views_uninit(&t->views);
    whose_destroy(t->whose);
    cgroup_ids_close(t->ids);
    for (size_t i = 0; i < t->n_netns; i++) {
        free(t->netns[i]);
    }
    free(t->netns);
    free(t->cgroup_mount);
    free(t->cgroup_root);
    free(t);
}

const struct registry *
tracker_registry(const struct tracker *t)
{
    return &t->registry;
}

const struct flow_table *
tracker_flows(const struct tracker *t)
{
    return &t->flows;
}

const struct tracker_stats *
tracker_stats(const struct tracker *t)
{
    return &t->stats;
}

void
tracker_run(struct tracker *t)
{
    struct shim_flow_key key;
    long long since;

    t->now = time_msec();
    if (t->now >= t->next_tick) {
        t->next_tick = t->now + TICK_MS;
        tracker_look_at_cgroups(t);
        if (t->cgroup_root) {
            tracker_remove_empty_jobs(t);
        }
    } else if (t->now >= t->hurry_at) {
        tracker_look_at_cgroups(t);
    }
    if (t->now >= t->next_dump) {
        tracker_dump(t, false);
    }
    while (miss_filter_next(&t->misses, t->now, &key, &since)) {
        tracker_look_at_miss(t, &key, since);
    }
}

void
tracker_wait(struct tracker *t)
{
    long long due = miss_filter_due(&t->misses);

    if (due <= t->now) {
        poll_immediate_wake();
        return;
    }
    poll_timer_wait_until(MIN(MIN(t->next_tick, t->next_dump),
                              MIN(t->hurry_at, due)));
}

void
tracker_miss(struct tracker *t, const struct shim_flow_key *key)
{
    t->stats.n_misses++;
    miss_filter_report(&t->misses, key, time_msec());
}

void
tracker_hurry(struct tracker *t)
{
    long long now = time_msec();

    t->hurry_at = MIN(t->hurry_at, MAX(now, t->last_scan + SCAN_GAP_MS));
}

struct job *
tracker_register(struct tracker *t, const char *name)
{
    struct job *job = registry_find(&t->registry, name);

    t->now = time_msec();
    if (!job) {
        tracker_see_job(t, name);
        job = registry_find(&t->registry, name);
    }
    tracker_hurry(t);
    return job;
}

/* What is known of sockets may be different now. */
static void
reconsider(struct tracker *t)
{
    whose_forget(t->whose);
    miss_filter_clear(&t->misses);
    t->next_dump = t->now;
    tracker_hurry(t);
}

char *
tracker_claim(struct tracker *t, enum claim_source source, const char *name,
              const char *kind, const char *text, int64_t rung)
{
    struct claim_what what;
    struct process process;
    struct claim *claim;
    struct job *job;
    char *path;
    char *error = claim_what_parse(kind, text, t->cgroup_mount, &what, &path);

    if (error) {
        return error;
    }
    t->now = time_msec();
    job = registry_claim(&t->registry, source, name, &what, t->now);
    if (!job) {
        free(path);
        return xasprintf("%s: this host has %d jobs, no more are allowed",
                         name, REGISTRY_MAX_JOBS);
    }
    claim = registry_find_claim(&t->registry, source, &what);
    free(claim->path);
    claim->path = path;
    claim->born = what.kind == CLAIMS_PROCESS
                  && process_look(what.id, &process) ? process.born : 0;
    job->rung = rung >= 0 ? rung : job->rung;
    reconsider(t);
    return NULL;
}

/* Takes back what tracker_claim() noted. */
char *
tracker_unclaim(struct tracker *t, enum claim_source source, const char *name,
                const char *kind, const char *text)
{
    struct claim_what what;
    char *path;
    char *error = claim_what_parse(kind, text, t->cgroup_mount, &what, &path);

    if (error) {
        return error;
    }
    free(path);
    if (!registry_unclaim(&t->registry, source, name, &what)) {
        return xasprintf("%s: %s does not claim this %s", name,
                         claim_source_name(source), kind);
    }
    t->now = time_msec();
    reconsider(t);
    return NULL;
}
