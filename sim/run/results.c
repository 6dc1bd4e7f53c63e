/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/run/results.h"

#include <math.h>

#include "base/compare.h"
#include "order/problem/memory.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload-pattern.h"
#include "sim/workload/workload.h"

/* Distance from the best metric of a search. */
#define TARGET_SHARE 0.01

static double
percentile(const double *sorted, size_t n, size_t percent)
{
    return sorted[(n * percent + 99) / 100 - 1];
}

/* Sorts 'times' and sums them up. */
static void
times_compute(double *times, size_t n, struct results_times *t)
{
    double sum = 0;

    *t = (struct results_times) { n, NAN, NAN, NAN, NAN, NAN };
    if (n) {
        qsort(times, n, sizeof *times, compare_doubles);
        for (size_t i = 0; i < n; i++) {
            sum += times[i];
        }
        t->mean = sum / n;
        t->p50 = percentile(times, n, 50);
        t->p95 = percentile(times, n, 95);
        t->p99 = percentile(times, n, 99);
        t->max = times[n - 1];
    }
}

static void
stages_compute(const struct sim_result *r, struct results *results)
{
    double *times = order_alloc(r->n_stages, sizeof *times);
    double sum = 0, squares = 0;
    size_t n = 0;

    results->rho_max = NAN;
    for (size_t i = 0; i < r->n_stages; i++) {
        const struct sim_stage *stage = &r->stages[i];

        times[i] = stage->end - stage->begin;
        if (stage->isolated > 0) {
            double rho = times[i] / stage->isolated;

            sum += rho;
            squares += rho * rho;
            results->rho_max = fmax(results->rho_max, rho);
            n++;
        }
    }
    results->jain = squares > 0 ? sum * sum / (n * squares) : NAN;
    times_compute(times, r->n_stages, &results->sct);
    free(times);
}

static void
cojobs_compute(const struct workload *w, const struct sim_result *r,
               struct results *results)
{
    double *times = order_alloc(w->n_cojobs, sizeof *times);
    size_t n = 0;

    for (size_t i = 0; i < r->n_stages; i++) {
        const struct sim_stage *stage = &r->stages[i];
        const struct workload_cojob *cojob = &w->cojobs[stage->cojob];

        if (stage->rung == cojob->n_rungs - 1) {
            times[n++] = stage->end - cojob->arrival;
        }
    }
    times_compute(times, n, &results->cct);
    free(times);
}

static void
jobs_compute(const struct sim_result *r, struct results *results)
{
    double *times = order_alloc(r->n_jobs, sizeof *times);
    double *early = order_alloc(r->n_jobs, sizeof *early);
    size_t n_early = 0;

    for (size_t i = 0; i < r->n_jobs; i++) {
        const struct sim_job *job = &r->jobs[i];

        times[i] = job->end - job->begin;
        if (isfinite(job->early_end)) {
            early[n_early++] = job->early_end - job->begin;
        }
    }
    times_compute(times, r->n_jobs, &results->jct);
    times_compute(early, n_early, &results->early);
    free(times);
    free(early);
}

/* Stores in 'times' when each search is within 1 % of the best metric that a
 * trial has at its end; INFINITY without one. */
static void
find_targets(const struct workload *w, const struct sim_result *r,
             double times[])
{
    double *best = order_alloc(w->n_cojobs, sizeof *best);

    for (size_t c = 0; c < w->n_cojobs; c++) {
        best[c] = -INFINITY;
        times[c] = INFINITY;
    }
    for (size_t i = 0; i < r->n_jobs; i++) {
        const struct sim_job *job = &r->jobs[i];
        size_t c = job->cojob;

        best[c] =
            fmax(best[c], workload_curve_at(&w->cojobs[c].jobs[job->job].curve,
                                            job->iterations));
    }
    for (size_t c = 0; c < r->n_cojobs; c++) {
        const struct sim_bests *b = &r->bests[c];
        double enough = best[c] - TARGET_SHARE * fabs(best[c]);

        for (size_t i = b->n; i-- > 0 && b->bests[i].metric >= enough;) {
            times[c] = b->bests[i].time;
        }
    }
    free(best);
}

static void
targets_compute(const struct workload *w, const struct sim_result *r,
                struct results *results)
{
    double *times = order_alloc(w->n_cojobs, sizeof *times);
    size_t n = 0;

    find_targets(w, r, times);
    results->device_s = results->device_s_to_target = 0;
    for (size_t i = 0; i < r->n_jobs; i++) {
        const struct sim_job *job = &r->jobs[i];
        const struct workload_job *wj = &w->cojobs[job->cojob].jobs[job->job];

        results->device_s += wj->devices * (job->end - job->begin);
        results->device_s_to_target +=
            wj->devices
            * fmax(0, fmin(job->end, times[job->cojob]) - job->begin);
    }
    for (size_t c = 0; c < r->n_cojobs; c++) {
        if (isfinite(times[c])) {
            times[n++] = times[c] - w->cojobs[c].arrival;
        }
    }
    times_compute(times, n, &results->target);
    free(times);
}

/* Stores where the rungs of each cojob begin in an array of all stages. */
static size_t *
first_rungs(const struct workload *w)
{
    size_t *first = order_alloc(w->n_cojobs, sizeof *first);

    for (size_t i = 1; i < w->n_cojobs; i++) {
        first[i] = first[i - 1] + w->cojobs[i - 1].n_rungs;
    }
    return first;
}

/* The most that a stage of 'r' took of what it took in 'plain'. */
static double
worst_of_plain(const struct workload *w, const struct sim_result *r,
               const struct sim_result *plain)
{
    double *times = order_alloc(w->n_stages, sizeof *times);
    size_t *first = first_rungs(w);
    double worst = NAN;

    for (size_t i = 0; i < plain->n_stages; i++) {
        const struct sim_stage *stage = &plain->stages[i];

        times[first[stage->cojob] + stage->rung] = stage->end - stage->begin;
    }
    for (size_t i = 0; i < r->n_stages; i++) {
        const struct sim_stage *stage = &r->stages[i];
        double time = times[first[stage->cojob] + stage->rung];

        if (time > 0) {
            worst = fmax(worst, (stage->end - stage->begin) / time);
        }
    }
    free(times);
    free(first);
    return worst;
}

void
results_compute(const struct workload *w, const struct sim_result *r,
                const struct sim_result *plain, struct results *results)
{
    stages_compute(r, results);
    cojobs_compute(w, r, results);
    jobs_compute(r, results);
    targets_compute(w, r, results);
    results->worst = plain ? worst_of_plain(w, r, plain) : NAN;
}
