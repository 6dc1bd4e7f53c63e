/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/whose.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/identify/cgroup-id.h"
#include "wire/cgroup-path.h"
#include "agent/identify/held-sockets.h"
#include "agent/identify/port-rule.h"
#include "agent/identify/process-jobs.h"
#include "agent/identify/process.h"
#include "agent/identify/registry.h"
#include "hash.h"
#include "openvswitch/hmap.h"
#include "timeval.h"
#include "util.h"

#define MAX_GROUPS 4096
#define MAX_WORKERS 64          /* Looked at out of turn. */
#define GAP_SHARE 40            /* A cgroup is looked into for a 40th of the
                                 * time at most, */
#define MIN_GAP_MS 5            /* and not again before that. */
#define MAX_GAP_MS 5000
#define CHECK_MS 2000           /* Between looks at processes that were no
                                 * job's, */
#define CHECK_SHARE 200         /* or a 200th of the time. */
#define SCAN_MS 150             /* For a look at the tree. */

/* A cgroup that has sockets and is no job's, or not only one job's.  The
 * kernel never reuses an id, and where it is stays as it is. */
struct group {
    struct hmap_node node;      /* In struct whose's 'groups', by 'id'. */
    uint64_t id;
    char *path;                 /* NULL if it cannot be looked into. */
    long long looked;           /* When its processes were looked at last, */
    bool all;                   /* and the sockets of all of them. */
    long long next;             /* When they may be again. */
    long long next_check;       /* When to look at all of them again, as if
                                 * nothing was known. */
    bool works;                 /* One of them works for a job. */
    uint32_t strangers;         /* Hash of its processes, if none of them works
                                 * for a job and that will stay so; else 0. */
};

struct whose {
    struct registry *registry;
    struct cgroup_ids *ids;
    char *cgroup_root;          /* May be null. */
    const struct port_rule *ports;
    size_t n_ports;

    struct hmap groups;         /* Contains struct group. */
    struct process_jobs *processes;
    struct held_sockets *held;
    long long next_workers;     /* When look_at_workers() may be called. */
    bool needs_scan;
};

struct whose *
whose_create(const struct whose_config *config, struct registry *registry)
{
    struct whose *w = xzalloc(sizeof *w);

    w->registry = registry;
    w->ids = cgroup_ids_open(config->cgroup_mount);
    w->cgroup_root = nullable_xstrdup(config->cgroup_root);
    w->ports = config->ports;
    w->n_ports = config->n_ports;
    hmap_init(&w->groups);
    w->processes = process_jobs_create(registry, config->cgroup_root);
    w->held = held_sockets_create();
    return w;
}

/* Forgets everything, so that new evidence counts for what is there, too. */
void
whose_forget(struct whose *w)
{
    struct group *group;

    HMAP_FOR_EACH_POP (group, node, &w->groups) {
        free(group->path);
        free(group);
    }
    process_jobs_clear(w->processes);
    held_sockets_clear(w->held);
}

void
whose_destroy(struct whose *w)
{
    if (w) {
        whose_forget(w);
        hmap_destroy(&w->groups);
        process_jobs_destroy(w->processes);
        held_sockets_destroy(w->held);
        cgroup_ids_close(w->ids);
        free(w->cgroup_root);
        free(w);
    }
}

static struct group *
find_group(const struct whose *w, uint64_t id)
{
    struct group *group;

    HMAP_FOR_EACH_WITH_HASH (group, node, hash_uint64(id), &w->groups) {
        if (group->id == id) {
            return group;
        }
    }
    return NULL;
}

/* 'path' is taken over. */
static struct group *
add_group(struct whose *w, uint64_t id, char *path)
{
    struct group *group;

    if (hmap_count(&w->groups) >= MAX_GROUPS) {
        whose_forget(w);
    }
    group = xzalloc(sizeof *group);
    group->id = id;
    group->path = path;
    group->looked = group->next = group->next_check = LLONG_MIN;
    hmap_insert(&w->groups, &group->node, hash_uint64(id));
    return group;
}

/* Milliseconds until the next look of the kind that began at 'start'. */
static long long
gap_after(long long start)
{
    long long gap = (time_usec() - start) * GAP_SHARE / 1000;

    return MIN(MAX(gap, MIN_GAP_MS), MAX_GAP_MS);
}

/* Looks at the processes of 'group', and at the sockets of those that work for
 * a job, or of all of them. */
static void
look_into(struct whose *w, struct group *group, bool all, long long now)
{
    long long start = time_usec();
    pid_t *pids;
    size_t n = processes_of_cgroup(group->path, &pids);
    uint32_t hash = hash_bytes(pids, n * sizeof *pids, n) | 1;
    bool check = now >= group->next_check;
    bool forever = true;

    if (all || check || hash != group->strangers) {
        held_sockets_begin(w->held);
        group->works = false;
        for (size_t i = 0; i < n; i++) {
            bool works = process_jobs_look(w->processes, pids[i], check, now,
                                           &forever);

            if (works || all) {
                process_walk_sockets(pids[i], held_sockets_see, w->held);
            }
            group->works = group->works || works;
        }
        if (group->works || all) {
            held_sockets_end(w->held, pids, n);
        }
        group->strangers = forever && !group->works ? hash : 0;
    }
    free(pids);
    group->looked = now;
    group->all = all;
    group->next = now + (check ? MIN_GAP_MS : gap_after(start));
    if (check) {
        long long cost = (time_usec() - start) * CHECK_SHARE / 1000;

        group->next_check = now + MAX(cost, CHECK_MS);
    }
}

/* Looks at the sockets of processes that are known to work for jobs, which
 * takes less than to look at all processes of a cgroup. */
static void
look_at_workers(struct whose *w, long long now)
{
    long long start = time_usec();
    const struct claim *claim;
    int left = MAX_WORKERS;

    held_sockets_begin(w->held);
    HMAP_FOR_EACH (claim, node, &w->registry->claims) {
        if (claim->what.kind == CLAIMS_PROCESS && left-- > 0) {
            process_walk_sockets(claim->what.id, held_sockets_see,
                                 w->held);
        }
    }
    w->next_workers = now + gap_after(start);
}

/* Adds the cgroup 'id' at 'path' to those of a job if it is in the tree of
 * jobs or below a cgroup that is claimed. */
static void
place_cgroup(struct whose *w, uint64_t id, const char *path, long long now)
{
    const struct claim *claim;
    bool below;
    char *job = w->cgroup_root ? cgroup_job_at(w->cgroup_root, path, &below)
                : NULL;

    if (job) {
        char *dir = xasprintf("%s/%s", w->cgroup_root, job);
        struct stat s;

        if (!stat(dir, &s)) {
            registry_see(w->registry, job, s.st_ino, false, now);
        }
        registry_see(w->registry, job, id, below, now);
        free(dir);
        free(job);
    }
    HMAP_FOR_EACH (claim, node, &w->registry->claims) {
        size_t n = claim->path ? strlen(claim->path) : 0;

        if (claim->what.kind == CLAIMS_CGROUP && n
            && !strncmp(path, claim->path, n)
            && (path[n] == '/' || !path[n])) {
            registry_see_claimed(w->registry, claim, id);
        }
    }
}

/* Finds out where the cgroup 'id' is. */
static struct group *
meet_cgroup(struct whose *w, uint64_t id, long long now)
{
    char *path;
    int error = cgroup_ids_path(w->ids, id, &path);

    if (!error) {
        place_cgroup(w, id, path, now);
    } else if (error != ENOENT && error != ESTALE) {
        w->needs_scan = true;
    }
    return add_group(w, id, path);
}

bool
whose_needs_scan(struct whose *w)
{
    bool needs_scan = w->needs_scan;

    w->needs_scan = false;
    return needs_scan;
}

/* What the socket's process, cgroup and namespace are claimed for. */
static struct job *
ask_registry(const struct whose *w, const struct whose_socket *socket,
             enum claim_source *sourcep)
{
    const struct sock_info *info = socket->info;
    struct claim_what whats[3];
    size_t n = 0;
    pid_t pid = info->inode ? held_sockets_holder(w->held, info->inode) : 0;

    if (pid) {
        whats[n++] = (struct claim_what) { CLAIMS_PROCESS, pid };
    }
    whats[n++] = (struct claim_what) { CLAIMS_CGROUP, info->cgroup };
    whats[n++] = (struct claim_what) { CLAIMS_NETNS, socket->netns };
    return registry_owner(w->registry, whats, n, sourcep);
}

/* Looks into the socket's cgroup unless that was done since it was there.
 * Returns false if it has to wait, until '*whenp'. */
static bool
look_if_needed(struct whose *w, const struct whose_socket *socket,
               struct group *group, bool all, long long now,
               long long *whenp)
{
    if (!group->path
        || (group->looked >= socket->since && (group->all || !all))) {
        return true;
    }
    if (group->works && now >= w->next_workers) {
        look_at_workers(w, now);
        if (held_sockets_holder(w->held, socket->info->inode)) {
            return true;
        }
    }
    if (now < group->next) {
        *whenp = group->next;
        return false;
    }
    look_into(w, group, all, now);
    return true;
}

/* The process that has a socket on a port of a job's works for it, and so do
 * all its sockets. */
static void
claim_by_port(struct whose *w, const struct whose_socket *socket,
              const struct port_rule *rule, long long now)
{
    pid_t pid = held_sockets_holder(w->held, socket->info->inode);
    struct process process;

    if (pid && !process_jobs_claim(w->processes, pid)
        && process_look(pid, &process)) {
        process_jobs_add(w->processes, &process, CLAIM_PORT, rule->job, now);
    }
}

/* Says whose 'socket' is: stores its job in '*jobp', or when to ask again in
 * '*whenp'. */
enum whose_answer
whose_decide(struct whose *w, const struct whose_socket *socket,
             long long now, struct job **jobp, long long *whenp)
{
    uint64_t cgroup = socket->info->cgroup;
    const struct port_rule *rule;
    enum claim_source source;
    struct group *group;

    *jobp = ask_registry(w, socket, &source);
    if (*jobp && (source <= CLAIM_LAUNCHER
                  || !w->registry->n_told_processes)) {
        return WHOSE_JOB;
    }
    group = cgroup ? find_group(w, cgroup) : NULL;
    if (!group && cgroup) {
        group = meet_cgroup(w, cgroup, now);
        if (w->needs_scan) {
            *whenp = now + SCAN_MS;
            return WHOSE_LATER;
        }
    }
    rule = port_rules_match(w->ports, w->n_ports, &socket->info->key);
    if (group && !look_if_needed(w, socket, group, rule != NULL, now,
                                 whenp)) {
        return WHOSE_LATER;
    }
    if (rule) {
        claim_by_port(w, socket, rule, now);
    }
    *jobp = ask_registry(w, socket, &source);
    return *jobp ? WHOSE_JOB : WHOSE_NOBODY;
}
