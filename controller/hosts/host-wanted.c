/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/hosts/host-wanted.h"

#include <stdbool.h>
#include <stdlib.h>

#include "controller/model/cluster.h"
#include "policies/policy.h"
#include "util.h"

/* The jobs of a host. */
struct job_list {
    const struct job **a;
    size_t n, allocated;
};

static void
add_job(struct host_jobs *jobs, const char *host, const struct job *job)
{
    struct job_list *list = shash_find_data(&jobs->by_host, host);

    if (!list) {
        list = xzalloc(sizeof *list);
        shash_add(&jobs->by_host, host, list);
    }
    if (list->n == list->allocated) {
        list->a = x2nrealloc(list->a, &list->allocated, sizeof *list->a);
    }
    list->a[list->n++] = job;
}

void
host_jobs_init(struct host_jobs *jobs, const struct cluster *c)
{
    const struct shash_node *node, *place;

    shash_init(&jobs->by_host);
    if (!c) {
        return;
    }
    SHASH_FOR_EACH (node, &c->jobs) {
        const struct job *job = node->data;

        if (!job->live) {
            continue;
        }
        SHASH_FOR_EACH (place, &job->traffic) {
            add_job(jobs, place->name, job);
        }
        SHASH_FOR_EACH (place, &job->refused) {
            if (!shash_find(&job->traffic, place->name)) {
                add_job(jobs, place->name, job);
            }
        }
    }
}

void
host_jobs_uninit(struct host_jobs *jobs)
{
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &jobs->by_host) {
        free(((struct job_list *) node->data)->a);
    }
    shash_destroy_free_data(&jobs->by_host);
}

/* Adds 'job', which has a place on 'host', to 'w'. */
static void
add_wanted(struct host_wanted *w, const struct job *job,
           const struct host *host, bool shares)
{
    const struct job_refusal *refusal =
        shash_is_empty(&job->refused) ? NULL : job_refusal(job, host->name);

    if (!refusal && !shash_find(&job->traffic, host->name)) {
        return;
    }
    if (job->cojob->uid) {
        w->owned[w->n_owned] = job->full_name;
        w->owners[w->n_owned++] = job->cojob->uid;
    }
    if (job->level >= 0 && job->override != OVERRIDE_EXCLUDE
        && (!refusal || refusal->reason == MEMBERSHIP_ELSEWHERE)) {
        w->names[w->n] = job->full_name;
        w->ranks[w->n] = shares ? job->level : job->key;
        w->levels[w->n] = job->level;
        w->weights[w->n] = job->cojob->weight;
        w->n++;
    }
}

void
host_wanted_init(struct host_wanted *w, const struct host_jobs *jobs,
                 const struct policy *policy, const struct host *host)
{
    const struct job_list *list = shash_find_data(&jobs->by_host, host->name);
    bool shares =
        order_classes[policy->order.kind].service == ORDER_SERVICE_SHARE;
    size_t max = list ? list->n : 0;

    *w = (struct host_wanted){ .names = xmalloc(max * sizeof *w->names),
                               .ranks = xmalloc(max * sizeof *w->ranks),
                               .levels = xmalloc(max * sizeof *w->levels),
                               .weights = xmalloc(max * sizeof *w->weights),
                               .owned = xmalloc(max * sizeof *w->owned),
                               .owners = xmalloc(max * sizeof *w->owners) };
    for (size_t i = 0; i < max; i++) {
        add_wanted(w, list->a[i], host, shares);
    }
}

void
host_wanted_uninit(struct host_wanted *w)
{
    free(w->names);
    free(w->ranks);
    free(w->levels);
    free(w->weights);
    free(w->owned);
    free(w->owners);
}
