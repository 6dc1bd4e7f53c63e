/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/workload/workload-bound.h"

#include "order/fluid/fluid.h"
#include "sim/workload/workload.h"

#define WORK 3e10 /* Multiplications: several seconds. */

static void
add_job(struct fluid *f, const struct workload *w, double efficiency,
        const struct workload_job *job, double iterations)
{
    const struct sim_fabric *fabric = w->fabric;

    fluid_add_job(f, iterations,
                  job->compute
                      + workload_exchange_time(job, fabric) / efficiency);
    for (size_t i = 0; i < job->n_transfers; i++) {
        const struct workload_transfer *t = &job->transfers[i];
        int ports[SIM_FABRIC_MAX_PATH];
        int n = sim_fabric_path(fabric, t->src, t->dst, ports);

        for (int k = 0; k < n; k++) {
            fluid_add_demand(f, ports[k],
                             t->bytes / efficiency
                                 / fabric->capacity[ports[k]]);
        }
    }
}

static void
add_search(struct fluid *f, const struct workload *w, double efficiency,
           const struct workload_cojob *cojob, bool survivors)
{
    fluid_add_search(f, 1, cojob->arrival);
    for (size_t r = 0; r < cojob->n_rungs; r++) {
        const struct workload_rung *rung = &cojob->rungs[r];
        size_t n_jobs = survivors ? rung->n_jobs : cojob->rungs[0].n_jobs;
        int64_t end =
            cojob->trials.places ? cojob->trials.rungs[0] : rung->iterations;

        fluid_add_rung(f, rung->n_jobs);
        for (size_t j = 0; j < n_jobs; j++) {
            add_job(f, w, efficiency, &cojob->jobs[j],
                    end - (r ? rung[-1].iterations : 0));
        }
    }
}

struct workload_bound
workload_bound(const struct workload *w, double efficiency, bool survivors)
{
    struct workload_bound bound = { .kind = ORDER_BOUND_NONE };
    struct fluid *f;
    struct fluid_bound b;

    if (!workload_iterates(w)) {
        return bound;
    }
    f = fluid_create(w->fabric->n_ports);
    for (size_t i = 0; i < w->n_cojobs; i++) {
        add_search(f, w, efficiency > 0 ? efficiency : 1, &w->cojobs[i],
                   survivors);
    }
    b = fluid_bound(f, WORK);
    bound.mean = b.fluid / w->n_stages;
    bound.strict = b.strict / w->n_stages;
    bound.kind = b.kind;
    fluid_destroy(f);
    return bound;
}
