/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/tracker.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/identify/cgroup.h"
#include "agent/identify/flow-table.h"
#include "agent/identify/miss-filter.h"
#include "agent/identify/process.h"
#include "agent/identify/registry.h"
#include "agent/identify/sock-diag.h"
#include "hash.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(tracker);

#define TICK_MS 1000            /* Between looks that nobody asked for. */
#define SCAN_GAP_MS 100         /* Least time between looks at the cgroups. */
#define MAX_FOREIGN 4096
#define MAX_DOUBTS 4096

/* A cgroup with sockets that is no job's.  Sockets never change their cgroup
 * and the kernel never reuses an id, so this stays true. */
struct foreign {
    struct hmap_node node;      /* In struct tracker's 'foreign', by 'id'. */
    uint64_t id;
};

/* A socket whose cgroup the last look at the tree did not have. */
struct doubt {
    struct shim_flow_key key;
    uint64_t cgroup;
};

struct view {
    char *netns;                /* NULL for our own. */
    struct sock_diag *sd;       /* NULL while the namespace is not there. */
};

struct tracker {
    const struct tracker_class *class;
    void *aux;
    char *cgroup_mount;         /* May be null, and then also: */
    char *cgroup_root;

    struct registry registry;
    struct flow_table flows;
    struct miss_filter misses;
    struct hmap foreign;        /* Contains struct foreign. */

    struct view *views;
    size_t n_views;

    struct doubt *doubts;       /* Of the dump that is going on. */
    size_t n_doubts, allocated_doubts;
    size_t n_new;               /* Flows that it found. */

    long long now;              /* Of the run that is going on. */
    long long next_tick;
    long long hurry_at;         /* LLONG_MAX if nobody is in a hurry. */
    long long last_scan;
    struct tracker_stats stats;
};

static void look(struct tracker *, bool scan);

struct tracker *
tracker_create(const struct tracker_config *config,
               const struct tracker_class *class, void *aux)
{
    struct tracker *t = xzalloc(sizeof *t);

    t->class = class;
    t->aux = aux;
    t->cgroup_mount = nullable_xstrdup(config->cgroup_mount);
    t->cgroup_root = nullable_xstrdup(config->cgroup_root);
    registry_init(&t->registry);
    flow_table_init(&t->flows);
    miss_filter_init(&t->misses);
    hmap_init(&t->foreign);
    t->n_views = config->n_netns + 1;
    t->views = xcalloc(t->n_views, sizeof *t->views);
    for (size_t i = 0; i < config->n_netns; i++) {
        t->views[i + 1].netns = xstrdup(config->netns[i]);
    }
    t->hurry_at = LLONG_MAX;
    t->last_scan = LLONG_MIN / 2;

    t->now = time_msec();
    t->next_tick = t->now + TICK_MS;
    look(t, true);
    return t;
}

static void
clear_foreign(struct tracker *t)
{
    struct foreign *f;

    HMAP_FOR_EACH_SAFE (f, node, &t->foreign) {
        hmap_remove(&t->foreign, &f->node);
        free(f);
    }
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
    clear_foreign(t);
    hmap_destroy(&t->foreign);
    for (size_t i = 0; i < t->n_views; i++) {
        free(t->views[i].netns);
        sock_diag_close(t->views[i].sd);
    }
    free(t->views);
    free(t->doubts);
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

static void
flow_gone(const struct flow *flow, void *t_)
{
    struct tracker *t = t_;

    t->class->flow_end(&flow->key, t->aux);
}

static void
job_gone(struct job *job, void *t_)
{
    struct tracker *t = t_;

    VLOG_INFO("%s: job has left this host", job->name);
    flow_table_forget_job(&t->flows, job, flow_gone, t);
    t->class->job_end(job, t->aux);
}

static void
see_cgroup(const char *name, uint64_t id, bool below, void *t_)
{
    struct tracker *t = t_;
    bool new = !below && !registry_find(&t->registry, name);
    struct job *job = registry_see(&t->registry, name, id, below, t->now);

    if (job && new) {
        VLOG_INFO("%s: job is on this host, cgroup %"PRIu64, name, id);
        t->class->job_begin(job, t->aux);
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

/* Looks at the tree.  Returns false if that failed. */
static bool
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
        return false;
    }
    scan_claims(t);
    registry_end(&t->registry, job_gone, t);
    return true;
}

/* Removes the jobs that have had no process for a while, with their
 * cgroups. */
static void
remove_empty_jobs(struct tracker *t)
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

static bool
is_foreign(const struct tracker *t, uint64_t id)
{
    struct foreign *f;

    HMAP_FOR_EACH_WITH_HASH (f, node, hash_uint64(id), &t->foreign) {
        if (f->id == id) {
            return true;
        }
    }
    return false;
}

static void
add_foreign(struct tracker *t, uint64_t id)
{
    struct foreign *f;

    if (is_foreign(t, id)) {
        return;
    }
    if (hmap_count(&t->foreign) >= MAX_FOREIGN) {
        clear_foreign(t);
    }
    f = xmalloc(sizeof *f);
    f->id = id;
    hmap_insert(&t->foreign, &f->node, hash_uint64(id));
}

static void
add_doubt(struct tracker *t, const struct shim_flow_key *key, uint64_t cgroup)
{
    if (t->n_doubts >= MAX_DOUBTS) {
        return;                 /* The next dump has the rest. */
    }
    if (t->n_doubts >= t->allocated_doubts) {
        t->doubts = x2nrealloc(t->doubts, &t->allocated_doubts,
                               sizeof *t->doubts);
    }
    t->doubts[t->n_doubts].key = *key;
    t->doubts[t->n_doubts++].cgroup = cgroup;
}

static void
see_flow(struct tracker *t, const struct shim_flow_key *key, struct job *job)
{
    miss_filter_resolve(&t->misses, key);
    if (flow_table_see(&t->flows, key, job, t->now)) {
        t->n_new++;
        t->class->flow_begin(key, job, t->aux);
    }
}

/* No job's, and its socket stays no job's. */
static void
pass_over(struct tracker *t, const struct shim_flow_key *key)
{
    miss_filter_quiet(&t->misses, key, t->now + MISS_NOBODYS_MS);
}

static void
see_socket(const struct shim_flow_key *key, uint64_t cgroup, void *t_)
{
    struct tracker *t = t_;
    struct job *job = registry_job_of_cgroup(&t->registry, cgroup);

    if (job) {
        see_flow(t, key, job);
    } else if (cgroup && is_foreign(t, cgroup)) {
        pass_over(t, key);
    } else if (cgroup) {
        add_doubt(t, key, cgroup);
    }
}

/* Puts the doubts off to the next look at the tree. */
static void
defer_doubts(struct tracker *t)
{
    if (t->n_doubts) {
        t->hurry_at = MIN(t->hurry_at, t->last_scan + SCAN_GAP_MS);
    }
    for (size_t i = 0; i < t->n_doubts; i++) {
        miss_filter_quiet(&t->misses, &t->doubts[i].key, t->hurry_at);
    }
}

/* Decides whose the sockets of unknown cgroups are, with a look at the tree
 * that is younger than the dump: what it does not have is no job's. */
static void
settle_doubts(struct tracker *t)
{
    for (size_t i = 0; i < t->n_doubts; i++) {
        const struct doubt *d = &t->doubts[i];
        struct job *job = registry_job_of_cgroup(&t->registry, d->cgroup);

        if (job) {
            see_flow(t, &d->key, job);
        } else {
            add_foreign(t, d->cgroup);
            pass_over(t, &d->key);
        }
    }
}

static int
dump_view(struct tracker *t, struct view *view)
{
    int error = 0;

    if (!view->sd) {
        error = sock_diag_open(view->netns, &view->sd);
    }
    if (!error) {
        error = sock_diag_dump(view->sd, see_socket, t);
    }
    if (error) {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

        VLOG_WARN_RL(&rl, "%s: cannot read the sockets, trying again (%s)",
                     view->netns ? view->netns : "own network namespace",
                     ovs_strerror(error));
        sock_diag_close(view->sd);
        view->sd = NULL;
    }
    return error;
}

/* Looks at the sockets, and then at the cgroups if 'scan' or if there is a
 * socket of an unknown one. */
static void
look(struct tracker *t, bool scan)
{
    int error = 0;

    t->hurry_at = LLONG_MAX;
    t->stats.n_dumps++;
    t->n_doubts = t->n_new = 0;
    miss_filter_begin(&t->misses);
    flow_table_begin(&t->flows);
    for (size_t i = 0; i < t->n_views; i++) {
        int view_error = dump_view(t, &t->views[i]);

        /* The flows of a namespace that is gone are gone, too. */
        if (view_error && view_error != ENOENT) {
            error = view_error;
        }
    }
    if ((scan || (t->n_doubts && t->now - t->last_scan >= SCAN_GAP_MS))
        && scan_cgroups(t)) {
        settle_doubts(t);
    } else {
        defer_doubts(t);
    }
    if (!error) {
        flow_table_end(&t->flows, t->now, flow_gone, t);
    } else {
        t->stats.n_failed_dumps++;
    }
    miss_filter_end(&t->misses, t->n_new, t->now);
}

void
tracker_run(struct tracker *t)
{
    t->now = time_msec();
    if (t->now >= t->next_tick) {
        t->next_tick = t->now + TICK_MS;
        look(t, true);
        remove_empty_jobs(t);
    } else if (t->now >= t->hurry_at) {
        look(t, true);
    } else if (t->now >= miss_filter_due(&t->misses)) {
        look(t, false);
    }
}

void
tracker_wait(struct tracker *t)
{
    poll_timer_wait_until(MIN(MIN(t->next_tick, t->hurry_at),
                              miss_filter_due(&t->misses)));
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
    if (!job && t->now - t->last_scan >= SCAN_GAP_MS) {
        scan_cgroups(t);
        job = registry_find(&t->registry, name);
    }
    tracker_hurry(t);
    return job;
}

/* Tells the class of 'job', which came by a claim. */
static void
begin_claimed_job(struct tracker *t, struct job *job,
                  enum claim_source source)
{
    VLOG_INFO("%s: job is on this host, claimed by %s", job->name,
              claim_source_name(source));
    t->class->job_begin(job, t->aux);
}

char *
tracker_claim(struct tracker *t, enum claim_source source, const char *name,
              const char *kind, const char *text, int64_t rung)
{
    bool new = !registry_find(&t->registry, name);
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
    if (new) {
        begin_claimed_job(t, job, source);
    }
    tracker_hurry(t);
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
    tracker_hurry(t);
    return NULL;
}
