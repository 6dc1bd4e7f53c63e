/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/workload/workload-pattern.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "order/problem/memory.h"
#include "sim/workload/random.h"
#include "sim/workload/trial-curve.h"
#include "sim/workload/workload.h"
#include "wire/rungs.h"

void
workload_add_ps(struct workload_job *job, const int *workers, size_t n_workers,
                const int *servers, size_t n_servers, double bytes)
{
    for (size_t s = 0; s < n_servers; s++) {
        for (size_t w = 0; w < n_workers; w++) {
            double part = workers[w] == servers[s] ? 0 : bytes / n_servers;

            workload_add_transfer(job, workers[w], servers[s], part, s, 0);
            workload_add_transfer(job, servers[s], workers[w], part, s, 1);
        }
    }
}

void
workload_add_ring(struct workload_job *job, const int *hosts, size_t n,
                  double bytes)
{
    for (size_t i = 0; i < n; i++) {
        workload_add_transfer(job, hosts[i], hosts[(i + 1) % n],
                              bytes * 2 * (n - 1) / n, 0, 0);
    }
}

double
workload_curve_at(const struct workload_curve *curve, double iterations)
{
    if (curve->recorded) {
        double stretch = curve->stretch > 0 ? curve->stretch : 1;

        return curve->final
               + trial_curve_at(curve->recorded, stretch * iterations);
    }
    return curve->every
               ? curve->final
                     - curve->span * pow(iterations + 1, -curve->exponent)
               : 0;
}

void
workload_keep_best(struct workload_cojob *cojob)
{
    for (size_t r = 0; r + 1 < cojob->n_rungs; r++) {
        double k = cojob->rungs[r].iterations;

        for (size_t i = 1; i < cojob->rungs[r].n_jobs; i++) {
            struct workload_job job = cojob->jobs[i];
            double metric = workload_curve_at(&job.curve, k);
            size_t j = i;

            for (; j > 0 && workload_curve_at(&cojob->jobs[j - 1].curve, k)
                            < metric; j--) {
                cojob->jobs[j] = cojob->jobs[j - 1];
            }
            cojob->jobs[j] = job;
        }
    }
}

void
workload_add_rungs(struct workload *w, struct workload_cojob *cojob,
                   const struct search_method *method,
                   const struct search_rung *rungs, size_t n)
{
    struct workload_trials trials = {
        .places = method->places,
        .eta = method->eta,
        .n_brackets = method->n_brackets,
        .n_rungs = n,
        .rungs = order_alloc(n, sizeof *trials.rungs),
    };
    size_t n_jobs = cojob->n_jobs;

    for (size_t i = 0; i < n; i++) {
        trials.rungs[i] = rungs[i].iterations;
        if (!method->places) {
            workload_add_rung(w, cojob, rungs[i].iterations, n_jobs);
            n_jobs = rungs[i].keep;
        }
    }
    if (method->places) {
        workload_add_trials(w, cojob, &trials);
    } else {
        workload_keep_best(cojob);
    }
    free(trials.rungs);
}

/* Bytes that an exchange of 'job' puts on ports. */
static double
job_port_bytes(const struct workload_job *job)
{
    double bytes = 0;

    for (size_t i = 0; i < job->n_transfers; i++) {
        bytes += 2 * job->transfers[i].bytes;
    }
    return bytes;
}

/* Adds up what 'cojob' puts on ports in '*bytesp' and returns the seconds that
 * its slowest jobs take alone. */
static double
cojob_size(const struct workload_cojob *cojob, const struct sim_fabric *fabric,
           double *bytesp)
{
    double seconds = 0;
    double before = 0;

    for (size_t r = 0; r < cojob->n_rungs; r++) {
        double n = cojob->rungs[r].iterations - before;
        double longest = 0;

        for (size_t i = 0; i < cojob->rungs[r].n_jobs; i++) {
            const struct workload_job *job = &cojob->jobs[i];

            *bytesp += n * job_port_bytes(job);
            longest = fmax(longest, job->compute
                                    + workload_exchange_time(job, fabric));
        }
        seconds += n * longest;
        before = cojob->rungs[r].iterations;
    }
    return seconds;
}

void
workload_spread_arrivals(struct workload *w, double load)
{
    double bytes = 0, seconds = 0, last = 0, first = INFINITY, capacity = 0;
    double span;

    for (size_t i = 0; i < w->n_cojobs; i++) {
        seconds += cojob_size(&w->cojobs[i], w->fabric, &bytes) / w->n_cojobs;
        first = fmin(first, w->cojobs[i].arrival);
        last = fmax(last, w->cojobs[i].arrival);
    }
    for (int p = 0; p < 2 * w->fabric->n_hosts; p++) {
        capacity += w->fabric->capacity[p];
    }
    span = fmax(0, bytes / capacity / load - seconds);
    for (size_t i = 0; i < w->n_cojobs; i++) {
        double *arrival = &w->cojobs[i].arrival;

        *arrival = last > first ? (*arrival - first) / (last - first) * span
                   : 0;
    }
}

void
workload_draw_exchange(struct workload_job *job, struct sim_random *r,
                       int n_hosts, int n_workers, int n_servers, double bytes)
{
    int hosts[WORKLOAD_DRAW_MAX_HOSTS];
    int n = n_workers + n_servers;

    assert(n <= n_hosts && n <= WORKLOAD_DRAW_MAX_HOSTS);
    sim_random_pick(r, n_hosts, n, hosts);
    job->devices = n_workers;
    if (n_servers) {
        workload_add_ps(job, hosts + n_servers, n_workers, hosts, n_servers,
                        bytes);
    } else {
        workload_add_ring(job, hosts, n_workers, bytes);
    }
}

void
workload_draw_rest(struct workload_job *job, struct sim_random *r,
                   const struct sim_fabric *fabric, double share)
{
    job->compute = workload_exchange_time(job, fabric) * share / (1 - share)
                   * sim_random_between(r, 0.8, 1.2);
    job->curve.final = sim_random_between(r, 0.5, 0.99);
    job->curve.span = job->curve.final * sim_random_between(r, 0.5, 1);
    job->curve.exponent = sim_random_log_between(r, 0.3, 1.5);
    job->curve.every = 1;
}
