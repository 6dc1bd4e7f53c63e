/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/process-jobs.h"

#include <stdlib.h>
#include <time.h>

#include "agent/identify/environ.h"
#include "agent/identify/process.h"
#include "agent/identify/registry.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(process_jobs);

#define MAX_ANCESTORS 64

/* Age in clock ticks below which a process may still execute another program
 * with another environment. */
#define YOUNG_TICKS 500

/* Returns the claim of 'pid' with the highest precedence, or NULL. */
const struct claim *
process_jobs_claim(const struct registry *r, pid_t pid)
{
    struct claim_what what = { CLAIMS_PROCESS, pid };

    return registry_best_claim(r, &what);
}

/* The same for the process as long as it lives. */
static const struct claim *
find_claim(const struct registry *r, const struct process *process)
{
    const struct claim *claim = process_jobs_claim(r, process->pid);

    return claim && claim->born && claim->born != process->born ? NULL : claim;
}

/* Returns true if 'process' of user 'uid' may claim the job called 'name' by
 * its environment or its ports.  Root of a container counts as any other
 * user. */
static bool
may_join(const struct registry *r, const struct process *process, uid_t uid,
         const char *name)
{
    const struct job *job = registry_find(r, name);
    bool host_root = !uid && process_is_of_host(process->pid);

    return (job ? registry_may_join(job, uid, host_root)
                : registry_may_begin(r, name, uid, host_root));
}

bool
process_jobs_add(struct registry *r, const struct process *process, uid_t uid,
                 enum claim_source source, const char *name, long long now)
{
    struct claim_what what = { CLAIMS_PROCESS, process->pid };

    if (!may_join(r, process, uid, name)) {
        const struct job *job = registry_find(r, name);
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

        VLOG_WARN_RL(&rl, "%s: process %d of another user has it in its %s, "
                     "which does not count", name, (int) process->pid,
                     claim_source_name(source));
        r->n_refused++;
        return !job || job->has_uid;
    }
    if (registry_claim(r, source, name, &what, &uid, now)) {
        registry_find_claim(r, source, &what)->born = process->born;
    }
    return true;
}

/* Applies the claim of the parent to a process of user 'uid'.  One that has a
 * claim by its environment would get a registered one only. */
static void
inherit(struct registry *r, const struct process *process, uid_t uid,
        long long now)
{
    const struct claim *claim = find_claim(r, process);
    struct process ancestor = *process;

    if (claim && claim->born && !r->n_process_claims) {
        return;
    }
    for (int i = 0; i < MAX_ANCESTORS && ancestor.parent > 1; i++) {
        if (!process_read(ancestor.parent, &ancestor)) {
            return;
        }
        claim = find_claim(r, &ancestor);
        if (claim) {
            char *name = xstrdup(claim->job->name);

            process_jobs_add(r, process, uid, claim->source, name, now);
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
    const char *framework;
    size_t size;
    char *text = process_environ(process->pid, &size);
    char *name = text ? environ_job(text, size, uid, &framework) : NULL;
    bool final = true;

    if (name) {
        VLOG_DBG("process %d: %s by the environment of %s",
                 (int) process->pid, name, framework);
        final =
            process_jobs_add(r, process, uid, CLAIM_ENVIRONMENT, name, now);
    }
    free(name);
    free(text);
    return final;
}

/* Returns the current time, clock ticks since boot. */
static uint64_t
ticks_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_BOOTTIME, &ts);
    return ts.tv_sec * 100 + ts.tv_nsec / 10000000;
}

bool
process_jobs_look(struct registry *r, const struct process *process,
                  struct process_look *look, long long now)
{
    bool young = ticks_now() <= process->born + YOUNG_TICKS;
    uid_t uid;

    if (look->born != process->born || !look->settled) {
        look->born = process->born;
        look->settled = false;
        if (process_user(process->pid, &uid)) {
            look->settled = read_environ(r, process, uid, now) && !young;
            inherit(r, process, uid, now);
        }
    }
    return find_claim(r, process) != NULL;
}
