/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/topology/elephants.h"

#include <stdlib.h>

#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "controller/southbound/topology/routes.h"
#include "policies/policy.h"
#include "util.h"

/* Traffic of a job at one host. */
struct end {
    int host;                   /* Index in the topology. */
    double bits[N_DIRS];        /* Remaining. */
};

struct demands {
    struct route_demand *a;
    size_t n, allocated;
};

static int
compare_ranks(const void *a_, const void *b_)
{
    const struct job *const *a = a_;
    const struct job *const *b = b_;

    return (*a)->rank < (*b)->rank ? -1 : (*a)->rank > (*b)->rank;
}

/* Returns the jobs that have a level and remaining iterations, by rank. */
static struct job **
ordered_jobs(const struct cluster *c, size_t *np)
{
    struct job **jobs = xcalloc(shash_count(&c->jobs) + 1, sizeof *jobs);
    const struct shash_node *node;
    size_t n = 0;

    SHASH_FOR_EACH (node, &c->jobs) {
        struct job *job = node->data;

        if (job->live && job->level >= 0 && job->stage
            && stage_is_running(job->stage)
            && demand_remaining_iterations(job->stage, job) > 0) {
            jobs[n++] = job;
        }
    }
    qsort(jobs, n, sizeof *jobs, compare_ranks);
    *np = n;
    return jobs;
}

static size_t
collect_ends(const struct job *job, const struct topology *t,
             struct end *ends)
{
    int64_t left = demand_remaining_iterations(job->stage, job);
    const struct shash_node *node;
    size_t n = 0;

    SHASH_FOR_EACH (node, &job->traffic) {
        const struct job_traffic *traffic = node->data;
        int host = topology_find_host(t, node->name);

        if (host >= 0) {
            struct end *end = &ends[n++];

            end->host = host;
            for (int dir = 0; dir < N_DIRS; dir++) {
                end->bits[dir] = 8.0 * left
                    * demand_per_iteration(job, traffic, dir);
            }
        }
    }
    return n;
}

static void
add_demand(struct demands *d, const struct topology *t, int src, int dst,
           uint8_t dscp, double bits)
{
    int64_t capacity = MIN(t->hosts[src].capacity, t->hosts[dst].capacity);

    if (t->hosts[src].at.sw == t->hosts[dst].at.sw) {
        return;
    }
    for (size_t i = 0; i < d->n; i++) {
        if (d->a[i].src == src && d->a[i].dst == dst
            && d->a[i].dscp == dscp) {
            d->a[i].bits += bits;
            return;
        }
    }
    if (bits < ELEPHANT_SECONDS * capacity || d->n >= ROUTES_MAX_PATHS) {
        return;
    }
    if (d->n == d->allocated) {
        d->a = x2nrealloc(d->a, &d->allocated, sizeof *d->a);
    }
    d->a[d->n++] = (struct route_demand) {
        .src = src, .dst = dst, .dscp = dscp, .bits = bits,
    };
}

static void
add_job(struct demands *d, const struct topology *t, const struct job *job,
        uint8_t dscp)
{
    struct end *ends = xcalloc(shash_count(&job->traffic) + 1, sizeof *ends);
    size_t n = collect_ends(job, t, ends);

    for (size_t i = 0; i < n; i++) {
        double others = 0;

        for (size_t j = 0; j < n; j++) {
            others += j != i ? ends[j].bits[DIR_RX] : 0;
        }
        for (size_t j = 0; others > 0 && j < n; j++) {
            if (j != i) {
                add_demand(d, t, ends[i].host, ends[j].host, dscp,
                           ends[i].bits[DIR_TX] * ends[j].bits[DIR_RX]
                           / others);
            }
        }
    }
    free(ends);
}

size_t
elephants_find(const struct cluster *c, const struct topology *t,
               const struct policy *policy, struct route_demand **demandsp)
{
    struct demands d = { .n = 0 };
    size_t n;
    struct job **jobs = ordered_jobs(c, &n);

    for (size_t i = 0; i < n; i++) {
        int level = MIN(jobs[i]->level, policy->n_levels - 1);

        add_job(&d, t, jobs[i], policy->dscp[level]);
    }
    free(jobs);
    *demandsp = d.a;
    return d.n;
}
