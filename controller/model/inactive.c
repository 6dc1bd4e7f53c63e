/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/inactive.h"

#include <stdlib.h>

#include "controller/model/cluster.h"

/* A process counts as running for this time after its last report. */
#define REPORTED_MS 5000

/* Returns true unless all hosts of the job are connected and none has reported
 * the job recently. */
static bool
may_be_running(const struct job *job, long long now)
{
    const struct shash_node *node;

    if (!job->live) {
        return false;
    }
    SHASH_FOR_EACH (node, &job->traffic) {
        const struct job_traffic *t = node->data;

        if (!t->host->connected || now < t->at + REPORTED_MS) {
            return true;
        }
    }
    return shash_is_empty(&job->traffic);
}

static bool
stage_may_be_active(const struct stage *stage, long long now)
{
    for (size_t i = 0; i < stage->n_jobs; i++) {
        if (may_be_running(stage->jobs[i], now)) {
            return true;
        }
    }
    return !stage->n_jobs;
}

static bool
cojob_may_be_active(const struct cojob *cojob, long long now)
{
    const struct shash_node *node;
    const struct stage *stage;

    LIST_FOR_EACH (stage, node, &cojob->stages) {
        if (stage_is_running(stage)) {
            return true;
        }
    }
    SHASH_FOR_EACH (node, &cojob->jobs) {
        if (may_be_running(node->data, now)) {
            return true;
        }
    }
    return shash_is_empty(&cojob->jobs);
}

static void
check_cojobs(struct cluster *c, long long now)
{
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &c->cojobs) {
        struct cojob *cojob = node->data;

        if (!cojob->last_active || !cojob->running
            || cojob_may_be_active(cojob, now)) {
            cojob->last_active = now;
        }
        cojob->inactive = now >= cojob->last_active + INACTIVE_COJOB_MS;
    }
}

void
inactive_run(struct cluster *c, long long now)
{
    struct stage **stages;
    size_t n;

    stages = cluster_running_stages(c, &n);
    for (size_t i = 0; i < n; i++) {
        struct stage *stage = stages[i];

        if (!stage->last_active || stage_may_be_active(stage, now)) {
            stage->last_active = now;
        }
        stage->inactive = now >= stage->last_active + INACTIVE_MS;
    }
    free(stages);
    check_cojobs(c, now);
}
