/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/cluster.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "controller/stages-digest.h"
#include "timeval.h"
#include "util.h"

struct cluster *
cluster_create(void)
{
    struct cluster *c = xzalloc(sizeof *c);

    shash_init(&c->hosts);
    shash_init(&c->cojobs);
    shash_init(&c->jobs);
    ovs_list_init(&c->ended);
    return c;
}

static void
stage_destroy(struct stage *stage)
{
    shash_destroy_free_data(&stage->moved);
    free(stage->jobs);
    free(stage->cojob_name);
    free(stage);
}

static void
job_destroy(struct cluster *c, struct job *job)
{
    shash_find_and_delete(&c->jobs, job->full_name);
    shash_destroy_free_data(&job->traffic);
    job_progress_uninit(&job->progress);
    free(job->full_name);
    free(job->name);
    free(job);
}

/* Stages refer to jobs, so they go first. */
static void
cojob_destroy(struct cluster *c, struct cojob *cojob)
{
    struct shash_node *node;
    struct stage *stage;

    LIST_FOR_EACH_SAFE (stage, node, &cojob->stages) {
        ovs_list_remove(&stage->node);
        stage_destroy(stage);
    }
    SHASH_FOR_EACH (node, &cojob->jobs) {
        job_destroy(c, node->data);
    }
    shash_destroy(&cojob->jobs);
    free(cojob->name);
    free(cojob);
}

void
cluster_destroy(struct cluster *c)
{
    struct shash_node *node;
    struct stage *stage;

    if (!c) {
        return;
    }
    SHASH_FOR_EACH (node, &c->cojobs) {
        cojob_destroy(c, node->data);
    }
    shash_destroy(&c->cojobs);
    shash_destroy(&c->jobs);
    LIST_FOR_EACH_SAFE (stage, node, &c->ended) {
        ovs_list_remove(&stage->node);
        stage_destroy(stage);
    }
    SHASH_FOR_EACH (node, &c->hosts) {
        struct host *host = node->data;

        simap_destroy(&host->ports);
        free(host->state);
        free(host->name);
        free(host);
    }
    shash_destroy(&c->hosts);
    free(c);
}

static void
clear_workers(struct job *job)
{
    struct shash_node *node;

    memset(job->workers, 0, sizeof job->workers);
    SHASH_FOR_EACH (node, &job->traffic) {
        struct job_traffic *t = node->data;

        memset(t->workers, 0, sizeof t->workers);
    }
}

/* Begins to give the whole intent again. */
void
cluster_intent_begin(struct cluster *c)
{
    struct shash_node *node, *job_node;

    SHASH_FOR_EACH (node, &c->hosts) {
        struct host *host = node->data;

        host->named = false;
    }
    SHASH_FOR_EACH (node, &c->cojobs) {
        struct cojob *cojob = node->data;
        struct stage *stage;

        cojob->seen = false;
        SHASH_FOR_EACH (job_node, &cojob->jobs) {
            struct job *job = job_node->data;

            job->seen = false;
            if (job->live) {
                clear_workers(job);
            }
        }
        LIST_FOR_EACH (stage, node, &cojob->stages) {
            stage->seen = false;
        }
    }
}

struct cojob *
cluster_put_cojob(struct cluster *c, const char *name, double weight,
                  bool running)
{
    struct cojob *cojob = shash_find_data(&c->cojobs, name);

    if (!cojob) {
        cojob = xzalloc(sizeof *cojob);
        cojob->name = xstrdup(name);
        shash_init(&cojob->jobs);
        ovs_list_init(&cojob->stages);
        shash_add(&c->cojobs, name, cojob);
    }
    cojob->seen = true;
    cojob->running = running;
    cojob->weight = weight;
    return cojob;
}

/* Returns the time_msec() of 'began', which is epoch ms. */
static long long
since_began(int64_t began)
{
    return time_msec() - MAX(0, time_wall_msec() - began);
}

/* A job of the same name began again: what was measured does not hold. */
static void
restart_job(struct job *job)
{
    struct shash_node *node;

    SHASH_FOR_EACH (node, &job->traffic) {
        struct job_traffic *t = node->data;

        t->iteration = t->mark_iteration = t->sampled = -1;
        t->counted = -1;
        t->counted_before = 0;
        t->measured = t->per_iteration[DIR_TX] = t->per_iteration[DIR_RX] = 0;
    }
    job->iteration = job->told = job->told_sampled = -1;
    job->counted = false;
    job_progress_uninit(&job->progress);
    job_progress_init(&job->progress, since_began(job->began));
}

/* Gives job 'name' of 'cojob', which began at 'began'. */
struct job *
cojob_put_job(struct cluster *c, struct cojob *cojob, const char *name,
              bool running, int64_t began, int64_t model_bytes)
{
    struct job *job = shash_find_data(&cojob->jobs, name);

    if (!job) {
        job = xzalloc(sizeof *job);
        job->cojob = cojob;
        job->name = xstrdup(name);
        job->full_name = xasprintf("%s/%s", cojob->name, name);
        job->iteration = job->told = job->told_sampled = -1;
        job->level = -1;
        job_progress_init(&job->progress, since_began(job->began));
        shash_init(&job->traffic);
        shash_add(&cojob->jobs, name, job);
        shash_add(&c->jobs, job->full_name, job);
    }
    if (job->began != began) {
        job->began = began;
        restart_job(job);
    }
    job->seen = true;
    job->live = running && cojob->running;
    job->model_bytes = model_bytes;
    return job;
}

/* Adds a process of 'job' on 'host'.  Searches that ended stay in the intent
 * for a while, with all their hosts: there is nothing to learn of them. */
void
job_put_worker(struct cluster *c, struct job *job, const char *host,
               enum role role)
{
    struct job_traffic *t;

    if (!job->live && job->placed) {
        return;
    }
    t = job_get_traffic(job, cluster_get_host(c, host));
    if (job->live) {
        t->workers[role]++;
        job->workers[role]++;
        t->host->named = true;
    }
}

static struct stage *
find_stage(const struct cojob *cojob, int rung, int64_t began)
{
    struct stage *stage;

    LIST_FOR_EACH (stage, node, &cojob->stages) {
        if (stage->rung == rung && stage->began == began) {
            return stage;
        }
    }
    return NULL;
}

/* Gives a stage of 'cojob', which is identified by its rung and when it
 * began.  Returns NULL if it had ended before the cluster heard of it: then
 * there is nothing to know of it. */
struct stage *
cojob_put_stage(struct cojob *cojob, int rung, int64_t began, int64_t ended,
                int64_t iterations)
{
    struct stage *stage = find_stage(cojob, rung, began);

    if (!stage) {
        if (ended || !cojob->running) {
            return NULL;
        }
        stage = xzalloc(sizeof *stage);
        stage->cojob = cojob;
        stage->cojob_name = xstrdup(cojob->name);
        stage->rung = rung;
        stage->began = began;
        stage->rank = -1;
        shash_init(&stage->moved);
        ovs_list_push_back(&cojob->stages, &stage->node);
    }
    stage->seen = true;
    stage->ended = ended;
    stage->iterations = iterations;
    stage->n_jobs = 0;
    return stage;
}

/* The job's traffic counts for 'stage' from now on. */
void
stage_put_job(struct stage *stage, struct job *job)
{
    if (stage->n_jobs >= stage->allocated_jobs) {
        stage->jobs = x2nrealloc(stage->jobs, &stage->allocated_jobs,
                                 sizeof *stage->jobs);
    }
    stage->jobs[stage->n_jobs++] = job;
    if (!stage->ended && job->stage != stage) {
        job->previous = job->stage;
        job->stage = stage;
        job->sent = 0;
        job_progress_pause(&job->progress);
    }
}

static void
forget_stage(struct cluster *c, const struct stage *stage)
{
    struct shash_node *node;

    SHASH_FOR_EACH (node, &c->jobs) {
        struct job *job = node->data;

        if (job->stage == stage) {
            job->stage = NULL;
        }
        if (job->previous == stage) {
            job->previous = NULL;
        }
    }
}

/* Moves a stage that has ended into the history. */
static void
bury_stage(struct cluster *c, struct stage *stage)
{
    ovs_list_remove(&stage->node);
    stage->cojob = NULL;
    stage->n_jobs = 0;
    ovs_list_push_front(&c->ended, &stage->node);
    if (++c->n_ended > CLUSTER_MAX_ENDED) {
        struct stage *oldest = CONTAINER_OF(ovs_list_pop_back(&c->ended),
                                            struct stage, node);

        forget_stage(c, oldest);
        stage_destroy(oldest);
        c->n_ended--;
    }
}

/* Ends the stages and removes the jobs and cojobs that were not given since
 * cluster_intent_begin(). */
void
cluster_intent_end(struct cluster *c)
{
    struct shash_node *node, *job_node;
    uint32_t digest;

    SHASH_FOR_EACH_SAFE (node, &c->cojobs) {
        struct cojob *cojob = node->data;
        struct stage *stage;

        LIST_FOR_EACH_SAFE (stage, node, &cojob->stages) {
            if (!stage->seen) {
                forget_stage(c, stage);
                ovs_list_remove(&stage->node);
                stage_destroy(stage);
            } else if (stage->ended) {
                bury_stage(c, stage);
            }
        }
        SHASH_FOR_EACH_SAFE (job_node, &cojob->jobs) {
            struct job *job = job_node->data;

            if (!job->seen || !cojob->seen) {
                shash_delete(&cojob->jobs, job_node);
                job_destroy(c, job);
            } else {
                job->placed = true;
            }
        }
        if (!cojob->seen) {
            shash_delete(&c->cojobs, node);
            cojob_destroy(c, cojob);
        }
    }
    digest = stages_digest(c);
    if (digest != c->digest) {
        c->digest = digest;
        c->changes++;
    } else {
        c->minor++;
    }
}

/* Returns the host 'name', which comes into being when it is first named. */
struct host *
cluster_get_host(struct cluster *c, const char *name)
{
    struct host *host = shash_find_data(&c->hosts, name);

    if (!host) {
        host = xzalloc(sizeof *host);
        host->name = xstrdup(name);
        host->index = c->n_hosts++;
        host->state = xstrdup("");
        simap_init(&host->ports);
        shash_add(&c->hosts, name, host);
    }
    return host;
}

/* 'ports' are capacities in kbit/s. */
void
host_set_ports(struct cluster *c, struct host *host,
               const struct simap *ports)
{
    const struct simap_node *node;
    double bps = 0;

    if (simap_equal(&host->ports, ports)) {
        return;
    }
    SIMAP_FOR_EACH (node, ports) {
        bps += node->data * 1e3;
    }
    simap_clear(&host->ports);
    SIMAP_FOR_EACH (node, ports) {
        simap_put(&host->ports, node->name, node->data);
    }
    host->capacity_bps = bps;
    c->changes++;
}

/* Bits per second of each direction, never 0. */
double
host_capacity(const struct host *host)
{
    return host->capacity_bps > 0 ? host->capacity_bps : CLUSTER_UNKNOWN_BPS;
}

/* The host shall have the order of 'version'. */
void
host_set_wanted(struct host *host, int64_t version)
{
    if (host->applied >= host->wanted) {
        host->in_step = time_msec();    /* Until now. */
    }
    host->wanted = version;
}

/* The host has the order of 'version' in force. */
void
host_set_applied(struct host *host, int64_t version)
{
    if (version != host->applied || version >= host->wanted) {
        host->in_step = time_msec();
    }
    host->applied = version;
}

/* Has the host not done for some time what it shall do? */
bool
host_is_late(const struct host *host)
{
    return (host->connected && host->applied < host->wanted
            && time_msec() > host->in_step + CLUSTER_LATE_MS);
}

struct job_traffic *
job_get_traffic(struct job *job, struct host *host)
{
    struct job_traffic *t = shash_find_data(&job->traffic, host->name);

    if (!t) {
        t = xzalloc(sizeof *t);
        t->host = host;
        t->iteration = -1;
        t->counted = -1;
        t->mark_iteration = -1;
        t->sampled = -1;
        shash_add(&job->traffic, host->name, t);
    }
    return t;
}

bool
stage_is_running(const struct stage *stage)
{
    return stage->cojob && !stage->ended && stage->cojob->running;
}

static int
compare_stages(const void *a_, const void *b_)
{
    const struct stage *a = *(const struct stage *const *) a_;
    const struct stage *b = *(const struct stage *const *) b_;
    int cmp;

    if (a->began != b->began) {
        return a->began < b->began ? -1 : 1;
    }
    cmp = strcmp(a->cojob_name, b->cojob_name);
    return cmp ? cmp : a->rung < b->rung ? -1 : a->rung > b->rung;
}

/* Returns the '*np' running stages, the oldest first, in an array that the
 * caller frees. */
struct stage **
cluster_running_stages(const struct cluster *c, size_t *np)
{
    struct stage **stages = NULL;
    size_t n = 0, allocated = 0;
    struct shash_node *node;

    SHASH_FOR_EACH (node, &c->cojobs) {
        struct cojob *cojob = node->data;
        struct stage *stage;

        LIST_FOR_EACH (stage, node, &cojob->stages) {
            if (!stage_is_running(stage)) {
                continue;
            }
            if (n >= allocated) {
                stages = x2nrealloc(stages, &allocated, sizeof *stages);
            }
            stages[n++] = stage;
        }
    }
    if (n) {
        qsort(stages, n, sizeof *stages, compare_stages);
    }
    *np = n;
    return stages;
}

/* "COJOB/rung N", for people; the caller frees. */
char *
stage_to_string(const struct stage *stage)
{
    return xasprintf("%s/rung %d", stage->cojob_name, stage->rung);
}

struct stage_bytes *
stage_get_bytes(struct stage *stage, struct host *host)
{
    struct stage_bytes *b = shash_find_data(&stage->moved, host->name);

    if (!b) {
        b = xzalloc(sizeof *b);
        b->host = host;
        shash_add(&stage->moved, host->name, b);
    }
    return b;
}
