/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/run/records.h"

#include <math.h>

#include "order/problem/memory.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload-pattern.h"
#include "sim/workload/workload.h"

/* Of what the metric is at last, to be early done. */
#define EARLY_SHARE 0.9

/* Returns the iterations of the last rung that job 'index' takes part in. */
static int64_t
planned_iterations(const struct workload_cojob *cojob, size_t index)
{
    int64_t iterations = 0;

    for (size_t i = 0; i < cojob->n_rungs; i++) {
        if (index < cojob->rungs[i].n_jobs) {
            iterations = cojob->rungs[i].iterations;
        }
    }
    return iterations;
}

int64_t
early_iteration(const struct workload_cojob *cojob, size_t index)
{
    const struct workload_curve *curve = &cojob->jobs[index].curve;
    int64_t last = planned_iterations(cojob, index);
    double enough = EARLY_SHARE * workload_curve_at(curve, last);
    int64_t k = 0;

    if (!curve->every || !(workload_curve_at(curve, last) >= enough)) {
        return -1;
    }
    while (k < last && workload_curve_at(curve, k) < enough) {
        k += curve->every;
    }
    return k < last ? k : last;
}

/* Returns how many jobs of 'cojob' take part in any rung. */
static size_t
count_jobs(const struct workload_cojob *cojob)
{
    size_t n = 0;

    for (size_t i = 0; i < cojob->n_rungs; i++) {
        n = cojob->rungs[i].n_jobs > n ? cojob->rungs[i].n_jobs : n;
    }
    return n;
}

struct sim_job *
job_records_create(const struct workload *w, size_t *np, size_t **firstp)
{
    size_t *first = order_alloc(w->n_cojobs + 1, sizeof *first);
    struct sim_job *jobs;

    for (size_t i = 0; i < w->n_cojobs; i++) {
        first[i + 1] = first[i] + count_jobs(&w->cojobs[i]);
    }
    jobs = order_alloc(first[w->n_cojobs], sizeof *jobs);
    for (size_t i = 0; i < w->n_cojobs; i++) {
        for (size_t j = first[i]; j < first[i + 1]; j++) {
            jobs[j].cojob = i;
            jobs[j].job = j - first[i];
            jobs[j].begin = jobs[j].early_end = INFINITY;
        }
    }
    *np = first[w->n_cojobs];
    *firstp = first;
    return jobs;
}
