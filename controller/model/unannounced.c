/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/unannounced.h"

#include <stdlib.h>
#include <string.h>

#include "controller/model/cluster.h"
#include "controller/model/telemetry-report.h"
#include "timeval.h"
#include "util.h"

#define MAX_JOBS 4096
#define SILENT_MS 10000 /* Until a job without a report has ended. */
#define LONGEST_MS 3600000

/* Last values that a host has reported. */
struct counters {
    uint64_t bytes[N_DIRS];
    double busy, waited;
    int gpus;
    int64_t iteration;
};

struct unannounced_job {
    struct stage *stage;
    struct stage_part *part; /* Of 'stage'. */
    struct shash counters;   /* Host name -> struct counters. */
    long long began, seen;   /* time_msec(). */
};

struct unannounced {
    struct shash jobs; /* "COJOB/JOB" -> struct unannounced_job. */
};

struct unannounced *
unannounced_create(void)
{
    struct unannounced *u = xmalloc(sizeof *u);

    shash_init(&u->jobs);
    return u;
}

static void
job_destroy(struct unannounced_job *job)
{
    stage_destroy(job->stage);
    shash_destroy_free_data(&job->counters);
    free(job);
}

void
unannounced_destroy(struct unannounced *u)
{
    struct shash_node *node;

    SHASH_FOR_EACH (node, &u->jobs) {
        job_destroy(node->data);
    }
    shash_destroy(&u->jobs);
    free(u);
}

static void
begin_stage(struct unannounced_job *job, const char *name, int rung,
            int64_t began, long long now)
{
    const char *slash = strchr(name, '/');
    char *cojob = xmemdup0(name, slash - name);

    job->stage = stage_create(cojob, rung, began);
    job->part = stage_get_part(job->stage, slash + 1);
    job->began = now;
    free(cojob);
}

/* Adds what 'host' has counted since 'last' to the stage. */
static void
add_difference(struct unannounced_job *job, struct host *host,
               const struct counters *last, const struct counters *new)
{
    struct stage_bytes *b = stage_get_bytes(&job->part->moved, host);
    struct stage_bytes *whole = stage_get_bytes(&job->stage->moved, host);

    for (int dir = 0; dir < N_DIRS; dir++) {
        uint64_t bytes = (new->bytes[dir] > last->bytes[dir]
                              ? new->bytes[dir] - last->bytes[dir]
                              : 0);

        b->bytes[dir] += bytes;
        whole->bytes[dir] += bytes;
        host->moved[dir] += bytes;
    }
    b->gpus = MAX(b->gpus, new->gpus);
    b->busy += MAX(0, new->busy - last->busy);
    b->waited += MAX(0, new->waited - last->waited);
}

static void
count(struct unannounced_job *job, struct host *host,
      const struct counters *new, bool first)
{
    struct counters *last = shash_find_data(&job->counters, host->name);
    static const struct counters zero;

    if (!first) {
        add_difference(job, host, last ? last : &zero, new);
        job->stage->done =
            MAX(job->stage->done,
                MAX(0, new->iteration) - job->stage->first_iteration);
    }
    if (!last) {
        last = xmalloc(sizeof *last);
        shash_add(&job->counters, host->name, last);
    }
    *last = *new;
}

void
unannounced_learn(struct unannounced *u, struct host *host,
                  const struct telemetry_job *tj, bool first, long long now)
{
    const struct counters new = { .bytes = { tj->tx_bytes, tj->rx_bytes },
                                  .busy = tj->busy,
                                  .gpus = tj->gpus,
                                  .waited = tj->waited,
                                  .iteration =
                                      MAX(tj->iteration, tj->estimated) };
    struct unannounced_job *job = shash_find_data(&u->jobs, tj->name);

    if (!job) {
        if (shash_count(&u->jobs) >= MAX_JOBS) {
            return;
        }
        job = xzalloc(sizeof *job);
        shash_init(&job->counters);
        begin_stage(job, tj->name, 0, time_wall_msec(), now);
        job->stage->first_iteration = first ? MAX(0, new.iteration) : 0;
        shash_add(&u->jobs, tj->name, job);
    }
    job->seen = now;
    count(job, host, &new, first);
}

/* Returns the stage of 'job', which has ended.  The job is removed, or goes on
 * with another stage. */
static struct stage *
end_stage(struct unannounced *u, struct shash_node *node, bool goes_on)
{
    struct unannounced_job *job = node->data;
    struct stage *stage = job->stage;

    stage->ended = stage->began + (job->seen - job->began);
    if (goes_on) {
        begin_stage(job, node->name, stage->rung + 1, stage->ended, job->seen);
        job->stage->first_iteration = stage->first_iteration + stage->done;
    } else {
        job->stage = NULL;
        job_destroy(job);
        shash_delete(&u->jobs, node);
    }
    return stage;
}

struct stage *
unannounced_take(struct unannounced *u, const struct shash *announced,
                 long long now)
{
    struct shash_node *node;

    SHASH_FOR_EACH (node, &u->jobs) {
        const struct unannounced_job *job = node->data;
        bool ended = !announced || now > job->seen + SILENT_MS
                     || shash_find(announced, node->name);

        if (ended || now > job->began + LONGEST_MS) {
            return end_stage(u, node, !ended);
        }
    }
    return NULL;
}
