/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/intent-digest.h"

#include <stdlib.h>

#include "controller/model/cluster.h"
#include "hash.h"

/* Does not depend on the order of hosts in 'traffic'. */
static uint32_t
digest_workers(const struct job *job)
{
    const struct shash_node *node;
    uint32_t sum = 0;

    SHASH_FOR_EACH (node, &job->traffic) {
        const struct job_traffic *t = node->data;

        sum += hash_bytes(t->workers, sizeof t->workers, t->host->index);
    }
    return sum;
}

static uint32_t
digest_stage(const struct stage *stage)
{
    uint32_t digest = hash_string(stage->cojob_name, stage->rung);

    digest = hash_add64(digest, stage->began);
    digest = hash_add64(digest, stage->iterations);
    digest = hash_double(stage->trials.eta, digest);
    digest = hash_add64(digest, stage->trials.order);
    digest = hash_add64(digest, stage->trials.to_come);
    for (size_t i = 0; i < stage->trials.n; i++) {
        digest = hash_add64(digest, stage->trials.rungs[i].iterations);
    }
    digest = hash_double(stage->cojob->weight, digest);
    digest =
        hash_string(stage->cojob->owner ? stage->cojob->owner : "", digest);
    digest = hash_add64(digest, stage->cojob->uid);
    for (size_t i = 0; i < stage->n_jobs; i++) {
        const struct job *job = stage->jobs[i];

        digest = hash_string(job->name, digest);
        digest = hash_add64(digest, job->live);
        digest = hash_add64(digest, job->began);
        digest = hash_add64(digest, job->model_bytes);
        digest = hash_add(digest, digest_workers(job));
    }
    return digest;
}

uint32_t
intent_digest(const struct cluster *c)
{
    struct stage **stages;
    uint32_t digest = 0;
    size_t n;

    stages = cluster_running_stages(c, &n);
    for (size_t i = 0; i < n; i++) {
        digest = hash_add(digest, digest_stage(stages[i]));
    }
    free(stages);
    return hash_finish(digest, n);
}
