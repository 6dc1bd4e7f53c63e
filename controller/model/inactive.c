/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/inactive.h"

#include <stdlib.h>

#include "controller/model/cluster.h"
#include "util.h"

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

/* Returns true if a host has reported 'job' recently, or its reports may be
 * missing. */
static bool
may_have_joined(const struct job *job, long long now)
{
    return (job->progress.last >= 0
            || (!shash_is_empty(&job->traffic) && may_be_running(job, now)));
}

/* Returns true if iterations of 'job' are known to send bytes that hosts
 * count. */
static bool
is_seen_to_send(const struct job *job)
{
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &job->traffic) {
        const struct job_traffic *t = node->data;

        if (t->measured && t->per_iteration[DIR_TX] > 0) {
            return true;
        }
    }
    return false;
}

enum stage_idle
stage_find_idle(const struct stage *stage, long long now)
{
    long long wait_ms = STAGE_TRAFFIC_MS;
    bool joined = false, should_send = true;

    if (now < stage->known_at + STAGE_JOIN_MS || stage_has_moved(stage)
        || (stage->trials.n && !stage->n_jobs)) {
        return STAGE_BUSY;
    }
    for (size_t i = 0; i < stage->n_jobs; i++) {
        const struct job *job = stage->jobs[i];

        if (job->progress.mark_at) {
            return STAGE_BUSY; /* It has made progress. */
        }
        joined |= may_have_joined(job, now);
        should_send &= is_seen_to_send(job);
        wait_ms = MAX(wait_ms, 10000 * job->progress.period);
    }
    return (!joined ? STAGE_NO_PROCESS
            : should_send && now >= stage->known_at + wait_ms
                ? STAGE_NO_TRAFFIC
                : STAGE_BUSY);
}

static bool
stage_may_be_active(const struct stage *stage, long long now)
{
    for (size_t i = 0; i < stage->n_jobs; i++) {
        if (may_be_running(stage->jobs[i], now)) {
            return true;
        }
    }
    return !stage->n_jobs && !stage->trials.n;
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
