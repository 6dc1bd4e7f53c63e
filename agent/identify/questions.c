/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/questions.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>

#include "agent/identify/environ.h"
#include "agent/identify/process.h"
#include "agent/identify/registry.h"
#include "base/clock.h"
#include "hash.h"
#include "openvswitch/hmap.h"
#include "openvswitch/list.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(questions);

#define MAX_OF_USER 4096 /* Processes of a user that are remembered. */
#define PER_RUN 64       /* Answers of a run. */
#define AGAIN_MS 1000    /* Until a young process is looked at again. */
#define MAX_ANCESTORS 64

/* Age in clock ticks below which a process may still execute another program
 * with another environment. */
#define YOUNG_TICKS 500
#define TICK_NS 10000000

/* A process that belongs to no job as far as is known. */
struct asked {
    struct hmap_node node; /* In struct questions's 'asked', by 'pid'. */
    struct ovs_list list;  /* In the user's 'waiting', or empty. */
    pid_t pid;
    struct user *user;
    uint64_t born; /* As in struct process. */
    bool settled;  /* It was old enough when its environment was read, which
                    * is final then. */
    long long due; /* Of the next look, LLONG_MAX: not by itself. */
};

struct user {
    struct hmap_node node; /* In struct questions's 'users', by 'uid'. */
    uid_t uid;
    size_t n;                /* Processes that are remembered. */
    struct ovs_list waiting; /* Of struct asked. */
};

struct questions {
    struct registry *registry;
    struct hmap asked;
    struct hmap users;
    size_t n_waiting;
    long long due; /* The least of those that do not wait. */
};

struct questions *
questions_create(struct registry *registry)
{
    struct questions *q = xzalloc(sizeof *q);

    q->registry = registry;
    hmap_init(&q->asked);
    hmap_init(&q->users);
    q->due = LLONG_MAX;
    return q;
}

void
questions_destroy(struct questions *q)
{
    struct asked *a;
    struct user *user;

    if (!q) {
        return;
    }
    HMAP_FOR_EACH_POP(a, node, &q->asked)
    {
        free(a);
    }
    HMAP_FOR_EACH_POP(user, node, &q->users)
    {
        free(user);
    }
    hmap_destroy(&q->asked);
    hmap_destroy(&q->users);
    free(q);
}

static struct user *
find_user(struct questions *q, uid_t uid)
{
    struct user *user;

    HMAP_FOR_EACH_WITH_HASH(user, node, hash_int(uid, 0), &q->users)
    {
        if (user->uid == uid) {
            return user;
        }
    }
    user = xzalloc(sizeof *user);
    user->uid = uid;
    ovs_list_init(&user->waiting);
    hmap_insert(&q->users, &user->node, hash_int(uid, 0));
    return user;
}

static struct asked *
find_asked(const struct questions *q, pid_t pid)
{
    struct asked *a;

    HMAP_FOR_EACH_WITH_HASH(a, node, hash_int(pid, 0), &q->asked)
    {
        if (a->pid == pid) {
            return a;
        }
    }
    return NULL;
}

static void
enqueue(struct questions *q, struct asked *a)
{
    if (ovs_list_is_empty(&a->list)) {
        ovs_list_push_back(&a->user->waiting, &a->list);
        q->n_waiting++;
    }
}

static void
forget(struct questions *q, struct asked *a)
{
    struct user *user = a->user;

    hmap_remove(&q->asked, &a->node);
    free(a);
    if (!--user->n) {
        hmap_remove(&q->users, &user->node);
        free(user);
    }
}

void
questions_add(struct questions *q, pid_t pid, uid_t uid)
{
    struct asked *a = find_asked(q, pid);

    if (!a) {
        struct user *user = find_user(q, uid);

        if (user->n >= MAX_OF_USER) {
            return; /* The kernel asks again. */
        }
        a = xzalloc(sizeof *a);
        a->pid = pid;
        a->user = user;
        user->n++;
        ovs_list_init(&a->list);
        hmap_insert(&q->asked, &a->node, hash_int(pid, 0));
    }
    enqueue(q, a);
}

void
questions_add_all(struct questions *q)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        pid_t pid = atoi(entry->d_name);
        uid_t uid;

        if (pid > 0 && process_user(pid, &uid)) {
            questions_add(q, pid, uid);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

/* Jobs of processes. */

/* Claims the process of this user for the job called 'name', unless it is of
 * another user, which is a warning.  Returns false if that may change, because
 * the user of the job is unknown. */
static bool
claim_process(struct registry *r, const struct process *process, uint64_t uid,
              enum claim_source source, const char *name, long long now)
{
    struct claim_what what = { CLAIMS_PROCESS, process->pid };
    /* Root of a container counts as any other user. */
    bool host_root = !uid && process_is_of_host(process->pid);

    if (!registry_may_join(r, name, uid, host_root)) {
        const struct job *job = registry_find(r, name);
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

        VLOG_WARN_RL(&rl,
                     "%s: process %d of another user has it in its %s, "
                     "which does not count",
                     name, (int) process->pid, claim_source_names[source]);
        r->n_refused++;
        return !job || job->has_uid;
    }
    if (registry_claim(r, source, name, &what, &uid, now)) {
        struct claim *claim = registry_find_claim(r, source, &what);

        claim->born = process->born;
        process_real_user(process->pid, &claim->real);
    }
    return true;
}

/* Applies the claim of the parent to a process of user 'uid'.  One that has a
 * claim by its environment would get a registered one only. */
static void
inherit(struct registry *r, const struct process *process, uid_t uid,
        long long now)
{
    const struct claim *claim = registry_best_of_process(r, process, NULL);
    struct process ancestor = *process;

    if (claim && claim->born && !r->n_process_claims) {
        return;
    }
    for (int i = 0; i < MAX_ANCESTORS && ancestor.parent > 1; i++) {
        if (!process_read(ancestor.parent, &ancestor)) {
            return;
        }
        claim = registry_best_of_process(r, &ancestor, NULL);
        if (claim) {
            char *name = xstrdup(claim->job->name);

            claim_process(r, process, uid, claim->source, name, now);
            free(name);
            return;
        }
    }
}

/* Reads the environment of 'process'.  Returns false if it must be read again,
 * because the user of the job that it names is not known yet. */
static bool
read_environ(struct registry *r, const struct process *process, uid_t uid,
             long long now)
{
    size_t size;
    char *text = process_environ(process->pid, &size);
    char *name = text ? environ_job(text, size, uid) : NULL;
    bool final = true;

    if (name) {
        VLOG_DBG("process %d: %s by its environment", (int) process->pid,
                 name);
        final = claim_process(r, process, uid, CLAIM_ENVIRONMENT, name, now);
    }
    free(name);
    free(text);
    return final;
}

/* Looks at the process.  Returns true if it belongs to a job; otherwise that
 * can change by itself unless it is settled. */
static bool
look(struct registry *r, const struct process *process, struct asked *a,
     long long now)
{
    uint64_t ticks = clock_ns(CLOCK_BOOTTIME) / TICK_NS;
    bool young = ticks <= process->born + YOUNG_TICKS;
    uid_t uid;

    if (a->born != process->born || !a->settled) {
        a->born = process->born;
        a->settled = false;
        if (process_user(process->pid, &uid)) {
            a->settled = read_environ(r, process, uid, now) && !young;
            inherit(r, process, uid, now);
        }
    }
    return registry_best_of_process(r, process, NULL) != NULL;
}

/* Answers one question.  Returns true if the process belongs to a job; then,
 * or if it has ended, it is forgotten. */
static bool
answer(struct questions *q, struct asked *a, long long now)
{
    struct process process;
    bool lives = process_read(a->pid, &process);
    bool works = lives && look(q->registry, &process, a, now);

    if (works || !lives) {
        forget(q, a);
        return works;
    }
    a->due = a->settled ? LLONG_MAX : now + AGAIN_MS;
    q->due = MIN(q->due, a->due);
    return false;
}

/* Puts those that are due into their users' queues. */
static void
enqueue_due(struct questions *q, long long now)
{
    struct asked *a;

    if (now < q->due) {
        return;
    }
    q->due = LLONG_MAX;
    HMAP_FOR_EACH (a, node, &q->asked) {
        if (a->due <= now) {
            enqueue(q, a);
        } else {
            q->due = MIN(q->due, a->due);
        }
    }
}

bool
questions_run(struct questions *q, long long now)
{
    bool found = false;
    int left = PER_RUN;

    enqueue_due(q, now);
    while (left > 0 && q->n_waiting) {
        struct user *user;

        HMAP_FOR_EACH_SAFE(user, node, &q->users)
        {
            if (!ovs_list_is_empty(&user->waiting)) {
                struct asked *a = CONTAINER_OF(
                    ovs_list_pop_front(&user->waiting), struct asked, list);

                ovs_list_init(&a->list);
                q->n_waiting--;
                left--;
                found = answer(q, a, now) || found;
            }
        }
    }
    return found;
}

void
questions_wait(const struct questions *q)
{
    if (q->n_waiting) {
        poll_immediate_wake();
    } else {
        poll_timer_wait_until(q->due);
    }
}

void
questions_again(struct questions *q)
{
    struct asked *a;

    HMAP_FOR_EACH (a, node, &q->asked) {
        a->settled = false;
        enqueue(q, a);
    }
}

bool
questions_claim(struct questions *q, pid_t pid, const char *job, long long now)
{
    struct process process;
    uid_t uid;

    if (!process_read(pid, &process)
        || registry_best_of_process(q->registry, &process, NULL)
        || !process_user(pid, &uid)) {
        return false;
    }
    claim_process(q->registry, &process, uid, CLAIM_PORT, job, now);
    return true;
}
