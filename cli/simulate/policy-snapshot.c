/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/simulate/policy-snapshot.h"

#include <math.h>
#include <stdlib.h>

#include "policies/policy.h"
#include "order/problem/memory.h"
#include "sim/workload/workload.h"

struct snapshot_stage *
snapshot_add(struct snapshot *snapshot, char *cojob, int rung, double weight)
{
    struct snapshot_stage *stage;

    snapshot->stages = order_grow(snapshot->stages, snapshot->n + 1,
                                  &snapshot->allocated,
                                sizeof *snapshot->stages);
    stage = &snapshot->stages[snapshot->n++];
    *stage = (struct snapshot_stage) {
        .cojob = cojob, .rung = rung, .weight = weight,
        .traits = { .gain = INFINITY, .early = true },
    };
    return stage;
}

void
snapshot_add_demand(struct snapshot_stage *stage, int port, double seconds)
{
    stage->demands = order_grow(stage->demands, stage->n_demands + 1,
                                &stage->allocated_demands,
                              sizeof *stage->demands);
    stage->demands[stage->n_demands++] = (struct order_demand) {
        .port = port, .seconds = seconds,
    };
}

void
snapshot_uninit(struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->n; i++) {
        free(snapshot->stages[i].cojob);
        free(snapshot->stages[i].user);
        free(snapshot->stages[i].demands);
    }
    free(snapshot->stages);
}

/* Adds the demand of 'times' iterations of 'job' to 'stage'. */
static void
add_job(struct snapshot_stage *stage, const struct workload *w,
        const struct workload_job *job, double times)
{
    double exchange = workload_exchange_time(job, w->fabric);

    for (size_t i = 0; i < job->n_transfers; i++) {
        const struct workload_transfer *t = &job->transfers[i];
        int ports[SIM_FABRIC_MAX_PATH];
        int n = sim_fabric_path(w->fabric, t->src, t->dst, ports);

        for (int k = 0; k < n; k++) {
            snapshot_add_demand(stage, ports[k], times * t->bytes
                                / w->fabric->capacity[ports[k]]);
        }
        stage->traits.bytes += times * t->bytes;
    }
    stage->isolated = fmax(stage->isolated, times * (job->compute + exchange));
    if (exchange > 0) {
        stage->traits.intensity = fmax(stage->traits.intensity, job->compute
                                       * job->devices / exchange);
    }
}

void
snapshot_from_workload(struct snapshot *snapshot, const struct workload *w)
{
    double last = 0;

    *snapshot = (struct snapshot) { .n_ports = w->fabric->n_ports };
    for (size_t i = 0; i < w->n_cojobs; i++) {
        last = fmax(last, w->cojobs[i].arrival);
    }
    for (size_t i = 0; i < w->n_cojobs; i++) {
        const struct workload_cojob *cojob = &w->cojobs[i];
        struct snapshot_stage *stage;

        if (!cojob->n_rungs) {
            continue;
        }
        stage = snapshot_add(snapshot, order_strdup(cojob->name), 0,
                             cojob->weight);
        stage->user = cojob->user ? order_strdup(cojob->user) : NULL;
        stage->traits.arrival = last - cojob->arrival;
        for (size_t j = 0; j < cojob->rungs[0].n_jobs; j++) {
            add_job(stage, w, &cojob->jobs[j], cojob->rungs[0].iterations);
        }
    }
}

struct order_problem *
snapshot_problem(const struct snapshot *snapshot, const struct policy *policy)
{
    struct order_problem *op = order_problem_create(snapshot->n_ports);

    for (size_t i = 0; i < snapshot->n; i++) {
        const struct snapshot_stage *stage = &snapshot->stages[i];
        double weight = stage->weight
                        * policy_weight(policy, stage->user, stage->cojob);
        int s = order_problem_add_stage(op, weight, i);

        for (size_t k = 0; k < stage->n_demands; k++) {
            order_problem_add_demand(op, s, stage->demands[k].port,
                                     stage->demands[k].seconds);
        }
        order_problem_set_release(op, s, 0, stage->isolated);
        order_problem_set_traits(op, s, &stage->traits);
    }
    order_problem_age(op, policy->aging_s, policy->aging_slowdown);
    return op;
}
