/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/attribution.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/identify/cgroup.h"
#include "agent/identify/process-jobs.h"
#include "agent/identify/process.h"
#include "agent/identify/registry.h"
#include "hash.h"
#include "openvswitch/hmap.h"
#include "timeval.h"
#include "util.h"

#define MAX_GROUPS 4096
#define MAX_JOB_PROCESSES 64    /* Largest number of known job processes
                                 * whose sockets are read before the whole
                                 * cgroup is inspected. */
#define GAP_SHARE 40            /* Inspections of a cgroup take at most
                                 * 1/GAP_SHARE of the time. */
#define MIN_GAP_MS 5            /* Minimum time between inspections of a
                                 * cgroup. */
#define MAX_GAP_MS 5000
#define CHECK_MS 2000           /* Minimum time between full inspections of
                                 * a cgroup without job processes. */
#define CHECK_SHARE 200         /* Full inspections take at most
                                 * 1/CHECK_SHARE of the time. */
#define SCAN_MS 150             /* Time that a requested scan takes at most. */

/* A cgroup with sockets that belongs to no job, or not to one job only.  The
 * kernel never reuses an id, and a cgroup never moves. */
struct group {
    struct hmap_node node;      /* In struct attribution's 'groups', by
                                 * 'id'. */
    uint64_t id;
    char *path;                 /* NULL if it cannot be read. */
    long long inspected;        /* Time of the last inspection of its
                                 * processes. */
    bool all;                   /* The last inspection read the sockets of
                                 * all of them. */
    long long next;             /* Earliest time of the next inspection. */
    long long next_check;       /* Time of the next full inspection, which
                                 * ignores the results of earlier ones. */
    bool has_job_process;       /* One of its processes belongs to a job. */
    uint32_t unattributed_pids_hash;    /* Hash of the process ids if none
                                         * of them belongs to a job and that
                                         * cannot change; else 0.  While the
                                         * hash is unchanged, the processes
                                         * are inspected again only at
                                         * 'next_check' or by a full
                                         * inspection. */
};

/* A socket and the process that has it open.  The kernel reports the sockets
 * of a process but not the process of a socket. */
struct owner {
    struct hmap_node node;      /* In struct attribution's 'owners', by
                                 * 'inode'. */
    uint32_t inode;
    pid_t pid;
    unsigned int inspection;    /* Number of the inspection that found it
                                 * last. */
};

struct attribution {
    struct attribution_config config;
    struct registry *registry;
    struct hmap groups;         /* Contains struct group. */
    struct process_jobs *processes;
    struct hmap owners;         /* Contains struct owner. */
    unsigned int n_inspections;
    long long next_job_processes;       /* Earliest next call of
                                         * inspect_job_processes(). */
    bool needs_scan;
};

struct attribution *
attribution_create(const struct attribution_config *config,
                   struct registry *registry)
{
    struct attribution *w = xzalloc(sizeof *w);

    w->config = *config;
    w->registry = registry;
    hmap_init(&w->groups);
    w->processes = process_jobs_create(registry, config->cgroup_root);
    hmap_init(&w->owners);
    return w;
}

/* Forgets all results, so that new claims apply to existing sockets too. */
void
attribution_clear(struct attribution *w)
{
    struct group *group;
    struct owner *owner;

    HMAP_FOR_EACH_POP (group, node, &w->groups) {
        free(group->path);
        free(group);
    }
    HMAP_FOR_EACH_POP (owner, node, &w->owners) {
        free(owner);
    }
    process_jobs_clear(w->processes);
}

void
attribution_destroy(struct attribution *w)
{
    if (w) {
        attribution_clear(w);
        hmap_destroy(&w->groups);
        hmap_destroy(&w->owners);
        process_jobs_destroy(w->processes);
        free(w);
    }
}

static struct group *
find_group(const struct attribution *w, uint64_t id)
{
    struct group *group;

    HMAP_FOR_EACH_WITH_HASH (group, node, hash_uint64(id), &w->groups) {
        if (group->id == id) {
            return group;
        }
    }
    return NULL;
}

/* Takes ownership of 'path'. */
static struct group *
add_group(struct attribution *w, uint64_t id, char *path)
{
    struct group *group;

    if (hmap_count(&w->groups) >= MAX_GROUPS) {
        attribution_clear(w);
    }
    group = xzalloc(sizeof *group);
    group->id = id;
    group->path = path;
    group->inspected = group->next = group->next_check = LLONG_MIN;
    hmap_insert(&w->groups, &group->node, hash_uint64(id));
    return group;
}

static struct owner *
find_owner(const struct attribution *w, uint32_t inode)
{
    struct owner *owner;

    HMAP_FOR_EACH_WITH_HASH (owner, node, hash_int(inode, 0), &w->owners) {
        if (owner->inode == inode) {
            return owner;
        }
    }
    return NULL;
}

/* Returns the process that has the socket 'inode' open, 0 if unknown. */
static pid_t
owner_pid(const struct attribution *w, uint32_t inode)
{
    const struct owner *owner = find_owner(w, inode);

    return owner ? owner->pid : 0;
}

/* A socket may be open in several related processes.  The first one stays its
 * owner while it has the socket open. */
static void
add_owner(uint32_t inode, pid_t pid, void *w_)
{
    struct attribution *w = w_;
    struct owner *owner = find_owner(w, inode);

    if (!owner) {
        owner = xzalloc(sizeof *owner);
        owner->inode = inode;
        hmap_insert(&w->owners, &owner->node, hash_int(inode, 0));
    }
    if (owner->inspection != w->n_inspections) {
        owner->inspection = w->n_inspections;
        owner->pid = pid;
    }
}

static int
compare_pids(const void *a_, const void *b_)
{
    const pid_t *a = a_, *b = b_;

    return *a < *b ? -1 : *a > *b;
}

/* Ends an inspection of the 'n' processes in 'pids', which it sorts: removes
 * their sockets that the inspection has not found. */
static void
remove_old_owners(struct attribution *w, pid_t *pids, size_t n)
{
    struct owner *owner;

    qsort(pids, n, sizeof *pids, compare_pids);
    HMAP_FOR_EACH_SAFE (owner, node, &w->owners) {
        if (owner->inspection != w->n_inspections
            && bsearch(&owner->pid, pids, n, sizeof *pids, compare_pids)) {
            hmap_remove(&w->owners, &owner->node);
            free(owner);
        }
    }
}

/* Returns the time in ms until the next inspection, after one that began at
 * 'start' (us). */
static long long
gap_after(long long start)
{
    long long gap = (time_usec() - start) * GAP_SHARE / 1000;

    return MIN(MAX(gap, MIN_GAP_MS), MAX_GAP_MS);
}

/* Inspects the processes of 'group', and reads the sockets of those that
 * belong to a job, or of all of them if 'all'. */
static void
inspect_cgroup(struct attribution *w, struct group *group, bool all,
               long long now)
{
    long long start = time_usec();
    pid_t *pids;
    size_t n = processes_of_cgroup(group->path, &pids);
    uint32_t hash = hash_bytes(pids, n * sizeof *pids, n) | 1;
    bool check = now >= group->next_check;
    bool forever = true;

    if (all || check || hash != group->unattributed_pids_hash) {
        w->n_inspections++;
        group->has_job_process = false;
        for (size_t i = 0; i < n; i++) {
            bool works = process_jobs_look(w->processes, pids[i], check, now,
                                           &forever);

            if (works || all) {
                process_walk_sockets(pids[i], add_owner, w);
            }
            group->has_job_process = group->has_job_process || works;
        }
        if (n && (group->has_job_process || all)) {
            remove_old_owners(w, pids, n);
        }
        group->unattributed_pids_hash =
            forever && !group->has_job_process ? hash : 0;
    }
    free(pids);
    group->inspected = now;
    group->all = all;
    group->next = now + (check ? MIN_GAP_MS : gap_after(start));
    if (check) {
        long long cost = (time_usec() - start) * CHECK_SHARE / 1000;

        group->next_check = now + MAX(cost, CHECK_MS);
    }
}

/* Reads the sockets of known job processes, which is faster than an inspection
 * of a whole cgroup. */
static void
inspect_job_processes(struct attribution *w, long long now)
{
    long long start = time_usec();
    const struct claim *claim;
    int left = MAX_JOB_PROCESSES;

    w->n_inspections++;
    HMAP_FOR_EACH (claim, node, &w->registry->claims) {
        if (claim->what.kind == CLAIMS_PROCESS && left-- > 0) {
            process_walk_sockets(claim->what.id, add_owner, w);
        }
    }
    w->next_job_processes = now + gap_after(start);
}

/* Adds the cgroup 'id' at 'path' to the registry if it is in the tree of jobs
 * or below a claimed cgroup. */
static void
register_cgroup(struct attribution *w, uint64_t id, const char *path,
                long long now)
{
    const struct claim *claim;
    bool below;
    const char *root = w->config.cgroup_root;
    char *job = root ? cgroup_job_at(root, path, &below) : NULL;

    if (job) {
        char *dir = xasprintf("%s/%s", root, job);
        struct stat s;

        if (!stat(dir, &s)) {
            registry_see(w->registry, job, s.st_ino, false, s.st_uid, now);
        }
        registry_see(w->registry, job, id, below, 0, now);
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

/* Finds the path of the cgroup 'id' and adds a group for it if it belongs to
 * no job. */
static struct group *
find_cgroup(struct attribution *w, uint64_t id, long long now)
{
    char *path;
    int error = cgroup_path_of_id(w->config.mount_fd, id, &path);

    if (!error) {
        register_cgroup(w, id, path, now);
    } else if (error != ENOENT && error != ESTALE) {
        w->needs_scan = true;
    }
    return add_group(w, id, path);
}

bool
attribution_needs_scan(struct attribution *w)
{
    bool needs_scan = w->needs_scan;

    w->needs_scan = false;
    return needs_scan;
}

/* Returns the job for which the socket's process, cgroup or namespace is
 * claimed, or NULL. */
static struct job *
look_up_claims(const struct attribution *w,
               const struct attribution_socket *socket,
               enum claim_source *sourcep)
{
    const struct sock_info *info = socket->info;
    struct claim_what whats[3];
    size_t n = 0;
    pid_t pid = info->inode ? owner_pid(w, info->inode) : 0;

    if (pid) {
        whats[n++] = (struct claim_what) { CLAIMS_PROCESS, pid };
    }
    whats[n++] = (struct claim_what) { CLAIMS_CGROUP, info->cgroup };
    whats[n++] = (struct claim_what) { CLAIMS_NETNS, socket->netns };
    return registry_owner(w->registry, whats, n, sourcep);
}

/* Inspects the cgroup of the socket unless that was done while the socket
 * existed.  Returns false if the inspection must wait until '*whenp'. */
static bool
inspect_if_needed(struct attribution *w,
                  const struct attribution_socket *socket, struct group *group,
                  bool all, long long now, long long *whenp)
{
    if (!group->path
        || (group->inspected >= socket->since && (group->all || !all))) {
        return true;
    }
    if (group->has_job_process && now >= w->next_job_processes) {
        inspect_job_processes(w, now);
        if (owner_pid(w, socket->info->inode)) {
            return true;
        }
    }
    if (now < group->next) {
        *whenp = group->next;
        return false;
    }
    inspect_cgroup(w, group, all, now);
    return true;
}

/* Claims the process that has a socket on a port of a job, and thereby all its
 * sockets. */
static void
claim_by_port(struct attribution *w, const struct attribution_socket *socket,
              const struct port_rule *rule, long long now)
{
    pid_t pid = owner_pid(w, socket->info->inode);
    struct process process;

    if (pid && !process_jobs_claim(w->processes, pid)
        && process_read(pid, &process)) {
        process_jobs_add(w->processes, &process, CLAIM_PORT, rule->job, now);
    }
}

/* Attributes 'socket': stores its job in '*jobp', or the time of the next
 * attempt in '*whenp'. */
enum attribution_result
attribution_decide(struct attribution *w,
                   const struct attribution_socket *socket, long long now,
                   struct job **jobp, long long *whenp)
{
    uint64_t cgroup = socket->info->cgroup;
    const struct port_rule *rule;
    enum claim_source source;
    struct group *group;

    *jobp = look_up_claims(w, socket, &source);
    if (*jobp && (source <= CLAIM_LAUNCHER
                  || !w->registry->n_process_claims)) {
        return ATTRIBUTION_JOB;
    }
    group = cgroup ? find_group(w, cgroup) : NULL;
    if (!group && cgroup) {
        group = find_cgroup(w, cgroup, now);
        if (w->needs_scan) {
            *whenp = now + SCAN_MS;
            return ATTRIBUTION_RETRY;
        }
    }
    rule = port_rules_match(w->config.ports, w->config.n_ports,
                            &socket->info->key);
    if (group && !inspect_if_needed(w, socket, group, rule != NULL, now,
                                 whenp)) {
        return ATTRIBUTION_RETRY;
    }
    if (rule) {
        claim_by_port(w, socket, rule, now);
    }
    *jobp = look_up_claims(w, socket, &source);
    return *jobp ? ATTRIBUTION_JOB : ATTRIBUTION_NONE;
}
