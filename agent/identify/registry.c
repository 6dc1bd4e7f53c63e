/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/identify/process.h"
#include "agent/launch/launch.h"
#include "agent/launch/pod-path.h"
#include "base/name.h"
#include "hash.h"
#include "openvswitch/vlog.h"
#include "util.h"
#include "wire/cgroup-path.h"
#include "wire/json-put.h"

VLOG_DEFINE_THIS_MODULE(registry);

/* Users. */

#define LATE_MS 60000 /* Users are reported after a refusal. */

static void
users_init(struct users *users)
{
    memset(users, 0, sizeof *users);
    hmap_init(&users->all);
    users->questions.size = 16384;
    users->claims.size = 4096;
}

static void
users_uninit(struct users *users)
{
    struct user *user;

    HMAP_FOR_EACH_POP(user, node, &users->all)
    {
        free(user);
    }
    hmap_destroy(&users->all);
}

struct user *
users_find(struct users *users, uint64_t uid, pid_t pid)
{
    char *path = pid && users->cgroup_mount ? job_cgroup_path(pid) : NULL;
    char pod[USERS_POD_SIZE];
    struct user *user;
    uint32_t hash;

    if (path && pod_path_find(users->cgroup_mount, path, pod)) {
        uid = 0;
    } else {
        pod[0] = '\0';
    }
    free(path);
    hash = hash_string(pod, uid);
    HMAP_FOR_EACH_WITH_HASH(user, node, hash, &users->all)
    {
        if (user->uid == uid && !strcmp(user->pod, pod)) {
            return user;
        }
    }
    user = xzalloc(sizeof *user);
    user->uid = uid;
    ovs_strlcpy(user->pod, pod, sizeof user->pod);
    ovs_list_init(&user->waiting);
    ovs_list_init(&user->idle);
    hmap_insert(&users->all, &user->node, hash);
    return user;
}

void
users_run(struct users *users, long long now)
{
    struct user *user;

    HMAP_FOR_EACH_SAFE(user, node, &users->all)
    {
        uint64_t n_refused =
            user->n_other + user->questions.n_refused + user->claims.n_refused;

        if (n_refused > user->n_refused) {
            user->refused_at = now;
        } else if (now - user->refused_at > LATE_MS) {
            user->refused_at = 0;
        }
        user->n_refused = n_refused;
        if (!user->questions.n && !user->claims.n && !user->refused_at) {
            hmap_remove(&users->all, &user->node);
            free(user);
        }
    }
}

struct json *
users_to_json(const struct users *users)
{
    struct json *array = json_array_create_empty();
    const struct user *user;

    HMAP_FOR_EACH (user, node, &users->all) {
        struct json *json;

        if (!user->refused_at || array->array.n == USERS_MAX_REPORTED) {
            continue;
        }
        json = json_object_create();
        if (user->pod[0]) {
            json_object_put_string(json, "pod", user->pod);
        } else {
            json_put_integer(json, "uid", user->uid);
        }
        json_put_integer(json, "entries", user->questions.n + user->claims.n);
        json_put_integer(json, "refused", user->n_refused);
        json_array_add(array, json);
    }
    return array;
}

/* Jobs. */

void
registry_init(struct registry *r)
{
    memset(r, 0, sizeof *r);
    users_init(&r->users);
    hmap_init(&r->jobs);
    hmap_init(&r->claims);
}

/* Counts 'claim' among those of its job, or no longer. */
static void
count_claim(struct registry *r, const struct claim *claim, int n)
{
    claim->job->n_claims += n;
    claim->job->gpus += n * claim->gpus;
    if (claim_source_is_registered(claim->source)) {
        claim->job->n_registered += n;
        r->n_process_claims += claim->what.kind == CLAIMS_PROCESS ? n : 0;
    }
}

/* Sets the GPUs of 'claim', and those of its job. */
void
registry_set_gpus(struct registry *r, struct claim *claim, unsigned int gpus)
{
    count_claim(r, claim, -1);
    claim->gpus = gpus;
    count_claim(r, claim, 1);
}

/* Removes 'claim'. */
void
registry_drop_claim(struct registry *r, struct claim *claim)
{
    hmap_remove(&r->claims, &claim->node);
    count_claim(r, claim, -1);
    if (claim->user) {
        shares_drop(&r->users.claims, &claim->user->claims);
    }
    free(claim->path);
    free(claim);
}

/* Frees 'job' and forgets its claims. */
void
registry_remove(struct registry *r, struct job *job)
{
    struct claim *claim;

    HMAP_FOR_EACH_SAFE (claim, node, &r->claims) {
        if (claim->job == job) {
            registry_drop_claim(r, claim);
        }
    }
    hmap_remove(&r->jobs, &job->node);
    free(job->remotes);
    free(job->name);
    free(job);
}

static void
end_job(struct registry *r, struct job *job)
{
    if (r->class.end) {
        r->class.end(job, r->aux);
    }
    registry_remove(r, job);
}

void
registry_uninit(struct registry *r)
{
    struct job *job;

    HMAP_FOR_EACH_SAFE (job, node, &r->jobs) {
        registry_remove(r, job);
    }
    hmap_destroy(&r->jobs);
    hmap_destroy(&r->claims);
    users_uninit(&r->users);
}

/* Returns the job called 'name', or NULL. */
struct job *
registry_find(const struct registry *r, const char *name)
{
    struct job *job;

    HMAP_FOR_EACH_WITH_HASH (job, node, hash_string(name, 0), &r->jobs) {
        if (!strcmp(job->name, name)) {
            return job;
        }
    }
    return NULL;
}

/* Begins a scan of the tree. */
void
registry_begin(struct registry *r)
{
    struct job *job;

    HMAP_FOR_EACH (job, node, &r->jobs) {
        job->seen = false;
    }
}

bool
registry_is_registered(const struct job *job)
{
    return job->n_registered > 0;
}

/* No process joins a registered job of a still unknown user. */
static bool
is_user(const struct job *job, uint64_t uid)
{
    return job->has_uid ? uid == job->uid : !registry_is_registered(job);
}

/* Returns true if a process of user 'uid' may join the job called 'name', or
 * begin it, by its environment: it is of 'host_root', or of the job's user, or
 * no other owns a job that is not there yet. */
bool
registry_may_join(const struct registry *r, const char *name, uint64_t uid,
                  bool host_root)
{
    const struct job *job = registry_find(r, name);
    uint64_t owner;

    return host_root
           || (job ? is_user(job, uid)
                   : !r->class.owner || !r->class.owner(name, &owner, r->aux)
                         || uid == owner);
}

/* Returns true if 'source' may register processes of user '*uid', unless that
 * is NULL, for 'job', which may be NULL: it has none of another user, or the
 * controller named this user for it. */
static bool
may_register(const struct registry *r, const struct job *job,
             enum claim_source source, const uint64_t *uid)
{
    uint64_t owner;

    return !uid || !*uid || !job || !registry_is_registered(job)
           || !job->has_uid || !job->uid || job->uid == *uid
           || source < job->uid_source
           || (r->class.owner && r->class.owner(job->name, &owner, r->aux)
               && owner == *uid);
}

/* Returns true if 'claim' is of another user than its job.  A claim of a
 * registered source without a user, or for root, is not. */
static bool
is_squatter(const struct claim *claim)
{
    return (claim_source_is_registered(claim->source)
                ? claim->has_uid && claim->uid && claim->job->has_uid
                      && claim->job->uid && claim->uid != claim->job->uid
                : !(claim->has_uid && is_user(claim->job, claim->uid)));
}

/* Drops the claims of 'job' of other users. */
static void
drop_squatters(struct registry *r, struct job *job)
{
    struct claim *claim;
    size_t n = 0;

    HMAP_FOR_EACH_SAFE (claim, node, &r->claims) {
        if (claim->job == job && is_squatter(claim)) {
            registry_drop_claim(r, claim);
            n++;
        }
    }
    if (n) {
        VLOG_WARN("%s: processes of another user had its name, they have lost "
                  "it",
                  job->name);
        r->has_lost = true;
        r->n_refused += n;
    }
}

/* Sets the user of 'job' as 'source' knows it, unless a source of higher
 * precedence has, and drops the claims of squatters. */
void
registry_set_uid(struct registry *r, struct job *job, enum claim_source source,
                 uint64_t uid)
{
    bool changes = !job->has_uid || job->uid != uid;

    if (job->has_uid && source > job->uid_source) {
        return;
    }
    job->has_uid = true;
    job->uid = uid;
    job->uid_source = source;
    if (changes) {
        drop_squatters(r, job);
        if (r->class.changed) {
            r->class.changed(job, r->aux);
        }
    }
}

/* Sets the user of 'job' that owns its cojob, unless the job is registered. */
void
registry_set_owner(struct registry *r, struct job *job, uint64_t uid)
{
    if (!registry_is_registered(job)) {
        registry_set_uid(r, job, CLAIM_CGROUP, uid);
    }
}

/* Notes that 'source', of '*uid' unless that is NULL, has registered 'job',
 * which was 'registered' before or not. */
static void
register_job(struct registry *r, struct job *job, bool registered,
             enum claim_source source, const uint64_t *uid)
{
    if (uid) {
        registry_set_uid(r, job, source, *uid);
    } else if (!registered && job->has_uid && job->uid_source > CLAIM_CGROUP) {
        job->has_uid = false;   /* The user of its first process. */
        drop_squatters(r, job);
    }
    if (!registered && r->class.changed) {
        r->class.changed(job, r->aux);
    }
}

/* Returns the number of jobs of user 'uid'. */
static size_t
count_jobs(const struct registry *r, uint64_t uid, bool registered)
{
    const struct job *job;
    size_t n = 0;

    HMAP_FOR_EACH (job, node, &r->jobs) {
        n += (job->has_uid && job->uid == uid
              && (registered || !registry_is_registered(job)));
    }
    return n;
}

/* Returns a job without registration: of user '*uid', or if that is NULL, of
 * the user with the most of them.  Returns NULL without one. */
static struct job *
find_unregistered(const struct registry *r, const uint64_t *uid)
{
    struct job *job, *found = NULL;
    size_t n, most = 0;

    HMAP_FOR_EACH (job, node, &r->jobs) {
        if (registry_is_registered(job) || !job->has_uid
            || (uid && job->uid != *uid)
            || (found && job->uid == found->uid)) {
            continue;
        }
        n = count_jobs(r, job->uid, false);
        if (n > most) {
            most = n;
            found = job;
        }
    }
    return found;
}

/* Removes a job without registration, of user '*uid' unless that is NULL, if
 * that user has more than 'n'.  Returns false without one. */
static bool
displace(struct registry *r, const uint64_t *uid, size_t n)
{
    struct job *job = find_unregistered(r, uid);

    if (!job || count_jobs(r, job->uid, false) <= n) {
        return false;
    }
    end_job(r, job);
    r->n_refused++;
    return true;
}

/* Makes space for another job of user '*uid', NULL if that is unknown.
 * Returns false without one. */
static bool
make_space(struct registry *r, bool registered, const uint64_t *uid)
{
    bool limited = uid && (*uid || !registered);
    size_t n = limited ? count_jobs(r, *uid, *uid != 0) : SIZE_MAX - 1;

    if (limited && n >= REGISTRY_MAX_UID_JOBS) {
        return registered && displace(r, uid, 0);
    }
    return (hmap_count(&r->jobs) < REGISTRY_MAX_JOBS
            || displace(r, NULL, registered ? 0 : n + 1));
}

/* Adds a claim for 'what', unless a user has too many. */
static struct claim *
add_claim(struct registry *r, enum claim_source source,
          const struct claim_what *what, const uint64_t *uid)
{
    struct user *user = NULL;
    struct claim *claim;

    if (what->kind == CLAIMS_PROCESS) {
        user = users_find(&r->users, uid ? *uid : 0, what->id);
        if (!shares_admit(&r->users.claims, &user->claims)) {
            return NULL;
        }
    }
    claim = xzalloc(sizeof *claim);
    claim->what = *what;
    claim->source = source;
    claim->user = user;
    hmap_insert(&r->claims, &claim->node, claim_what_hash(what));
    return claim;
}

static struct job *
add_job(struct registry *r, const char *name, enum claim_source source,
        const uint64_t *uid, long long now)
{
    struct job *job;

    if (!make_space(r, claim_source_is_registered(source), uid)) {
        r->n_refused++;
        return NULL;
    }
    job = xzalloc(sizeof *job);
    job->name = xstrdup(name);
    job->since = now;
    job->rung = -1;
    job->has_uid = uid != NULL;
    job->uid = uid ? *uid : 0;
    job->uid_source = source;
    hmap_insert(&r->jobs, &job->node, hash_string(name, 0));
    if (r->class.begin) {
        r->class.begin(job, r->aux);
    }
    return job;
}

/* Returns the claim of 'source' for 'what', or NULL. */
struct claim *
registry_find_claim(const struct registry *r, enum claim_source source,
                    const struct claim_what *what)
{
    struct claim *claim;

    HMAP_FOR_EACH_WITH_HASH(claim, node, claim_what_hash(what), &r->claims)
    {
        if (claim->source == source && claim_what_equals(&claim->what, what)) {
            return claim;
        }
    }
    return NULL;
}

/* Returns the claim for 'what' with the highest precedence, or 'best', which
 * may be NULL, if no claim has more than 'best'. */
const struct claim *
registry_best_claim(const struct registry *r, const struct claim_what *what,
                    const struct claim *best)
{
    const struct claim *claim;

    HMAP_FOR_EACH_WITH_HASH(claim, node, claim_what_hash(what), &r->claims)
    {
        if (claim_what_equals(&claim->what, what)
            && (!best || claim->source < best->source)) {
            best = claim;
        }
    }
    return best;
}

/* Does the same for a process.  Ignores a claim of an earlier process with its
 * id. */
const struct claim *
registry_best_of_process(const struct registry *r,
                         const struct process *process,
                         const struct claim *best)
{
    const struct claim_what what = { CLAIMS_PROCESS, process->pid };
    const struct claim *claim = registry_best_claim(r, &what, best);

    return claim && claim != best && claim->born
                   && claim->born != process->born
               ? best
               : claim;
}

/* Adds the claim of 'source' for 'what' to the job called 'name', in place of
 * its previous claim, for user '*uid', NULL if unknown.  Returns the job, NULL
 * if there are too many of them or of claims. */
struct job *
registry_claim(struct registry *r, enum claim_source source, const char *name,
               const struct claim_what *what, const uint64_t *uid,
               long long now)
{
    struct job *job = registry_find(r, name);
    struct claim *claim;
    bool registered;

    if (!may_register(r, job, source, uid)) {
        r->n_refused += claim_source_is_registered(source);
        return NULL;
    } else if (!job && !(job = add_job(r, name, source, uid, now))) {
        return NULL;
    }
    registered = registry_is_registered(job);
    claim = registry_find_claim(r, source, what);
    if (claim) {
        count_claim(r, claim, -1);
    } else if (!(claim = add_claim(r, source, what, uid))) {
        return NULL; /* A new job ends with the next scan. */
    }
    claim->job = job;
    claim->has_uid = uid != NULL;
    claim->uid = uid ? *uid : 0;
    count_claim(r, claim, 1);
    if (claim_source_is_registered(source)) {
        register_job(r, job, registered, source, uid);
    } else if (uid && !job->has_uid) {
        registry_set_uid(r, job, source, *uid);
    }
    return job;
}

static void
leave_tree(struct registry *r, struct job *job)
{
    const struct claim_what what = { CLAIMS_CGROUP, job->cgroup };

    registry_unclaim(r, CLAIM_CGROUP, job->name, &what);
    job->cgroup = 0;
}

/* Notes that 'cgroup', which user 'uid' has created, belongs to the job called
 * 'name'.  Returns the job, NULL if there are too many.
 *
 * Root creates cgroups for all users; then the job has the user of its
 * processes, which the caller finds. */
struct job *
registry_see(struct registry *r, const char *name, uint64_t cgroup,
             uint64_t uid, long long now)
{
    const struct claim_what what = { CLAIMS_CGROUP, cgroup };
    struct job *job = registry_find(r, name);

    if (job && job->cgroup != cgroup) {
        leave_tree(r, job);
    }
    job = registry_claim(r, CLAIM_CGROUP, name, &what, uid ? &uid : NULL, now);
    if (job) {
        job->cgroup = cgroup;
        job->seen = true;
    }
    return job;
}

/* Removes the claim of 'source' for 'what' to the job called 'name'.  Returns
 * false without one. */
bool
registry_unclaim(struct registry *r, enum claim_source source,
                 const char *name, const struct claim_what *what)
{
    struct claim *claim = registry_find_claim(r, source, what);

    if (!claim || strcmp(claim->job->name, name)) {
        return false;
    }
    registry_drop_claim(r, claim);
    return true;
}

/* Notes that the job has no cgroup in the tree, and ends it if it has no other
 * claim. */
void
registry_leave(struct registry *r, struct job *job)
{
    leave_tree(r, job);
    if (!job->n_claims) {
        end_job(r, job);
    }
}

/* Ends a scan of the tree: what was not found has left. */
void
registry_end(struct registry *r)
{
    struct job *job;

    HMAP_FOR_EACH_SAFE (job, node, &r->jobs) {
        if (!job->seen) {
            registry_leave(r, job);
        }
    }
}

/* What people claim. */

const char *const claim_source_names[] = {
    [CLAIM_REGISTRATION] = "registration",
    [CLAIM_LAUNCHER] = "launcher",
    [CLAIM_CGROUP] = "cgroup",
    [CLAIM_ENVIRONMENT] = "environment",
};

const char *const claim_kind_names[] = {
    [CLAIMS_CGROUP] = "cgroup",
    [CLAIMS_NETNS] = "netns",
    [CLAIMS_PROCESS] = "pid",
};

static char *
parse_process(const char *text, struct claim_what *what)
{
    struct process process;
    int pid;

    if (!str_to_int(text, 10, &pid) || pid < 2) {
        return xasprintf(
            "pid: \"%.40s\" is not the id of a process; expected 2 and "
            "more",
            text);
    }
    if (!process_read(pid, &process)) {
        return xasprintf("pid: there is no process %d", pid);
    }
    what->id = pid;
    return NULL;
}

/* Takes ownership of 'path'. */
static char *
parse_path(const char *kind, char *path, bool directory,
           struct claim_what *what, char **pathp)
{
    struct stat s;
    char *error = NULL;

    if (stat(path, &s)) {
        error = xasprintf("%s: %.200s: %s", kind, path, ovs_strerror(errno));
    } else if (S_ISDIR(s.st_mode) != directory) {
        error = xasprintf("%s: %.200s is not a %s; expected one such as %s",
                          kind, path, kind,
                          directory ? "/kubepods.slice/a" : "/run/netns/a");
    } else {
        what->id = s.st_ino;
        *pathp = path;
        return NULL;
    }
    free(path);
    return error;
}

/* Parses 'kind', "cgroup", "netns" or "pid", and 'text' into '*what', and
 * stores the path in '*pathp', which the caller must free; NULL for a process.
 * The path of a cgroup may begin below 'cgroup_mount', as in /proc/PID/cgroup;
 * that is NULL without cgroup v2.  Returns NULL, or a malloc()'d message. */
char *
claim_what_parse(const char *kind, const char *text, const char *cgroup_mount,
                 struct claim_what *what, char **pathp)
{
    *pathp = NULL;
    if (!strcmp(kind, claim_kind_names[CLAIMS_PROCESS])) {
        what->kind = CLAIMS_PROCESS;
        return parse_process(text, what);
    }
    what->kind = !strcmp(kind, claim_kind_names[CLAIMS_NETNS]) ? CLAIMS_NETNS
                                                               : CLAIMS_CGROUP;
    if (what->kind == CLAIMS_CGROUP
        && strcmp(kind, claim_kind_names[CLAIMS_CGROUP])) {
        return xasprintf(
            "\"%.40s\" cannot be claimed; expected cgroup, netns or pid",
            kind);
    }
    if (text[0] != '/' || strstr(text, "/../")) {
        return xasprintf(
            "%s: \"%.200s\" is not a path; expected absolute ones without "
            "\"..\"",
            kind, text);
    }
    if (what->kind == CLAIMS_NETNS) {
        return parse_path(kind, xstrdup(text), false, what, pathp);
    }
    if (!cgroup_mount) {
        return xasprintf("cgroup: no cgroup v2 file system is mounted");
    }
    return parse_path(kind,
                      !strncmp(text, cgroup_mount, strlen(cgroup_mount))
                          ? xstrdup(text)
                          : xasprintf("%s%s", cgroup_mount, text),
                      true, what, pathp);
}
