/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/silence.h"

#include <stdlib.h>

#include "controller/model/cluster.h"
#include "util.h"

/* A host that has not named a job for so long does not. */
#define NAMED_MS 5000

static bool
may_work(const struct job *job, int64_t now)
{
    const struct shash_node *node;

    if (!job->live) {
        return false;
    }
    SHASH_FOR_EACH (node, &job->traffic) {
        const struct job_traffic *t = node->data;

        if (!t->host->connected || now < t->at + NAMED_MS) {
            return true;
        }
    }
    return shash_is_empty(&job->traffic);
}

static bool
stage_may_be_worked_on(const struct stage *stage, int64_t now)
{
    for (size_t i = 0; i < stage->n_jobs; i++) {
        if (may_work(stage->jobs[i], now)) {
            return true;
        }
    }
    return !stage->n_jobs;
}

static bool
cojob_may_be_worked_on(const struct cojob *cojob, int64_t now)
{
    const struct shash_node *node;
    const struct stage *stage;

    LIST_FOR_EACH (stage, node, &cojob->stages) {
        if (stage_is_running(stage)) {
            return true;
        }
    }
    SHASH_FOR_EACH (node, &cojob->jobs) {
        if (may_work(node->data, now)) {
            return true;
        }
    }
    return shash_is_empty(&cojob->jobs);
}

static void
look_at_cojobs(struct cluster *c, int64_t now)
{
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &c->cojobs) {
        struct cojob *cojob = node->data;

        if (!cojob->worked_on || !cojob->running
            || cojob_may_be_worked_on(cojob, now)) {
            cojob->worked_on = now;
        }
        cojob->silent = now >= cojob->worked_on + SILENCE_COJOB_MS;
    }
}

void
silence_run(struct cluster *c, int64_t now)
{
    struct stage **stages;
    size_t n;

    stages = cluster_running_stages(c, &n);
    for (size_t i = 0; i < n; i++) {
        struct stage *stage = stages[i];

        if (!stage->worked_on || stage_may_be_worked_on(stage, now)) {
            stage->worked_on = now;
        }
        stage->silent = now >= stage->worked_on + SILENCE_MS;
    }
    free(stages);
    look_at_cojobs(c, now);
}
