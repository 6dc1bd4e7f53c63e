/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/whose.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/identify/cgroup-id.h"
#include "agent/identify/cgroup-path.h"
#include "agent/identify/environ.h"
#include "agent/identify/process.h"
#include "agent/identify/registry.h"
#include "hash.h"
#include "openvswitch/hmap.h"
#include "openvswitch/vlog.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(whose);

#define MAX_GROUPS 4096
#define MAX_ANCESTORS 64
#define MAX_WORKERS 64          /* Looked at out of turn. */
#define GAP_SHARE 40            /* A cgroup is looked into for a 40th of the
                                 * time at most, */
#define MIN_GAP_MS 5            /* and not again before that. */
#define MAX_GAP_MS 5000
#define SCAN_MS 150             /* For a look at the tree. */

/* A process may be given another program, with another environment, soon
 * after it began. */
#define YOUNG_TICKS 500

/* A cgroup that has sockets and is no job's, or not only one job's.  The
 * kernel never reuses an id, and where it is stays as it is. */
struct group {
    struct hmap_node node;      /* In struct whose's 'groups', by 'id'. */
    uint64_t id;
    char *path;                 /* NULL if it cannot be looked into. */
    long long looked;           /* When its processes were looked at last, */
    bool all;                   /* and the sockets of all of them. */
    long long next;             /* When they may be again. */
    bool works;                 /* One of them works for a job. */
    uint32_t strangers;         /* Hash of its processes, if none of them works
                                 * for a job and that will stay so; else 0. */
};

/* A process whose environment was read. */
struct reader {
    struct hmap_node node;      /* In struct whose's 'readers', by 'pid'. */
    pid_t pid;
    uint64_t born;
    bool settled;               /* It was no longer young. */
};

/* A socket that a process has open. */
struct held {
    struct hmap_node node;      /* In struct whose's 'held', by 'inode'. */
    uint32_t inode;
    pid_t pid;
    unsigned int look;          /* That saw it last. */
};

struct whose {
    struct registry *registry;
    struct cgroup_ids *ids;
    char *cgroup_root;          /* May be null. */
    const struct port_rule *ports;
    size_t n_ports;

    struct hmap groups;         /* Contains struct group. */
    struct hmap readers;        /* Contains struct reader. */
    struct hmap held;           /* Contains struct held. */
    unsigned int look;          /* Number of the last look into a cgroup. */
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
    hmap_init(&w->readers);
    hmap_init(&w->held);
    return w;
}

/* Forgets everything, so that new evidence counts for what is there, too. */
void
whose_forget(struct whose *w)
{
    struct reader *reader;
    struct group *group;
    struct held *held;

    HMAP_FOR_EACH_POP (group, node, &w->groups) {
        free(group->path);
        free(group);
    }
    HMAP_FOR_EACH_POP (reader, node, &w->readers) {
        free(reader);
    }
    HMAP_FOR_EACH_POP (held, node, &w->held) {
        free(held);
    }
}

void
whose_destroy(struct whose *w)
{
    if (w) {
        whose_forget(w);
        hmap_destroy(&w->groups);
        hmap_destroy(&w->readers);
        hmap_destroy(&w->held);
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
    group->looked = group->next = LLONG_MIN;
    hmap_insert(&w->groups, &group->node, hash_uint64(id));
    return group;
}

/* The process that has the socket 'inode' open, 0 if none is known. */
static pid_t
holder(const struct whose *w, uint32_t inode)
{
    const struct held *held;

    HMAP_FOR_EACH_WITH_HASH (held, node, hash_int(inode, 0), &w->held) {
        if (held->inode == inode) {
            return held->pid;
        }
    }
    return 0;
}

/* A socket may be open in several processes, which are related; the first one
 * keeps it while it has it. */
static void
hold(uint32_t inode, pid_t pid, void *w_)
{
    struct whose *w = w_;
    struct held *held;

    HMAP_FOR_EACH_WITH_HASH (held, node, hash_int(inode, 0), &w->held) {
        if (held->inode == inode) {
            if (held->look != w->look) {
                held->pid = pid;
            }
            held->look = w->look;
            return;
        }
    }
    held = xmalloc(sizeof *held);
    held->inode = inode;
    held->pid = pid;
    held->look = w->look;
    hmap_insert(&w->held, &held->node, hash_int(inode, 0));
}

static const struct claim *
claim_of_process(const struct whose *w, pid_t pid)
{
    struct claim_what what = { CLAIMS_PROCESS, pid };

    for (enum claim_source s = 0; s < N_CLAIM_SOURCES; s++) {
        const struct claim *claim = registry_find_claim(w->registry, s,
                                                        &what);

        if (claim) {
            return claim;
        }
    }
    return NULL;
}

static void
claim_process(struct whose *w, const struct process *process,
              enum claim_source source, const char *name, long long now)
{
    struct claim_what what = { CLAIMS_PROCESS, process->pid };

    if (registry_claim(w->registry, source, name, &what, now)) {
        registry_find_claim(w->registry, source, &what)->born = process->born;
    }
}

/* What is claimed of a process counts for those that it started. */
static void
inherit(struct whose *w, const struct process *process, long long now)
{
    struct process ancestor = *process;

    for (int i = 0; i < MAX_ANCESTORS && ancestor.parent > 1; i++) {
        const struct claim *claim;

        if (!process_look(ancestor.parent, &ancestor)) {
            return;
        }
        claim = claim_of_process(w, ancestor.pid);
        if (claim && (!claim->born || claim->born == ancestor.born)) {
            char *name = xstrdup(claim->job->name);

            claim_process(w, process, claim->source, name, now);
            free(name);
            return;
        }
    }
}

/* The user of the first process in the cgroup of 'job' in the tree. */
static bool
user_in_tree(const struct whose *w, const struct job *job, uid_t *uidp)
{
    char *path = xasprintf("%s/%s", w->cgroup_root, job->name);
    pid_t *pids;
    size_t n = processes_of_cgroup(path, &pids);
    bool found = n && process_user(pids[0], uidp);

    free(pids);
    free(path);
    return found;
}

/* Anybody can write anything into an environment.  True if 'process' may say
 * there that it works for the job called 'name': a new one, or one of the same
 * user. */
static bool
may_join(const struct whose *w, const struct process *process,
         const char *name)
{
    const struct job *job = registry_find(w->registry, name);
    uid_t uid, owner;

    if (!process_user(process->pid, &uid)) {
        return false;
    }
    if (!job || uid == 0) {
        return true;
    }
    if (job->has_owner) {
        return uid == job->owner;
    }
    return job->cgroup && user_in_tree(w, job, &owner) && uid == owner;
}

static void
join(struct whose *w, const struct process *process, const char *name,
     long long now)
{
    struct job *job;

    claim_process(w, process, CLAIM_ENVIRONMENT, name, now);
    job = registry_find(w->registry, name);
    if (job && !job->has_owner) {
        job->has_owner = process_user(process->pid, &job->owner);
    }
}

/* Reads the environment of 'process', once it has its last program. */
static void
read_environ(struct whose *w, const struct process *process, long long now)
{
    const char *framework;
    size_t size;
    char *text = process_environ(process->pid, &size);
    char *name = text ? environ_job(text, size, &framework) : NULL;

    if (name && may_join(w, process, name)) {
        VLOG_DBG("process %d: %s by the environment of %s",
                 (int) process->pid, name, framework);
        join(w, process, name, now);
    } else if (name) {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

        VLOG_WARN_RL(&rl, "%s: process %d of another user has it in its "
                     "environment, which does not count", name,
                     (int) process->pid);
    }
    free(name);
    free(text);
}

static struct reader *
find_or_add_reader(struct whose *w, pid_t pid)
{
    struct reader *reader;

    HMAP_FOR_EACH_WITH_HASH (reader, node, hash_int(pid, 0), &w->readers) {
        if (reader->pid == pid) {
            return reader;
        }
    }
    reader = xzalloc(sizeof *reader);
    reader->pid = pid;
    hmap_insert(&w->readers, &reader->node, hash_int(pid, 0));
    return reader;
}

/* Clock ticks since the boot. */
static uint64_t
ticks_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_BOOTTIME, &ts);
    return ts.tv_sec * 100 + ts.tv_nsec / 10000000;
}

/* Finds out for whom 'pid' works.  Returns true if it is for a job, otherwise
 * clears '*foreverp' unless that will stay so. */
static bool
look_at_process(struct whose *w, pid_t pid, long long now, bool *foreverp)
{
    struct reader *reader;
    struct process process;
    const struct claim *claim;

    if (!process_look(pid, &process)) {
        *foreverp = false;
        return false;
    }
    reader = find_or_add_reader(w, pid);
    if (reader->born != process.born || !reader->settled) {
        reader->born = process.born;
        reader->settled = ticks_now() > process.born + YOUNG_TICKS;
        read_environ(w, &process, now);
        inherit(w, &process, now);
    }
    *foreverp = *foreverp && reader->settled;
    claim = claim_of_process(w, pid);
    return claim && (!claim->born || claim->born == process.born);
}

/* Forgets the sockets that processes no longer had open when they were looked
 * at. */
static void
sweep(struct whose *w, const pid_t *pids, size_t n)
{
    struct hmap looked = HMAP_INITIALIZER(&looked);
    struct reader *marks = xcalloc(MAX(n, 1), sizeof *marks);
    struct held *held;

    for (size_t i = 0; i < n; i++) {
        marks[i].pid = pids[i];
        hmap_insert(&looked, &marks[i].node, hash_int(pids[i], 0));
    }
    HMAP_FOR_EACH_SAFE (held, node, &w->held) {
        const struct reader *mark;

        if (held->look == w->look) {
            continue;
        }
        HMAP_FOR_EACH_WITH_HASH (mark, node, hash_int(held->pid, 0),
                                 &looked) {
            if (mark->pid == held->pid) {
                hmap_remove(&w->held, &held->node);
                free(held);
                break;
            }
        }
    }
    hmap_destroy(&looked);
    free(marks);
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
    bool forever = true;

    if (all || hash != group->strangers) {
        w->look++;
        group->works = false;
        for (size_t i = 0; i < n; i++) {
            bool works = look_at_process(w, pids[i], now, &forever);

            if (works || all) {
                process_walk_sockets(pids[i], hold, w);
            }
            group->works = group->works || works;
        }
        if (group->works || all) {
            sweep(w, pids, n);
        }
        group->strangers = forever && !group->works ? hash : 0;
    }
    free(pids);
    group->looked = now;
    group->all = all;
    group->next = now + gap_after(start);
}

/* Looks at the sockets of processes that are known to work for jobs, which
 * takes less than to look at all processes of a cgroup. */
static void
look_at_workers(struct whose *w, long long now)
{
    long long start = time_usec();
    const struct claim *claim;
    int left = MAX_WORKERS;

    w->look++;
    HMAP_FOR_EACH (claim, node, &w->registry->claims) {
        if (claim->what.kind == CLAIMS_PROCESS && left-- > 0) {
            process_walk_sockets(claim->what.id, hold, w);
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
    pid_t pid = info->inode ? holder(w, info->inode) : 0;

    if (pid) {
        whats[n++] = (struct claim_what) { CLAIMS_PROCESS, pid };
    }
    whats[n++] = (struct claim_what) { CLAIMS_CGROUP, info->cgroup };
    whats[n++] = (struct claim_what) { CLAIMS_NETNS, socket->netns };
    return registry_owner(w->registry, whats, n, sourcep);
}

static const struct port_rule *
match_ports(const struct whose *w, const struct shim_flow_key *key)
{
    uint16_t ports[] = { ntohs(key->local_port), ntohs(key->remote_port) };

    for (size_t i = 0; i < w->n_ports; i++) {
        for (size_t j = 0; j < ARRAY_SIZE(ports); j++) {
            if (ports[j] >= w->ports[i].first
                && ports[j] <= w->ports[i].last) {
                return &w->ports[i];
            }
        }
    }
    return NULL;
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
        if (holder(w, socket->info->inode)) {
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
    pid_t pid = holder(w, socket->info->inode);
    struct process process;

    if (pid && !claim_of_process(w, pid) && process_look(pid, &process)) {
        claim_process(w, &process, CLAIM_PORT, rule->job, now);
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
    rule = match_ports(w, &socket->info->key);
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

/* Reads "FIRST[-LAST]=COJOB/JOB" into '*rule'.  Returns NULL or a malloc()'d
 * message. */
char *
port_rule_parse(const char *text, struct port_rule *rule)
{
    const char *slash = strchr(text, '/');
    char cojob[32], job[32];
    int first, last, n = 0;

    if (sscanf(text, "%d-%d=%n", &first, &last, &n) != 2 || !n) {
        n = 0;
        last = sscanf(text, "%d=%n", &first, &n) == 1 && n ? first : -1;
    }
    if (!n || first < 1 || last < first || last > 65535) {
        return xasprintf("\"%.80s\" has no ports, such as 29500-29510=asha/t0 "
                         "is allowed", text);
    }
    if (slash) {
        ovs_strlcpy(cojob, text + n, MIN(sizeof cojob,
                                         (size_t) (slash - text - n) + 1));
        ovs_strlcpy(job, slash + 1, sizeof job);
    }
    if (!slash || slash - text - n > 31 || strlen(slash + 1) > 31
        || !cgroup_name_is_valid(cojob) || !cgroup_name_is_valid(job)) {
        return xasprintf("\"%.80s\" is not a job, COJOB/JOB, each of "
                         CGROUP_NAME_RULE, text + n);
    }
    rule->first = first;
    rule->last = last;
    snprintf(rule->job, sizeof rule->job, "%s/%s", cojob, job);
    return NULL;
}
