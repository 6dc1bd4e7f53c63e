/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/process-jobs.h"

#include <stdlib.h>
#include <time.h>

#include "agent/identify/environ.h"
#include "agent/identify/process.h"
#include "agent/identify/registry.h"
#include "hash.h"
#include "openvswitch/hmap.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(process_jobs);

#define MAX_READERS 65536
#define MAX_ANCESTORS 64

/* Age in clock ticks below which a process may still execute another program
 * with another environment. */
#define YOUNG_TICKS 500

/* A process whose environment was read. */
struct reader {
    struct hmap_node node;      /* By 'pid'. */
    pid_t pid;
    uint64_t born;
    bool settled;               /* It was old enough; its environment is
                                 * final. */
};

struct process_jobs {
    struct registry *registry;
    const char *cgroup_root;    /* May be NULL. */
    struct hmap readers;        /* Contains struct reader. */
};

struct process_jobs *
process_jobs_create(struct registry *registry, const char *cgroup_root)
{
    struct process_jobs *p = xzalloc(sizeof *p);

    p->registry = registry;
    p->cgroup_root = cgroup_root;
    hmap_init(&p->readers);
    return p;
}

void
process_jobs_clear(struct process_jobs *p)
{
    struct reader *reader;

    HMAP_FOR_EACH_POP (reader, node, &p->readers) {
        free(reader);
    }
}

void
process_jobs_destroy(struct process_jobs *p)
{
    if (p) {
        process_jobs_clear(p);
        hmap_destroy(&p->readers);
        free(p);
    }
}

/* Returns the claim of 'pid' with the highest precedence, or NULL. */
const struct claim *
process_jobs_claim(const struct process_jobs *p, pid_t pid)
{
    struct claim_what what = { CLAIMS_PROCESS, pid };

    return registry_best_claim(p->registry, &what);
}

/* Returns true if 'process' of user 'uid' may claim the job called 'name' by
 * its environment or its ports.  Root of a container counts as any other
 * user. */
static bool
may_join(const struct process_jobs *p, const struct process *process,
         uid_t uid, const char *name)
{
    const struct job *job = registry_find(p->registry, name);
    bool host_root = !uid && process_is_of_host(process->pid);

    return (job ? registry_may_join(job, uid, host_root)
                : registry_may_begin(p->registry, name, uid, host_root));
}

bool
process_jobs_add(struct process_jobs *p, const struct process *process,
                 uid_t uid, enum claim_source source, const char *name,
                 long long now)
{
    struct claim_what what = { CLAIMS_PROCESS, process->pid };

    if (!may_join(p, process, uid, name)) {
        const struct job *job = registry_find(p->registry, name);
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

        VLOG_WARN_RL(&rl, "%s: process %d of another user has it in its %s, "
                     "which does not count", name, (int) process->pid,
                     claim_source_name(source));
        p->registry->n_refused++;
        return !job || job->has_uid;
    }
    if (registry_claim(p->registry, source, name, &what, &uid, now)) {
        registry_find_claim(p->registry, source, &what)->born = process->born;
    }
    return true;
}

/* Applies the claim of the parent to a process of user 'uid'.  One that has a
 * claim by its environment would get a registered one only. */
static void
inherit(struct process_jobs *p, const struct process *process, uid_t uid,
        long long now)
{
    const struct claim *own = process_jobs_claim(p, process->pid);
    struct process ancestor = *process;

    if (own && own->born == process->born && !p->registry->n_process_claims) {
        return;
    }

    for (int i = 0; i < MAX_ANCESTORS && ancestor.parent > 1; i++) {
        const struct claim *claim;

        if (!process_read(ancestor.parent, &ancestor)) {
            return;
        }
        claim = process_jobs_claim(p, ancestor.pid);
        if (claim && (!claim->born || claim->born == ancestor.born)) {
            char *name = xstrdup(claim->job->name);

            process_jobs_add(p, process, uid, claim->source, name, now);
            free(name);
            return;
        }
    }
}

/* Reads the environment of 'process'.  Returns false if it must be read again,
 * because the user of the job that it names is not known yet. */
static bool
read_environ(struct process_jobs *p, const struct process *process, uid_t uid,
             long long now)
{
    const char *framework;
    size_t size;
    char *text = process_environ(process->pid, &size);
    char *name = text ? environ_job(text, size, uid, &framework) : NULL;
    bool final = true;

    if (name) {
        VLOG_DBG("process %d: %s by the environment of %s",
                 (int) process->pid, name, framework);
        final =
            process_jobs_add(p, process, uid, CLAIM_ENVIRONMENT, name, now);
    }
    free(name);
    free(text);
    return final;
}

static struct reader *
find_or_add_reader(struct process_jobs *p, pid_t pid)
{
    struct reader *reader;

    HMAP_FOR_EACH_WITH_HASH (reader, node, hash_int(pid, 0), &p->readers) {
        if (reader->pid == pid) {
            return reader;
        }
    }
    if (hmap_count(&p->readers) >= MAX_READERS) {
        process_jobs_clear(p);
    }
    reader = xzalloc(sizeof *reader);
    reader->pid = pid;
    hmap_insert(&p->readers, &reader->node, hash_int(pid, 0));
    return reader;
}

/* Returns the current time, clock ticks since boot. */
static uint64_t
ticks_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_BOOTTIME, &ts);
    return ts.tv_sec * 100 + ts.tv_nsec / 10000000;
}

/* Attributes 'pid'.  Returns true if it belongs to a job; otherwise clears
 * '*foreverp' unless that cannot change. */
bool
process_jobs_look(struct process_jobs *p, pid_t pid, long long now,
                  bool *foreverp)
{
    struct reader *reader = find_or_add_reader(p, pid);
    struct process process;
    const struct claim *claim;
    uid_t uid;

    if (!process_read(pid, &process)) {
        *foreverp = false;
        return false;
    }
    if (reader->born != process.born || !reader->settled) {
        reader->born = process.born;
        reader->settled = ticks_now() > process.born + YOUNG_TICKS;
        if (!process_user(pid, &uid)) {
            reader->settled = false;
        } else {
            reader->settled &= read_environ(p, &process, uid, now);
            inherit(p, &process, uid, now);
        }
    }
    *foreverp = *foreverp && reader->settled;
    claim = process_jobs_claim(p, pid);
    return claim && (!claim->born || claim->born == process.born);
}
