/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/tracker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/identify/bpf/identity.h"
#include "agent/identify/connections.h"
#include "agent/identify/process.h"
#include "agent/identify/questions.h"
#include "agent/identify/registry.h"
#include "agent/launch/launch.h"
#include "base/clock.h"
#include "openvswitch/hmap.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-put.h"

VLOG_DEFINE_THIS_MODULE(tracker);

/* Claims of the kernel. */

#define TICK_NS 10000000ull /* Of the start of a process. */
#define MAX_ENDED 4096      /* Claims of processes that have ended. */

/* A claim that the kernel has. */
struct installed {
    struct hmap_node node; /* In struct kernel_claims's 'installed'. */
    struct claim_what what;
    uint64_t key; /* In the kernel's map. */
    char *job;
    struct identity_claim claim;
    bool is_new; /* The kernel does not have 'claim' yet. */
    bool seen;   /* Found by the current comparison with the registry. */
};

struct kernel_claims {
    struct identity *identity;
    struct registry *registry;
    struct hmap installed; /* Contains struct installed. */
    uint64_t began;        /* Start of the agent, as of a claim's process. */
    struct shares ended;   /* Claims of processes that have ended. */
    struct shares_user slots[IDENTITY_SLOTS];
    bool touched;
    bool changed;   /* By the current comparison. */
    long long next; /* Earliest next comparison. */
};

static enum identity_map
map_of(enum claim_kind kind)
{
    return kind == CLAIMS_PROCESS  ? IDENTITY_PROCESSES
           : kind == CLAIMS_CGROUP ? IDENTITY_CGROUPS
                                   : IDENTITY_NAMESPACES;
}

static uint16_t
slot_of(const struct kernel_claims *kc, const char *job)
{
    return kc->registry->class.slot(job, kc->registry->aux);
}

static struct installed *
find_installed(const struct kernel_claims *kc, const struct claim_what *what)
{
    struct installed *i;

    HMAP_FOR_EACH_WITH_HASH(i, node, claim_what_hash(what), &kc->installed)
    {
        if (claim_what_equals(&i->what, what)) {
            return i;
        }
    }
    return NULL;
}

static void
drop_ended(struct kernel_claims *kc, const struct installed *i)
{
    if (i->claim.ended) {
        shares_drop(&kc->ended, &kc->slots[i->claim.slot]);
    }
}

static void
forget(struct kernel_claims *kc, struct installed *i)
{
    drop_ended(kc, i);
    hmap_remove(&kc->installed, &i->node);
    free(i->job);
    free(i);
}

struct kernel_claims *
kernel_claims_create(struct identity *identity, struct registry *registry)
{
    struct kernel_claims *kc = xzalloc(sizeof *kc);
    struct process self;

    kc->began = process_read(getpid(), &self) ? self.born : 0;
    kc->identity = identity;
    kc->registry = registry;
    hmap_init(&kc->installed);
    kc->ended.size = MAX_ENDED;
    kc->touched = true;
    return kc;
}

void
kernel_claims_destroy(struct kernel_claims *kc)
{
    if (kc) {
        struct installed *i;

        HMAP_FOR_EACH_SAFE(i, node, &kc->installed)
        {
            forget(kc, i);
        }
        hmap_destroy(&kc->installed);
        free(kc);
    }
}

void
kernel_claims_touch(struct kernel_claims *kc)
{
    kc->touched = true;
}

/* Adds a thing, and returns it; NULL if its namespace is closed.  The sockets
 * of a process may be older than the programs that would have noted it. */
static struct installed *
add_installed(struct kernel_claims *kc, const struct claim *claim)
{
    uint64_t key = claim->what.id;
    struct installed *i;

    if (claim->what.kind == CLAIMS_NETNS
        && (!claim->path
            || identity_add_netns(kc->identity, claim->path, &key))) {
        return NULL;
    }
    if (claim->what.kind == CLAIMS_PROCESS && claim->born <= kc->began) {
        identity_adopt(kc->identity, key);
    }
    i = xzalloc(sizeof *i);
    i->what = claim->what;
    i->key = key;
    hmap_insert(&kc->installed, &i->node, claim_what_hash(&i->what));
    return i;
}

/* Notes the claim that decides about a thing. */
static void
see(struct kernel_claims *kc, const struct claim *claim)
{
    const char *job = claim->job->name;
    struct identity_claim new = { .born = claim->born * TICK_NS,
                                  .slot = slot_of(kc, job),
                                  .source = claim->source,
                                  .uid = claim->real };
    struct installed *i = find_installed(kc, &claim->what);

    if (!new.slot || (!i && !(i = add_installed(kc, claim)))) {
        return;
    }
    i->seen = true;
    if (memcmp(&i->claim, &new, sizeof new)) {
        drop_ended(kc, i);
        i->claim = new;
        free(i->job);
        i->job = xstrdup(job);
        i->is_new = true;
    }
    kc->changed = kc->changed || i->is_new;
}

/* Returns true if the claim of a process that has ended stays. */
static bool
keep(struct kernel_claims *kc, const struct installed *i)
{
    const struct job *job = registry_find(kc->registry, i->job);
    bool stays = shares_admit(&kc->ended, &kc->slots[i->claim.slot]);

    if (!stays && job && job->has_uid) {
        users_find(&kc->registry->users, job->uid, 0)->n_other++;
    }
    return stays;
}

/* Handles a claim that the registry no longer has. */
static void
lose(struct kernel_claims *kc, struct installed *i)
{
    struct process process;

    if (i->what.kind == CLAIMS_PROCESS && slot_of(kc, i->job) == i->claim.slot
        && (i->claim.ended
            || (!process_read(i->what.id, &process) && keep(kc, i)))) {
        if (!i->claim.ended) {
            i->claim.ended = clock_ns(CLOCK_BOOTTIME);
            i->is_new = kc->changed = true;
        }
        return;
    }
    identity_remove_claim(kc->identity, map_of(i->what.kind), i->key);
    kc->changed = true;
    forget(kc, i);
}

/* Writes the new claims of a map into the kernel, all at once.  Those that it
 * refuses stay new for the next comparison. */
static void
write_map(struct kernel_claims *kc, enum identity_map map)
{
    size_t n = 0, most = hmap_count(&kc->installed);
    struct installed **items = xcalloc(most, sizeof *items), *i;
    struct identity_claim *claims = xcalloc(most, sizeof *claims);
    uint64_t *keys = xcalloc(most, sizeof *keys);

    HMAP_FOR_EACH (i, node, &kc->installed) {
        if (i->is_new && map_of(i->what.kind) == map) {
            keys[n] = i->key;
            claims[n] = i->claim;
            items[n++] = i;
        }
    }
    for (size_t at = 0; at < n; at++) {
        size_t set;
        int error = identity_set_claims(kc->identity, map, &keys[at],
                                        &claims[at], n - at, &set);

        for (; set; set--) {
            items[at++]->is_new = false;
        }
        if (error) {
            static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

            VLOG_WARN_RL(&rl,
                         "%s: cannot tell the kernel what belongs to it "
                         "(%s)",
                         items[at]->job, ovs_strerror(error));
        }
    }
    free(items);
    free(claims);
    free(keys);
}

static void
compare(struct kernel_claims *kc)
{
    struct installed *i;
    const struct claim *claim;

    HMAP_FOR_EACH (i, node, &kc->installed) {
        i->seen = false;
    }
    HMAP_FOR_EACH (claim, node, &kc->registry->claims) {
        if (claim == registry_best_claim(kc->registry, &claim->what, NULL)) {
            see(kc, claim);
        }
    }
    HMAP_FOR_EACH_SAFE(i, node, &kc->installed)
    {
        if (!i->seen) {
            lose(kc, i);
        }
    }
}

void
kernel_claims_run(struct kernel_claims *kc, long long now)
{
    if (!kc->touched || now < kc->next) {
        return;
    }
    kc->touched = kc->changed = false;
    compare(kc);
    if (kc->changed) {
        write_map(kc, IDENTITY_PROCESSES);
        write_map(kc, IDENTITY_CGROUPS);
        write_map(kc, IDENTITY_NAMESPACES);
        kc->next =
            now
            + KERNEL_CLAIMS_GAP_MS * (1 + hmap_count(&kc->installed) / 1024);
        identity_raise_epoch(kc->identity);
    }
}

static void
kernel_claims_wait(const struct kernel_claims *kc)
{
    if (kc->touched) {
        poll_timer_wait_until(kc->next);
    }
}

/* Jobs. */

struct tracker {
    struct tracker_config config;

    struct registry registry;
    struct kernel_claims *claims;
    struct questions *questions;

    long long now;       /* time_msec() of the current run. */
    long long next_scan; /* Of the cgroups. */
    long long next_all;  /* Earliest scan of all processes. */

    uint64_t n_scans;     /* Scans of the cgroup tree. */
    uint64_t n_questions; /* Of the kernel. */
    uint64_t n_lost;      /* Of those that did not fit, at 'next_all'. */
    int n_copies;         /* Checked since the last scan. */
    long long next_count; /* Earliest count of connections of no job. */
    uint64_t n_refused;   /* To these since the last count. */
};

#define SCAN_MS 1000   /* Between scans of the cgroups. */
#define ALL_MS 5000    /* Between scans of all processes. */
#define COUNT_MS 5000  /* Between counts of connections of no job. */
#define MAX_USERS 16   /* Processes of a job whose user is read. */
#define MAX_COPIES 256 /* That are checked between scans. */

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

/* Drops the claims of things that no longer exist. */
static void
check_claims(struct tracker *t)
{
    struct claim *claim;

    HMAP_FOR_EACH_SAFE(claim, node, &t->registry.claims)
    {
        if (!claim_holds(claim)) {
            registry_drop_claim(&t->registry, claim);
        }
    }
}

/* Stores the user of the first process of the cgroup that is not root's, else
 * root if there is a process.  Returns false without a process. */
static bool
find_user(const char *path, uid_t *uidp)
{
    struct pids p = { .n = 0 };
    bool found = false;

    *uidp = 0;
    pids_add_cgroup(path, &p);
    for (size_t i = 0; i < MIN(p.n, MAX_USERS) && !*uidp; i++) {
        found = process_user(p.pids[i], uidp) || found;
    }
    free(p.pids);
    return found;
}

static void
see_cgroup(const char *name, uint64_t id, uid_t uid, void *t_)
{
    struct tracker *t = t_;
    struct job *job = registry_see(&t->registry, name, id, uid, t->now);
    char *path = xasprintf("%s/%s", t->config.cgroup_root, name);

    /* The user of a job if root has created its cgroup and its launcher has
     * named no user.  The first processes may still be root's. */
    if (job && !(job->has_uid && job->uid && job->uid_source <= CLAIM_CGROUP)
        && find_user(path, &uid)) {
        registry_set_uid(&t->registry, job, CLAIM_CGROUP, uid);
    }
    free(path);
}

/* Scans the tree of jobs, and checks the claims. */
static void
scan_cgroups(struct tracker *t)
{
    int error = 0;

    t->n_scans++;
    t->n_copies = 0;
    t->next_scan = t->now + SCAN_MS;
    kernel_claims_touch(t->claims);
    users_run(&t->registry.users, t->now);
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
    check_claims(t);
    registry_end(&t->registry);
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
                   && !cgroup_remove(t->config.cgroup_root, job->name)) {
            registry_leave(&t->registry, job);
        }
    }
}

/* Finds the job of a process by its cgroup, which may be newer than the last
 * scan.  An agent with a cgroup namespace of its own cannot read where the
 * cgroup is, and finds the job by the next scan. */
static void
find_job_of_cgroup(struct tracker *t, pid_t pid, uint64_t cgroup)
{
    const struct claim_what what = { CLAIMS_CGROUP, cgroup };
    const char *root = t->config.cgroup_root;
    char *below, *path, *job;

    if (!root || registry_best_claim(&t->registry, &what, NULL)
        || !(below = job_cgroup_path(pid))) {
        return;
    }
    path = xasprintf("%s%s", t->config.cgroup_mount, below);
    free(below);
    job = cgroup_job_at(root, path);
    if (job && !registry_find(&t->registry, job)) {
        cgroup_see_job(root, job, see_cgroup, t);
        kernel_claims_touch(t->claims);
    }
    free(job);
    free(path);
}

/* Warns of a copy of the connection of another user.  It gains nothing: a
 * packet is of its socket's job. */
static void
check_copy(struct tracker *t, const struct identity_copy *copy)
{
    int64_t uid = t->n_copies++ < MAX_COPIES ? connections_user(copy) : -1;

    if (uid >= 0 && uid != copy->uid) {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

        VLOG_WARN_RL(&rl,
                     "process %u of user %u has the addresses and ports of a "
                     "connection of user %u in another network namespace",
                     copy->question.tgid, copy->uid, (unsigned int) uid);
        t->registry.n_refused++;
    }
}

static void
take_question(const struct identity_question *question, void *t_)
{
    struct tracker *t = t_;

    t->n_questions++;
    if (question->may_copy) {
        check_copy(t, CONTAINER_OF(question, struct identity_copy, question));
    } else {
        uid_t uid;

        find_job_of_cgroup(t, question->tgid, question->cgroup);
        if (process_user(question->tgid, &uid)) {
            questions_add(t->questions, question->tgid, uid);
        }
    }
}

/* Inspects all processes without a job again, after a change of the claims. */
static void
repeat_questions(struct tracker *t)
{
    questions_again(t->questions);
    kernel_claims_touch(t->claims);
}

static void
run_kernel(struct tracker *t)
{
    const struct identity_settings *settings =
        identity_settings(t->config.identity);

    /* The sockets of processes that have lost their claim must leave the job's
     * slot at once. */
    if (t->registry.has_lost) {
        t->registry.has_lost = false;
        repeat_questions(t);
    }
    identity_take_questions(t->config.identity, take_question, t);
    if (t->now >= t->next_all && t->n_lost != settings->n_lost) {
        t->next_all = t->now + ALL_MS;
        t->n_lost = settings->n_lost;
        questions_add_all(t->questions);
    }
    if (questions_run(t->questions, t->now)) {
        kernel_claims_touch(t->claims);
    }
    kernel_claims_run(t->claims, t->now);
}

struct tracker *
tracker_create(const struct tracker_config *config,
               const struct registry_class *class, void *aux)
{
    struct tracker *t = xzalloc(sizeof *t);

    t->config = *config;
    registry_init(&t->registry);
    t->registry.users.cgroup_mount = config->cgroup_mount;
    t->registry.class = *class;
    t->registry.aux = aux;
    t->now = time_msec();
    t->n_lost = identity_settings(config->identity)->n_lost;
    t->claims = kernel_claims_create(config->identity, &t->registry);
    t->questions = questions_create(&t->registry);
    questions_add_all(t->questions);
    scan_cgroups(t);
    return t;
}

void
tracker_destroy(struct tracker *t)
{
    if (!t) {
        return;
    }
    kernel_claims_destroy(t->claims);
    questions_destroy(t->questions);
    registry_uninit(&t->registry);
    free(t);
}

struct registry *
tracker_registry(struct tracker *t)
{
    return &t->registry;
}

struct json *
tracker_to_json(const struct tracker *t)
{
    struct json *json = json_object_create();

    json_put_integer(json, "scans", t->n_scans);
    json_put_integer(json, "questions", t->n_questions);
    return json;
}

void
tracker_run(struct tracker *t)
{
    t->now = time_msec();
    if (t->now >= t->next_scan) {
        scan_cgroups(t);
        if (t->config.cgroup_root) {
            remove_empty_jobs(t);
        }
    }
    run_kernel(t);
}

void
tracker_wait(struct tracker *t)
{
    if (t->registry.has_lost) {
        poll_immediate_wake();
    }
    questions_wait(t->questions);
    kernel_claims_wait(t->claims);
    poll_timer_wait_until(t->next_scan);
}

void
tracker_touch(struct tracker *t)
{
    kernel_claims_touch(t->claims);
}

struct job *
tracker_register(struct tracker *t, const char *name)
{
    struct job *job = registry_find(&t->registry, name);

    t->now = time_msec();
    if (!job && t->config.cgroup_root) {
        cgroup_see_job(t->config.cgroup_root, name, see_cgroup, t);
        job = registry_find(&t->registry, name);
        kernel_claims_touch(t->claims);
    }
    return job;
}

bool
tracker_claim(struct tracker *t, struct claim_request *r)
{
    struct process process;
    struct claim *claim;
    struct job *job;
    uid_t uid;

    t->now = time_msec();
    if (!r->has_uid && r->what.kind == CLAIMS_PROCESS
        && process_user(r->what.id, &uid) && uid) {
        r->has_uid = true; /* It may be the root of a container. */
        r->uid = uid;
    }
    job = registry_claim(&t->registry, r->source, r->job, &r->what,
                         r->has_uid ? &r->uid : NULL, t->now);
    if (!job) {
        return false;
    }
    claim = registry_find_claim(&t->registry, r->source, &r->what);
    free(claim->path);
    claim->path = r->path;
    r->path = NULL;
    claim->born = 0;
    if (r->what.kind == CLAIMS_PROCESS && process_read(r->what.id, &process)
        && process_real_user(process.pid, &claim->real)) {
        claim->born = process.born;
    }
    registry_set_gpus(&t->registry, claim, r->gpus);
    job->rung = r->rung >= 0 ? r->rung : job->rung;
    repeat_questions(t);
    return true;
}

void
tracker_refused(struct tracker *t, uint64_t n)
{
    struct users *users = &t->registry.users;
    struct user *user;

    t->n_refused += n;
    if (t->now < t->next_count) {
        return;
    }
    t->next_count = t->now + COUNT_MS;
    user = connections_most(t->config.identity, t->questions, users);
    if (user) {
        user->n_other += t->n_refused;
    }
    t->n_refused = 0;
}

bool
tracker_unclaim(struct tracker *t, const struct claim_request *r)
{
    bool had = registry_unclaim(&t->registry, r->source, r->job, &r->what);

    if (had) {
        repeat_questions(t);
    }
    return had;
}
