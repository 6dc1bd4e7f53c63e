/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/views/fair-estimate.h"

#include <stdlib.h>

#include "controller/decide/decide-rows.h"
#include "util.h"

/* Demand of one job on one port. */
struct need {
    int port;
    size_t job;
    double seconds;
};

static int
compare_needs(const void *a_, const void *b_)
{
    const struct need *a = a_, *b = b_;

    return (a->port != b->port ? (a->port < b->port ? -1 : 1)
            : a->seconds < b->seconds ? -1 : a->seconds > b->seconds);
}

/* Returns the demands of all jobs, sorted by port and then by size. */
static struct need *
collect(const struct decide_rows *rows, size_t *np)
{
    struct need *needs;
    size_t n = 0;

    for (size_t i = 0; i < rows->n_jobs; i++) {
        n += rows->jobs[i].n_demands;
    }
    needs = xcalloc(MAX(n, 1), sizeof *needs);
    *np = n;
    n = 0;
    for (size_t i = 0; i < rows->n_jobs; i++) {
        const struct job_row *job = &rows->jobs[i];

        for (size_t k = 0; k < job->n_demands; k++) {
            needs[n++] = (struct need) {
                job->demands[k].port, i, job->iterations * job->demands[k].seconds,
            };
        }
    }
    qsort(needs, n, sizeof *needs, compare_needs);
    return needs;
}

/* Raises the 'ends' of jobs to the time at which their port has served them.
 * The first 'n' of 'needs' are of this port. */
static void
share_port(const struct need *needs, size_t n, double *ends)
{
    double served = 0;

    for (size_t i = 0; i < n; i++) {
        double end = served + needs[i].seconds * (n - i);

        ends[needs[i].job] = MAX(ends[needs[i].job], end);
        served += needs[i].seconds;
    }
}

/* Returns the completion time of each job, which the caller frees. */
static double *
find_ends(const struct decide_rows *rows)
{
    double *ends = xcalloc(MAX(rows->n_jobs, 1), sizeof *ends);
    size_t n;
    struct need *needs = collect(rows, &n);

    for (size_t i = 0; i < rows->n_jobs; i++) {
        ends[i] = rows->jobs[i].isolated;
    }
    for (size_t i = 0, k = 0; i < n; i = k) {
        while (k < n && needs[k].port == needs[i].port) {
            k++;
        }
        share_port(&needs[i], k - i, ends);
    }
    free(needs);
    return ends;
}

void
fair_estimate(const struct decide_rows *rows, double *order_s,
              double *fair_s)
{
    double *ends = find_ends(rows);
    double *stages = xcalloc(MAX(rows->n_stages, 1), sizeof *stages);

    for (size_t i = 0; i < rows->n_jobs; i++) {
        double *stage = &stages[rows->jobs[i].stage];

        *stage = MAX(*stage, ends[i]);
    }
    *order_s = *fair_s = 0;
    for (size_t k = 0; k < rows->n_stages; k++) {
        *order_s += rows->stages[k].completion / rows->n_stages;
        *fair_s += stages[k] / rows->n_stages;
    }
    free(stages);
    free(ends);
}
