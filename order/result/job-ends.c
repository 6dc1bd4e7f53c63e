/* SPDX-License-Identifier: Apache-2.0 */

#include "order/result/job-ends.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "order/problem/memory.h"
#include "order/problem/problem.h"

/* Share of a port that counts as nothing. */
#define MIN_SHARE 1e-9

/* Returns the pace of 'job', iterations per second, and takes what it needs
 * from the shares of the ports that are 'left'. */
static double
take_pace(const struct job_end *job, double *left)
{
    double pace = job->period > 0 ? 1 / job->period : INFINITY;

    for (size_t i = 0; i < job->n_demands; i++) {
        const struct order_demand *d = &job->demands[i];

        if (d->seconds > 0) {
            pace = fmin(pace, left[d->port] > MIN_SHARE
                              ? left[d->port] / d->seconds : 0);
        }
    }
    for (size_t i = 0; i < job->n_demands; i++) {
        const struct order_demand *d = &job->demands[i];

        if (d->seconds > 0) {
            left[d->port] = fmax(left[d->port] - pace * d->seconds, 0);
        }
    }
    return pace;
}

/* Sets the paces of the jobs that have not ended.  Returns the time until the
 * next of them ends, or INFINITY. */
static double
find_paces(const struct job_end *jobs, size_t n, const double *iterations,
           double *left, int n_ports, double *paces)
{
    double next = INFINITY;

    for (int port = 0; port < n_ports; port++) {
        left[port] = 1;
    }
    for (size_t k = 0; k < n; k++) {
        paces[k] = iterations[k] > 0 ? take_pace(&jobs[k], left) : 0;
        if (paces[k] > 0) {
            next = fmin(next, iterations[k] / paces[k]);
        }
    }
    return next;
}

void
job_ends_predict(struct job_end *jobs, size_t n, int n_ports)
{
    double *iterations = order_alloc(n, sizeof *iterations);
    double *paces = order_alloc(n, sizeof *paces);
    double *left = order_alloc(n_ports, sizeof *left);
    double now = 0, next;

    for (size_t k = 0; k < n; k++) {
        iterations[k] = jobs[k].iterations;
        jobs[k].end = 0;
    }
    while (isfinite(next = find_paces(jobs, n, iterations, left, n_ports,
                                      paces))) {
        now += next;
        for (size_t k = 0; k < n; k++) {
            if (paces[k] > 0) {
                /* At least one job ends in each round, in spite of errors of
                 * rounding. */
                bool ends = iterations[k] / paces[k] <= next * (1 + 1e-12);

                iterations[k] = ends ? 0 : iterations[k] - paces[k] * next;
                jobs[k].end = ends ? now : jobs[k].end;
            }
        }
    }
    free(left);
    free(paces);
    free(iterations);
}
