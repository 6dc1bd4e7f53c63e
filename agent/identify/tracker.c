/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/tracker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/identify/attribution.h"
#include "agent/identify/bpf/identity.h"
#include "agent/identify/cgroup.h"
#include "agent/identify/flow-table.h"
#include "agent/identify/kernel-claims.h"
#include "agent/identify/miss-filter.h"
#include "agent/identify/netns-views.h"
#include "agent/identify/process-jobs.h"
#include "agent/identify/process.h"
#include "agent/identify/questions.h"
#include "agent/identify/registry.h"
#include "agent/identify/sock-diag.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-put.h"

struct tracker {
    struct tracker_config config;
    const struct tracker_class *class;
    void *aux;
    int mount_fd;               /* Mount of cgroup v2, opened, or -1. */

    struct registry registry;
    struct flow_table flows;
    struct miss_filter misses;
    struct netns_views views;
    struct attribution *attribution;
    struct kernel_claims *claims;   /* NULL without identity. */
    struct process_jobs *processes; /* NULL without identity. */
    struct questions *questions;    /* NULL without identity. */
    uint64_t began; /* When the kernel's programs were there: clock
                     * ticks since boot. */
    const struct netns_view *view;      /* View of the dump in progress. */

    long long now;              /* time_msec() of the current run. */
    long long next_tick;
    long long next_dump;
    long long next_scan;        /* Next requested scan of the cgroups;
                                 * LLONG_MAX if none is requested. */
    long long last_scan;
    long long last_views;       /* Last update of the namespaces. */

    uint64_t n_dumps;           /* Dumps of sockets; all namespaces count as
                                 * one. */
    uint64_t n_failed_dumps;
    uint64_t n_lookups;         /* Lookups of single sockets. */
    uint64_t n_scans;           /* Scans of the cgroup tree. */
    uint64_t n_misses;          /* Calls of tracker_miss(). */
};

static void update_namespaces(struct tracker *);
static void restart_attribution(struct tracker *);

VLOG_DEFINE_THIS_MODULE(tracker_sockets);

#define DUMP_GAP_MS 500         /* Minimum time between dumps of the
                                 * sockets; at least DUMP_SHARE times the
                                 * duration of a dump. */
#define DUMP_SHARE 100
#define VIEWS_GAP_MS 100        /* Minimum time between updates of the
                                 * namespaces. */

static void
on_flow_end(const struct flow *flow, void *t_)
{
    struct tracker *t = t_;

    t->class->flow_end(&flow->key, t->aux);
}

/* Attributes a socket, and adds its flow if it belongs to a job.  Returns
 * ATTRIBUTION_RETRY if that is not possible yet, and stores the time of the
 * next attempt in '*whenp'. */
static enum attribution_result
attribute_socket(struct tracker *t, const struct sock_info *info,
                 uint64_t netns, long long since, long long *whenp)
{
    struct attribution_socket socket = { info, netns, since };
    struct job *job;
    enum attribution_result answer =
        attribution_decide(t->attribution, &socket, t->now, &job, whenp);

    if (answer == ATTRIBUTION_JOB
        && flow_table_see(&t->flows, &info->key, job, info->cgroup, t->now)) {
        t->class->flow_begin(&info->key, job, t->aux);
    }
    if (attribution_needs_scan(t->attribution)) {
        tracker_request_scan(t);
    }
    return answer;
}

static void
handle_socket(const struct sock_info *info, void *t_)
{
    struct tracker *t = t_;
    long long when;

    if (info->cgroup
        && attribute_socket(t, info, t->view->inode, t->now, &when)
           == ATTRIBUTION_RETRY) {
        miss_filter_report(&t->misses, &info->key, t->now);
    }
}

/* Stores the cgroups with sockets of jobs in 'cgroups'.  Returns their number,
 * or more than SOCK_DIAG_MAX_CGROUPS if there are too many. */
static size_t
cgroups_of_jobs(const struct tracker *t,
                uint64_t cgroups[SOCK_DIAG_MAX_CGROUPS])
{
    const struct registry_cgroup *c;
    const struct flow *flow;
    uint64_t last = 0;
    size_t n = 0;

    HMAP_FOR_EACH (c, node, &t->registry.cgroups) {
        if (n >= SOCK_DIAG_MAX_CGROUPS) {
            return n + 1;
        }
        cgroups[n++] = c->id;
    }
    HMAP_FOR_EACH (flow, node, &t->flows.flows) {
        size_t i = 0;

        if (flow->cgroup == last) {
            continue;
        }
        last = flow->cgroup;
        while (i < n && cgroups[i] != flow->cgroup) {
            i++;
        }
        if (i >= n) {
            if (n >= SOCK_DIAG_MAX_CGROUPS) {
                return n + 1;
            }
            cgroups[n++] = flow->cgroup;
        }
    }
    return n;
}

static int
dump_view(struct tracker *t, struct netns_view *view,
          const uint64_t *cgroups, size_t n)
{
    int error = view->sd ? 0 : ENOTCONN;

    if (!error) {
        t->view = view;
        error = sock_diag_dump(view->sd, cgroups, n, handle_socket, t);
    }
    if (error) {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

        VLOG_WARN_RL(&rl, "cannot read the sockets, trying again (%s)",
                     ovs_strerror(error));
        sock_diag_close(view->sd);
        view->sd = NULL;
        view->wanted = false;
    }
    return error;
}

/* Dumps the sockets in cgroups of jobs, or all sockets.  The time of the next
 * dump depends on the duration of this one. */
static void
dump_sockets(struct tracker *t, bool all)
{
    long long start = time_usec();
    uint64_t cgroups[SOCK_DIAG_MAX_CGROUPS];
    size_t n = all ? 0 : cgroups_of_jobs(t, cgroups);
    long long cost_ms;
    int error = 0;

    if (n || all) {
        t->n_dumps++;
        flow_table_begin(&t->flows);
        for (size_t i = 0; i < t->views.n; i++) {
            int view_error = dump_view(t, &t->views.views[i], cgroups, n);

            error = view_error ? view_error : error;
        }
        if (!error) {
            flow_table_end(&t->flows, t->now, on_flow_end, t);
        } else {
            t->n_failed_dumps++;
        }
    }
    cost_ms = (time_usec() - start) / 1000;
    t->next_dump = t->now + MAX(DUMP_GAP_MS, cost_ms * DUMP_SHARE);
}

/* Looks up the socket with 'key' in each namespace. */
static int
find_socket(struct tracker *t, const struct shim_flow_key *key,
            struct sock_info *info, uint64_t *netnsp)
{
    for (size_t i = 0; i < t->views.n; i++) {
        struct netns_view *view = &t->views.views[i];

        t->n_lookups++;
        if (view->sd && !sock_diag_find(view->sd, key, info) && info->cgroup) {
            *netnsp = view->inode;
            return 0;
        }
    }
    return ENOENT;
}

void
tracker_walk_sockets(struct tracker *t, sock_diag_func *see, void *aux)
{
    struct sock_diag *sd = t->views.views[0].sd;
    uint64_t cgroups[SOCK_DIAG_MAX_CGROUPS];
    size_t n = cgroups_of_jobs(t, cgroups);

    if (sd && n) {
        sock_diag_dump(sd, cgroups, n, see, aux);
    }
}

int
tracker_tcp_info(struct tracker *t, const struct shim_flow_key *key,
                 void *tcp_info, size_t *sizep)
{
    for (size_t i = 0; i < t->views.n; i++) {
        struct sock_diag *sd = t->views.views[i].sd;

        if (sd && !sock_diag_tcp_info(sd, key, tcp_info, sizep)) {
            return 0;
        }
    }
    return ENOENT;
}

static void
look_up_miss(struct tracker *t, const struct shim_flow_key *key,
             long long since)
{
    struct sock_info info;
    uint64_t netns;
    long long when;

    if (key->protocol != IPPROTO_TCP) {
        miss_filter_quiet(&t->misses, key, t->now + MISS_NO_JOB_MS);
        return;
    }
    if (find_socket(t, key, &info, &netns)) {
        if (t->now - t->last_views >= VIEWS_GAP_MS) {
            update_namespaces(t);
        }
        miss_filter_retry(&t->misses, key, t->now);
        return;
    }
    switch (attribute_socket(t, &info, netns, since, &when)) {
    case ATTRIBUTION_JOB:
        miss_filter_resolve(&t->misses, key);
        break;
    case ATTRIBUTION_NONE:
        miss_filter_quiet(&t->misses, key, t->now + MISS_NO_JOB_MS);
        break;
    case ATTRIBUTION_RETRY:
        miss_filter_defer(&t->misses, key, when);
        break;
    }
}

#define PEEK_PROCESSES 4        /* Processes per cgroup whose namespaces are
                                 * added. */

static void
on_job_end(struct job *job, void *t_)
{
    struct tracker *t = t_;

    VLOG_INFO("%s: job has left this host", job->name);
    flow_table_forget_job(&t->flows, job, on_flow_end, t);
    t->class->job_end(job, t->aux);
}

static void
see_cgroup(const char *name, uint64_t id, bool below, uid_t uid, void *t_)
{
    struct tracker *t = t_;

    registry_see(&t->registry, name, id, below, uid, t->now);
}

/* Argument of see_claimed_cgroup(). */
struct claim_scan {
    struct registry *registry;
    const struct claim *claim;
};

static void
see_claimed_cgroup(const char *name OVS_UNUSED, uint64_t id,
                   bool below OVS_UNUSED, uid_t uid OVS_UNUSED, void *scan_)
{
    const struct claim_scan *scan = scan_;

    registry_see_claimed(scan->registry, scan->claim, id);
}

/* Returns true if the process, cgroup or namespace of 'claim' still exists. */
static bool
claim_holds(const struct claim *claim)
{
    struct process process;
    struct stat s;

    if (claim->what.kind == CLAIMS_PROCESS) {
        return process_read(claim->what.id, &process)
               && (!claim->born || claim->born == process.born);
    }
    return !claim->path
           || (!stat(claim->path, &s) && s.st_ino == claim->what.id);
}

/* Drops the claims of things that no longer exist, and scans the cgroups below
 * claimed ones. */
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

/* Finds the users of jobs whose cgroups root has created, unless their
 * launcher has named them.  The first processes may still be root's. */
static void
find_users(struct tracker *t)
{
    struct job *job;

    HMAP_FOR_EACH (job, node, &t->registry.jobs) {
        char *path;
        pid_t *pids;
        uid_t uid;
        size_t n;

        if (!job->cgroup || (job->has_uid && job->uid
                             && job->uid_source <= CLAIM_CGROUP)) {
            continue;
        }
        path = xasprintf("%s/%s", t->config.cgroup_root, job->name);
        n = processes_of_cgroup(path, &pids);
        if (processes_user(pids, n, &uid)) {
            registry_set_uid(&t->registry, job, CLAIM_CGROUP, uid);
        }
        free(pids);
        free(path);
    }
}

/* Scans the tree of jobs and the claimed cgroups. */
static void
scan_cgroups(struct tracker *t)
{
    int error = 0;

    t->n_scans++;
    t->last_scan = t->now;
    registry_begin(&t->registry);
    if (t->config.cgroup_root) {
        error = cgroup_scan(t->config.cgroup_root, see_cgroup, t);
    }
    if (error) {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 2);

        VLOG_WARN_RL(&rl, "%s: cannot read the cgroups of jobs (%s)",
                     t->config.cgroup_root, ovs_strerror(error));
        return;
    }
    scan_claims(t);
    find_users(t);
    registry_end(&t->registry, on_job_end, t);
}

/* Removes jobs that have had no process for TRACKER_EMPTY_MS, and their
 * cgroups. */
static void
remove_empty_jobs(struct tracker *t)
{
    struct job *job;

    HMAP_FOR_EACH_SAFE (job, node, &t->registry.jobs) {
        if (!job->cgroup) {
            continue;           /* The job exists as long as its claims. */
        }
        if (cgroup_is_populated(t->config.cgroup_root, job->name)) {
            job->empty_since = 0;
        } else if (!job->empty_since) {
            job->empty_since = t->now;
        } else if (t->now - job->empty_since >= TRACKER_EMPTY_MS
                   && !cgroup_remove(t->config.cgroup_root, job->name)
                   && !job->n_claims) {
            on_job_end(job, t);
            registry_remove(&t->registry, job);
        }
    }
}

/* Adds the namespaces of processes in the cgroup 'id'. */
static void
add_namespaces_of(struct tracker *t, uint64_t id)
{
    pid_t *pids;
    char *path;
    size_t n;

    if (cgroup_path_of_id(t->mount_fd, id, &path)) {
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

/* Updates the views to the namespaces of job processes and of claims. */
static void
update_namespaces(struct tracker *t)
{
    const struct registry_cgroup *c;
    const struct claim *claim;

    t->last_views = t->now;
    netns_views_begin(&t->views);
    for (size_t i = 0; i < t->config.n_netns; i++) {
        char *path = xasprintf("/run/netns/%s", t->config.netns[i]);

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
        add_namespaces_of(t, c->id);
    }
    netns_views_end(&t->views);
}

static void
scan_all_cgroups(struct tracker *t)
{
    t->next_scan = LLONG_MAX;
    scan_cgroups(t);
    if (t->claims) {
        kernel_claims_touch(t->claims);
    } else {
        update_namespaces(t);
    }
}

#define TICK_MS 1000            /* Time between scans that were not
                                 * requested. */
#define SCAN_GAP_MS 100         /* Minimum time between scans. */

static void
job_begins(struct job *job, void *t_)
{
    struct tracker *t = t_;

    VLOG_INFO("%s: job is on this host", job->name);
    t->class->job_begin(job, t->aux);
    if (t->claims) {
        kernel_claims_touch(t->claims);
    }
}

static void
job_changes(struct job *job, void *t_)
{
    struct tracker *t = t_;

    if (t->class->job_changed) {
        t->class->job_changed(job, t->aux);
    }
}

static bool
job_owner(const char *name, uid_t *uidp, void *t_)
{
    struct tracker *t = t_;

    return t->class->job_owner && t->class->job_owner(name, uidp, t->aux);
}

/* The flows of processes that have lost their claim must leave the job's slot
 * at once; those that are still the job's return with the next dump. */
static void
end_squatters(struct job *job, void *t_)
{
    struct tracker *t = t_;

    VLOG_WARN("%s: processes of another user had its name, they have lost it",
              job->name);
    flow_table_forget_job(&t->flows, job, on_flow_end, t);
    restart_attribution(t);
}

static uint16_t
slot_of(const char *name, void *t_)
{
    struct tracker *t = t_;

    return t->class->job_slot(name, t->aux);
}

static void
set_ports(struct tracker *t)
{
    uint16_t *rules = xcalloc(UINT16_MAX + 1, sizeof *rules);

    for (size_t i = t->config.n_ports; i-- > 0;) {
        const struct port_rule *rule = &t->config.ports[i];

        for (int port = rule->first; port <= rule->last; port++) {
            rules[port] = i + 1;
        }
    }
    identity_set_ports(t->config.identity, rules);
    free(rules);
}

/* Opens what answers the kernel, and asks about all processes: their sockets
 * the kernel did not see being made. */
static void
open_kernel(struct tracker *t)
{
    struct process self;

    t->claims =
        kernel_claims_create(t->config.identity, &t->registry, slot_of, t);
    t->processes = process_jobs_create(&t->registry, t->config.cgroup_root);
    t->questions = questions_create(t->processes);
    t->began = process_read(getpid(), &self) ? self.born : 0;
    set_ports(t);
    questions_add_all(t->questions);
    t->next_dump = LLONG_MAX;
}

/* A process with a socket on a port of a job is claimed for it, and thereby
 * all its sockets. */
static void
claim_by_port(struct tracker *t, pid_t pid, size_t rule)
{
    struct process process;

    if (rule <= t->config.n_ports && !process_jobs_claim(t->processes, pid)
        && process_read(pid, &process)) {
        process_jobs_add(t->processes, &process, CLAIM_PORT,
                         t->config.ports[rule - 1].job, t->now);
        kernel_claims_touch(t->claims);
    }
}

/* Finds the job of a cgroup that may be newer than the last scan. */
static void
find_job_of_cgroup(struct tracker *t, uint64_t id)
{
    const char *root = t->config.cgroup_root;
    char *path, *job;
    bool below;

    if (!root || cgroup_path_of_id(t->mount_fd, id, &path)) {
        return;
    }
    job = cgroup_job_at(root, path, &below);
    if (job && !registry_find(&t->registry, job)) {
        cgroup_see_job(root, job, see_cgroup, t);
        kernel_claims_touch(t->claims);
    }
    free(job);
    free(path);
}

static void
take_question(const struct identity_question *question, void *t_)
{
    struct tracker *t = t_;

    if (question->rule) {
        claim_by_port(t, question->tgid, question->rule);
    } else {
        find_job_of_cgroup(t, question->cgroup);
        questions_add(t->questions, question->tgid, question->uid);
    }
}

/* Tells the kernel about the sockets of processes of jobs that are older than
 * the agent. */
static void
adopt_sockets(struct tracker *t)
{
    struct claim *claim;

    HMAP_FOR_EACH (claim, node, &t->registry.claims) {
        if (claim->what.kind == CLAIMS_PROCESS && !claim->adopted) {
            claim->adopted = true;
            if (claim->born <= t->began) {
                identity_adopt(t->config.identity, claim->what.id);
            }
        }
    }
}

static void
run_kernel(struct tracker *t)
{
    identity_take_questions(t->config.identity, take_question, t);
    if (questions_run(t->questions, t->now)) {
        adopt_sockets(t);
        kernel_claims_touch(t->claims);
    }
    kernel_claims_run(t->claims, t->now);
}

struct tracker *
tracker_create(const struct tracker_config *config,
               const struct tracker_class *class, void *aux)
{
    struct attribution_config whose = {
        .cgroup_root = config->cgroup_root, .ports = config->ports,
        .n_ports = config->n_ports
    };
    struct tracker *t = xzalloc(sizeof *t);

    t->config = *config;
    t->class = class;
    t->aux = aux;
    registry_init(&t->registry);
    t->registry.begin = job_begins;
    t->registry.end = on_job_end;
    t->registry.changed = job_changes;
    t->registry.owner = job_owner;
    t->registry.lost = end_squatters;
    t->registry.aux = t;
    flow_table_init(&t->flows);
    miss_filter_init(&t->misses);
    netns_views_init(&t->views);
    t->mount_fd = whose.mount_fd = config->cgroup_mount
        ? open(config->cgroup_mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    t->attribution = attribution_create(&whose, &t->registry);
    t->last_scan = t->last_views = LLONG_MIN / 2;

    /* The first run finds running jobs. */
    t->now = time_msec();
    t->next_tick = t->now + TICK_MS;
    if (config->identity) {
        open_kernel(t);
    }
    scan_all_cgroups(t);
    if (!config->identity) {
        dump_sockets(t, true);
    }
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
    attribution_destroy(t->attribution);
    questions_destroy(t->questions);
    process_jobs_destroy(t->processes);
    kernel_claims_destroy(t->claims);
    if (t->mount_fd >= 0) {
        close(t->mount_fd);
    }
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

struct json *
tracker_to_json(const struct tracker *t)
{
    struct json *json = json_object_create();

    json_put_integer(json, "sockets", t->n_dumps);
    json_put_integer(json, "failed", t->n_failed_dumps);
    json_put_integer(json, "cgroups", t->n_scans);
    json_put_integer(json, "looks", t->n_lookups);
    json_put_integer(json, "misses", t->n_misses);
    return json;
}

void
tracker_run(struct tracker *t)
{
    struct shim_flow_key key;
    long long since;

    t->now = time_msec();
    if (t->now >= t->next_tick) {
        t->next_tick = t->now + TICK_MS;
        scan_all_cgroups(t);
        if (t->config.cgroup_root) {
            remove_empty_jobs(t);
        }
    } else if (t->now >= t->next_scan) {
        scan_all_cgroups(t);
    }
    if (t->now >= t->next_dump) {
        dump_sockets(t, false);
    }
    while (miss_filter_next(&t->misses, t->now, &key, &since)) {
        look_up_miss(t, &key, since);
    }
    if (t->claims) {
        run_kernel(t);
    }
}

void
tracker_wait(struct tracker *t)
{
    long long due = miss_filter_due(&t->misses);

    if (t->claims) {
        questions_wait(t->questions);
        kernel_claims_wait(t->claims);
    }
    if (due <= t->now) {
        poll_immediate_wake();
        return;
    }
    poll_timer_wait_until(MIN(MIN(t->next_tick, t->next_dump),
                              MIN(t->next_scan, due)));
}

void
tracker_miss(struct tracker *t, const struct shim_flow_key *key)
{
    t->n_misses++;
    if (t->claims) {
        return; /* The kernel knows. */
    }
    miss_filter_report(&t->misses, key, time_msec());
}

void
tracker_request_scan(struct tracker *t)
{
    long long now = time_msec();

    t->next_scan = MIN(t->next_scan, MAX(now, t->last_scan + SCAN_GAP_MS));
}

struct job *
tracker_register(struct tracker *t, const char *name)
{
    struct job *job = registry_find(&t->registry, name);

    t->now = time_msec();
    if (!job && t->config.cgroup_root) {
        cgroup_see_job(t->config.cgroup_root, name, see_cgroup, t);
        job = registry_find(&t->registry, name);
    }
    tracker_request_scan(t);
    return job;
}

/* Attributes all sockets again, after a change of the claims. */
static void
restart_attribution(struct tracker *t)
{
    tracker_request_scan(t);
    if (t->claims) {
        process_jobs_clear(t->processes);
        questions_again(t->questions);
        kernel_claims_touch(t->claims);
        return;
    }
    attribution_clear(t->attribution);
    miss_filter_clear(&t->misses);
    t->next_dump = t->now;
}

char *
tracker_claim(struct tracker *t, enum claim_source source, const char *name,
              const char *kind, const char *text, int64_t rung,
              const uid_t *uid)
{
    struct claim_what what;
    struct process process;
    struct claim *claim;
    struct job *job;
    char *path;
    char *error = claim_what_parse(kind, text, t->config.cgroup_mount, &what,
                                   &path);

    if (error) {
        return error;
    }
    t->now = time_msec();
    job = registry_claim(&t->registry, source, name, &what, uid, t->now);
    if (!job) {
        free(path);
        return xasprintf("%s: this host has too many jobs, %d registered "
                         "ones, %d of a user, are allowed", name,
                         REGISTRY_MAX_JOBS, REGISTRY_MAX_UID_JOBS);
    }
    claim = registry_find_claim(&t->registry, source, &what);
    free(claim->path);
    claim->path = path;
    claim->born = what.kind == CLAIMS_PROCESS
                  && process_read(what.id, &process) ? process.born : 0;
    job->rung = rung >= 0 ? rung : job->rung;
    restart_attribution(t);
    return NULL;
}

void
tracker_set_owner(struct tracker *t, struct job *job, uid_t uid)
{
    t->now = time_msec();
    registry_set_owner(&t->registry, job, uid);
}

/* Removes the claim that tracker_claim() has added.  Returns NULL or a
 * malloc()'d message. */
char *
tracker_unclaim(struct tracker *t, enum claim_source source, const char *name,
                const char *kind, const char *text)
{
    struct claim_what what;
    char *path;
    char *error = claim_what_parse(kind, text, t->config.cgroup_mount, &what,
                                   &path);

    if (error) {
        return error;
    }
    free(path);
    if (!registry_unclaim(&t->registry, source, name, &what)) {
        return xasprintf("%s: %s does not claim this %s", name,
                         claim_source_name(source), kind);
    }
    t->now = time_msec();
    restart_attribution(t);
    return NULL;
}
