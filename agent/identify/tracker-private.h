/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRACKER_PRIVATE_H
#define TRACKER_PRIVATE_H 1

/* A tracker, for its own files: tracker.c runs it, tracker-cgroups.c looks for
 * jobs and their namespaces, tracker-sockets.c for the jobs' sockets. */

#include "agent/identify/flow-table.h"
#include "agent/identify/miss-filter.h"
#include "agent/identify/netns-views.h"
#include "agent/identify/registry.h"
#include "agent/identify/tracker.h"

struct cgroup_ids;
struct whose;

struct tracker {
    const struct tracker_class *class;
    void *aux;
    char *cgroup_mount;         /* May be null, and then also: */
    char *cgroup_root;
    char **netns;               /* Of /run/netns. */
    size_t n_netns;

    struct registry registry;
    struct flow_table flows;
    struct miss_filter misses;
    struct netns_views views;
    struct cgroup_ids *ids;
    struct whose *whose;
    const struct netns_view *view;      /* Of the dump that is going on. */

    long long now;              /* Of the run that is going on. */
    long long next_tick;
    long long next_dump;
    long long hurry_at;         /* Look at the cgroups; LLONG_MAX if nobody is
                                 * in a hurry. */
    long long last_scan;
    long long last_views;       /* When namespaces were looked for. */
    struct tracker_stats stats;
};

/* The cgroups, and what is claimed. */
void tracker_see_job(struct tracker *, const char *name);
void tracker_look_at_cgroups(struct tracker *);
void tracker_look_for_namespaces(struct tracker *);
void tracker_remove_empty_jobs(struct tracker *);

/* The sockets; 'all': of every cgroup, not only of those of jobs. */
void tracker_dump(struct tracker *, bool all);
void tracker_look_at_miss(struct tracker *, const struct shim_flow_key *,
                          long long since);
void tracker_flow_gone(const struct flow *, void *tracker);

#endif /* agent/identify/tracker-private.h */
