/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/questions.h"

#include <dirent.h>
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

#define RUN_NS 4000000 /* Time limit of a run, for other modules. */
#define GAP_MS 12
#define AGAIN_MS 1000 /* Time until a young process is inspected again. */
#define MAX_ANCESTORS 64

/* Age in clock ticks below which a process may still execute another program
 * with another environment. */
#define YOUNG_TICKS 500
#define TICK_NS 10000000

/* A process that belongs to no job as far as is known. */
struct question {
    struct hmap_node node; /* In struct questions's 'known', by 'pid'. */
    struct ovs_list list;  /* In the user's 'waiting' or 'idle'. */
    bool waits;            /* The process waits for its reply. */
    pid_t pid;
    struct user *user;
    uint64_t born; /* As in struct process. */
    bool settled;  /* It was old enough when its environment was read, which
                    * is final then. */
};

struct questions {
    struct registry *registry;
    struct hmap known;
    size_t n_waiting;
    long long next;  /* Time of the next replies. */
    long long again; /* Time of the next inspection of young processes. */
};

struct questions *
questions_create(struct registry *registry)
{
    struct questions *q = xzalloc(sizeof *q);

    q->registry = registry;
    hmap_init(&q->known);
    return q;
}

void
questions_destroy(struct questions *q)
{
    struct question *a;

    if (!q) {
        return;
    }
    HMAP_FOR_EACH_POP(a, node, &q->known)
    {
        free(a);
    }
    hmap_destroy(&q->known);
    free(q);
}

static struct question *
find_question(const struct questions *q, pid_t pid)
{
    struct question *a;

    HMAP_FOR_EACH_WITH_HASH(a, node, hash_int(pid, 0), &q->known)
    {
        if (a->pid == pid) {
            return a;
        }
    }
    return NULL;
}

static void
enqueue(struct questions *q, struct question *a)
{
    if (!a->waits) {
        ovs_list_remove(&a->list);
        ovs_list_push_back(&a->user->waiting, &a->list);
        a->waits = true;
        q->n_waiting++;
    }
}

static void
forget(struct questions *q, struct question *a)
{
    shares_drop(&q->registry->users.questions, &a->user->questions);
    q->n_waiting -= a->waits;
    ovs_list_remove(&a->list);
    hmap_remove(&q->known, &a->node);
    free(a);
}

void
questions_add(struct questions *q, pid_t pid, uid_t uid)
{
    struct question *a = find_question(q, pid);

    if (!a) {
        struct users *users = &q->registry->users;
        struct user *user = users_find(users, uid, pid);

        while (!shares_admit(&users->questions, &user->questions)) {
            if (ovs_list_is_empty(&user->idle)) {
                return; /* The kernel repeats its question. */
            }
            forget(q, CONTAINER_OF(ovs_list_front(&user->idle),
                                   struct question, list));
        }
        a = xzalloc(sizeof *a);
        a->pid = pid;
        a->user = user;
        ovs_list_push_back(&user->idle, &a->list);
        hmap_insert(&q->known, &a->node, hash_int(pid, 0));
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

        if (pid > 0 && !find_question(q, pid) && process_user(pid, &uid)) {
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
    char *name =
        text ? environ_job(text, size, uid, process_host_name, process->pid)
             : NULL;
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

/* Inspects the process.  Returns true if it belongs to a job.  If it does not,
 * that can still change unless 'settled' is set. */
static bool
inspect(struct registry *r, const struct process *process, struct question *a,
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

/* Replies to one question.  Returns true if the process belongs to a job;
 * then, or if it has ended, it is forgotten. */
static bool
reply(struct questions *q, struct question *a, long long now)
{
    struct process process;
    bool lives = process_read(a->pid, &process);
    bool works = lives && inspect(q->registry, &process, a, now);

    ovs_list_remove(&a->list);
    ovs_list_push_back(&a->user->idle, &a->list);
    a->waits = false;
    q->n_waiting--;
    if (works || !lives) {
        forget(q, a);
    }
    return works;
}

/* Puts young processes into their users' queues, once in AGAIN_MS. */
static void
enqueue_young(struct questions *q, long long now)
{
    struct question *a;

    if (now < q->again) {
        return;
    }
    q->again = now + AGAIN_MS;
    HMAP_FOR_EACH (a, node, &q->known) {
        if (!a->settled) {
            enqueue(q, a);
        }
    }
}

bool
questions_run(struct questions *q, long long now)
{
    int64_t until = clock_ns(CLOCK_MONOTONIC) + RUN_NS;
    bool found = false;

    enqueue_young(q, now);
    while (q->n_waiting && now >= q->next) {
        struct user *user;

        HMAP_FOR_EACH (user, node, &q->registry->users.all) {
            if (!ovs_list_is_empty(&user->waiting)) {
                struct question *a = CONTAINER_OF(
                    ovs_list_front(&user->waiting), struct question, list);

                found = reply(q, a, now) || found;
            }
        }
        if (clock_ns(CLOCK_MONOTONIC) >= until) {
            q->next = now + GAP_MS;
        }
    }
    return found;
}

void
questions_wait(const struct questions *q)
{
    poll_timer_wait_until(q->n_waiting ? q->next : q->again);
}

void
questions_again(struct questions *q)
{
    struct question *a;

    HMAP_FOR_EACH (a, node, &q->known) {
        a->settled = false;
        enqueue(q, a);
    }
}

void
questions_for_each(const struct questions *q, questions_func *see, void *aux)
{
    const struct question *a;

    HMAP_FOR_EACH (a, node, &q->known) {
        see(a->pid, aux);
    }
}
