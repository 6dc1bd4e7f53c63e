/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/registry.h"

#include <stdlib.h>
#include <string.h>

#include "agent/progress/iterations.h"
#include "hash.h"
#include "util.h"

/* A cgroup and whose it is: the job's own and those below it. */
struct registry_cgroup {
    struct hmap_node node;      /* In struct registry's 'cgroups', by 'id'. */
    uint64_t id;
    struct job *job;
    bool seen;
};

void
registry_init(struct registry *r)
{
    hmap_init(&r->jobs);
    hmap_init(&r->cgroups);
    r->n_refused = 0;
}

static void
forget_cgroup(struct registry *r, struct registry_cgroup *c)
{
    hmap_remove(&r->cgroups, &c->node);
    free(c);
}

/* Frees 'job' and forgets its cgroups. */
void
registry_remove(struct registry *r, struct job *job)
{
    struct registry_cgroup *c;

    HMAP_FOR_EACH_SAFE (c, node, &r->cgroups) {
        if (c->job == job) {
            forget_cgroup(r, c);
        }
    }
    hmap_remove(&r->jobs, &job->node);
    iterations_destroy(job->counted);
    free(job->name);
    free(job);
}

void
registry_uninit(struct registry *r)
{
    struct job *job;

    HMAP_FOR_EACH_SAFE (job, node, &r->jobs) {
        registry_remove(r, job);
    }
    hmap_destroy(&r->jobs);
    hmap_destroy(&r->cgroups);
}

/* Returns the job called 'name', NULL if there is none. */
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

static struct registry_cgroup *
find_cgroup(const struct registry *r, uint64_t id)
{
    struct registry_cgroup *c;

    HMAP_FOR_EACH_WITH_HASH (c, node, hash_uint64(id), &r->cgroups) {
        if (c->id == id) {
            return c;
        }
    }
    return NULL;
}

/* Returns the job that sockets of 'cgroup' belong to, NULL if none does. */
struct job *
registry_job_of_cgroup(const struct registry *r, uint64_t cgroup)
{
    struct registry_cgroup *c = find_cgroup(r, cgroup);

    return c ? c->job : NULL;
}

/* Begins a look at the tree. */
void
registry_begin(struct registry *r)
{
    struct registry_cgroup *c;
    struct job *job;

    HMAP_FOR_EACH (job, node, &r->jobs) {
        job->seen = false;
    }
    HMAP_FOR_EACH (c, node, &r->cgroups) {
        c->seen = false;
    }
}

static struct job *
add_job(struct registry *r, const char *name, long long now)
{
    struct job *job;

    if (hmap_count(&r->jobs) >= REGISTRY_MAX_JOBS) {
        r->n_refused++;
        return NULL;
    }
    job = xzalloc(sizeof *job);
    job->name = xstrdup(name);
    job->since = now;
    hmap_insert(&r->jobs, &job->node, hash_string(name, 0));
    return job;
}

/* Notes that the tree has 'cgroup' as that of the job called 'name', or, if
 * 'below', as one of those below the job's.  A job must be seen before what is
 * below it.  Returns the job, NULL if there are too many. */
struct job *
registry_see(struct registry *r, const char *name, uint64_t cgroup,
             bool below, long long now)
{
    struct job *job = registry_find(r, name);
    struct registry_cgroup *c;

    if (!job && (below || !(job = add_job(r, name, now)))) {
        return NULL;
    }
    if (!below) {
        job->seen = true;
        job->cgroup = cgroup;
    }
    c = find_cgroup(r, cgroup);
    if (!c) {
        c = xmalloc(sizeof *c);
        c->id = cgroup;
        hmap_insert(&r->cgroups, &c->node, hash_uint64(cgroup));
    }
    c->job = job;
    c->seen = true;
    return job;
}

/* Ends a look at the tree: forgets what was not seen.  Calls 'gone' with 'aux'
 * for each job before it goes. */
void
registry_end(struct registry *r, registry_job_func *gone, void *aux)
{
    struct registry_cgroup *c;
    struct job *job;

    HMAP_FOR_EACH_SAFE (c, node, &r->cgroups) {
        if (!c->seen) {
            forget_cgroup(r, c);
        }
    }
    HMAP_FOR_EACH_SAFE (job, node, &r->jobs) {
        if (!job->seen) {
            gone(job, aux);
            registry_remove(r, job);
        }
    }
}
