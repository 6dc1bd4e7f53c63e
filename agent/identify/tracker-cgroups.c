/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/tracker-private.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "agent/identify/cgroup-id.h"
#include "agent/identify/cgroup.h"
#include "agent/identify/process.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(tracker_cgroups);

#define PEEK_PROCESSES 4        /* Of a cgroup, whose namespaces are seen. */

static void
job_gone(struct job *job, void *t_)
{
    struct tracker *t = t_;

    VLOG_INFO("%s: job has left this host", job->name);
    flow_table_forget_job(&t->flows, job, tracker_flow_gone, t);
    t->class->job_end(job, t->aux);
}

static void
see_cgroup(const char *name, uint64_t id, bool below, void *t_)
{
    struct tracker *t = t_;

    registry_see(&t->registry, name, id, below, t->now);
}

/* Looks for the job called 'name' alone, and what is below it. */
void
tracker_see_job(struct tracker *t, const char *name)
{
    if (t->cgroup_root) {
        cgroup_see_job(t->cgroup_root, name, see_cgroup, t);
    }
}

/* For see_claimed_cgroup(). */
struct claim_scan {
    struct registry *registry;
    const struct claim *claim;
};

static void
see_claimed_cgroup(const char *name OVS_UNUSED, uint64_t id,
                   bool below OVS_UNUSED, void *scan_)
{
    const struct claim_scan *scan = scan_;

    registry_see_claimed(scan->registry, scan->claim, id);
}

/* True if what 'claim' claims is still there. */
static bool
claim_holds(const struct claim *claim)
{
    struct process process;
    struct stat s;

    if (claim->what.kind == CLAIMS_PROCESS) {
        return process_look(claim->what.id, &process)
               && (!claim->born || claim->born == process.born);
    }
    return !claim->path
           || (!stat(claim->path, &s) && s.st_ino == claim->what.id);
}

/* Drops the claims whose things are gone, and looks at the cgroups below
 * those that are claimed. */
static void
scan_claims(struct tracker *t)
{
    struct claim *claim;

    HMAP_FOR_EACH_SAFE (claim, node, &t->registry.claims) {
        struct claim_scan scan = { &t->registry, claim };

        if (!claim_holds(claim)) {
            registry_drop_claim(&t->registry, claim);
        } else if (claim->what.kind == CLAIMS_CGROUP && claim->path) {
            cgroup_scan_below(claim->path, see_claimed_cgroup, &scan);
        }
    }
}

/* Looks at the tree. */
static void
scan_cgroups(struct tracker *t)
{
    int error = 0;

    t->stats.n_scans++;
    t->last_scan = t->now;
    registry_begin(&t->registry);
    if (t->cgroup_root) {
        error = cgroup_scan(t->cgroup_root, see_cgroup, t);
    }
    if (error) {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 2);

        VLOG_WARN_RL(&rl, "%s: cannot read the cgroups of jobs (%s)",
                     t->cgroup_root, ovs_strerror(error));
        return;
    }
    scan_claims(t);
    registry_end(&t->registry, job_gone, t);
}

/* Removes the jobs that have had no process for a while, with their
 * cgroups. */
void
tracker_remove_empty_jobs(struct tracker *t)
{
    struct job *job;

    HMAP_FOR_EACH_SAFE (job, node, &t->registry.jobs) {
        if (!job->cgroup) {
            continue;           /* Lives as long as its claims. */
        }
        if (cgroup_is_populated(t->cgroup_root, job->name)) {
            job->empty_since = 0;
        } else if (!job->empty_since) {
            job->empty_since = t->now;
        } else if (t->now - job->empty_since >= TRACKER_EMPTY_MS
                   && !cgroup_remove(t->cgroup_root, job->name)
                   && !job->n_claims) {
            job_gone(job, t);
            registry_remove(&t->registry, job);
        }
    }
}

/* Wants the namespaces that processes of the cgroup 'id' are in. */
static void
want_namespaces_of(struct tracker *t, uint64_t id)
{
    pid_t *pids;
    char *path;
    size_t n;

    if (cgroup_ids_path(t->ids, id, &path)) {
        return;
    }
    n = processes_of_cgroup(path, &pids);
    for (size_t i = 0; i < MIN(n, PEEK_PROCESSES); i++) {
        char ns[64];

        snprintf(ns, sizeof ns, "/proc/%d/ns/net", (int) pids[i]);
        netns_views_want(&t->views, ns);
    }
    free(pids);
    free(path);
}

/* Looks for the namespaces that have a job's process or are claimed. */
void
tracker_look_for_namespaces(struct tracker *t)
{
    const struct registry_cgroup *c;
    const struct claim *claim;

    t->last_views = t->now;
    netns_views_begin(&t->views);
    for (size_t i = 0; i < t->n_netns; i++) {
        char *path = xasprintf("/run/netns/%s", t->netns[i]);

        netns_views_want(&t->views, path);
        free(path);
    }
    HMAP_FOR_EACH (claim, node, &t->registry.claims) {
        if (claim->what.kind == CLAIMS_NETNS && claim->path) {
            netns_views_want(&t->views, claim->path);
        } else if (claim->what.kind == CLAIMS_PROCESS) {
            char ns[64];

            snprintf(ns, sizeof ns, "/proc/%"PRIu64"/ns/net", claim->what.id);
            netns_views_want(&t->views, ns);
        }
    }
    HMAP_FOR_EACH (c, node, &t->registry.cgroups) {
        want_namespaces_of(t, c->id);
    }
    netns_views_end(&t->views);
}

void
tracker_look_at_cgroups(struct tracker *t)
{
    t->hurry_at = LLONG_MAX;
    scan_cgroups(t);
    tracker_look_for_namespaces(t);
}
