/* SPDX-License-Identifier: Apache-2.0 */

/* The cluster's cojobs, jobs and stages, which come and go with the intent. */

#include <config.h>

#include "controller/model/cluster-private.h"

#include <stdlib.h>
#include <string.h>

#include "controller/model/stages-digest.h"
#include "timeval.h"
#include "util.h"

static void
stage_destroy(struct stage *stage)
{
    shash_destroy_free_data(&stage->moved);
    free(stage->jobs);
    free(stage->cojob_name);
    free(stage);
}

static void
destroy_stages(struct ovs_list *stages)
{
    struct stage *stage;

    LIST_FOR_EACH_SAFE (stage, node, stages) {
        ovs_list_remove(&stage->node);
        stage_destroy(stage);
    }
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

    destroy_stages(&cojob->stages);
    SHASH_FOR_EACH (node, &cojob->jobs) {
        job_destroy(c, node->data);
    }
    shash_destroy(&cojob->jobs);
    free(cojob->name);
    free(cojob);
}

/* Frees all that the intent ever gave. */
void
cluster_intent_uninit(struct cluster *c)
{
    struct shash_node *node;

    SHASH_FOR_EACH (node, &c->cojobs) {
        cojob_destroy(c, node->data);
    }
    shash_destroy(&c->cojobs);
    shash_destroy(&c->jobs);
    destroy_stages(&c->ended);
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

        t->progress = PROGRESS_SOURCE_NONE;
        t->mark_iteration = t->counted = -1;
        t->counted_before = 0;
        t->measured = t->per_iteration[DIR_TX] = t->per_iteration[DIR_RX] = 0;
    }
    job->rest = PROGRESS_SOURCE_NONE;
    job->iteration = -1;
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
        job->rest = PROGRESS_SOURCE_NONE;
        job->iteration = -1;
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
