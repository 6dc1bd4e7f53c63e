/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/results.h"

#include <math.h>
#include <stdint.h>

#include "controller/order/order.h"
#include "sim/memory.h"
#include "sim/simulate.h"
#include "sim/workload.h"

/* Adds what 'times' exchanges of 'job' take of each port to 'stage'. */
static void
add_exchanges(struct order_problem *op, int stage,
              const struct workload_job *job, const struct sim_fabric *fabric,
              double times)
{
    for (size_t i = 0; i < job->n_transfers; i++) {
        const struct workload_transfer *t = &job->transfers[i];
        int ports[SIM_FABRIC_MAX_PATH];
        int n = sim_fabric_path(fabric, t->src, t->dst, ports);

        for (int k = 0; k < n; k++) {
            order_problem_add_demand(op, stage, ports[k], times * t->bytes
                                     / fabric->capacity[ports[k]]);
        }
    }
}

/* Adds all of the work of a stage that has been. */
static void
add_stage(struct order_problem *op, const struct workload *w,
          const struct sim_stage *record, uint64_t id)
{
    const struct workload_cojob *cojob = &w->cojobs[record->cojob];
    const struct workload_rung *rung = &cojob->rungs[record->rung];
    double iterations = rung->iterations
                        - (record->rung ? rung[-1].iterations : 0);
    int stage = order_problem_add_stage(op, 1, id);
    double isolated = 0;

    for (size_t i = 0; i < rung->n_jobs; i++) {
        const struct workload_job *job = &cojob->jobs[i];
        double alone = job->compute + workload_exchange_time(job, w->fabric);

        add_exchanges(op, stage, job, w->fabric, iterations);
        isolated = fmax(isolated, iterations * alone);
    }
    order_problem_set_release(op, stage, record->begin, isolated);
}

double
results_bound(const struct workload *w, const struct sim_result *r)
{
    struct order_problem *op = order_problem_create(w->fabric->n_ports);
    double begins = 0;
    double sum;

    for (size_t i = 0; i < r->n_stages; i++) {
        add_stage(op, w, &r->stages[i], i);
        begins += r->stages[i].begin;
    }
    sum = certificate_bound(op);
    order_problem_destroy(op);
    return r->n_stages ? fmax(r->bound, (sum - begins) / r->n_stages) : 0;
}
