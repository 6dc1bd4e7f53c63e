/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/questions.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>

#include "agent/identify/process-jobs.h"
#include "agent/identify/process.h"
#include "hash.h"
#include "openvswitch/hmap.h"
#include "openvswitch/list.h"
#include "openvswitch/poll-loop.h"
#include "timeval.h"
#include "util.h"

#define MAX_OF_USER 4096 /* Processes of a user that are remembered. */
#define PER_RUN 64       /* Answers of a run. */
#define AGAIN_MS 1000    /* Until a young process is looked at again. */

/* A process that belongs to no job as far as is known. */
struct asked {
    struct hmap_node node; /* In struct questions's 'asked', by 'pid'. */
    struct ovs_list list;  /* In the user's 'waiting', or empty. */
    pid_t pid;
    struct user *user;
    struct process_look look;
    long long due; /* Of the next look, LLONG_MAX: not by
                    * itself. */
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

/* Looks at the process.  Returns true if it belongs to a job; then, or if it
 * has ended, it is forgotten. */
static bool
answer(struct questions *q, struct asked *a, long long now)
{
    struct process process;
    bool lives = process_read(a->pid, &process);
    bool works =
        lives && process_jobs_look(q->registry, &process, &a->look, now);

    if (works || !lives) {
        forget(q, a);
        return works;
    }
    a->due = a->look.settled ? LLONG_MAX : now + AGAIN_MS;
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
        a->look.settled = false;
        enqueue(q, a);
    }
}
