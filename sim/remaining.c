/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>

#include "controller/order/order.h"
#include "sim/live.h"
#include "sim/memory.h"
#include "sim/simulate.h"
#include "sim/workload.h"

/* Seconds of each port that one stage needs, as it is added up. */
struct demand {
    const struct sim_fabric *fabric;
    double *seconds;            /* 'fabric->n_ports' of them. */
    double isolated;            /* The longest of its jobs alone. */
};

static void
demand_add_transfer(struct demand *d, const struct workload_transfer *t,
                    double times)
{
    int ports[SIM_FABRIC_MAX_PATH];
    int n = sim_fabric_path(d->fabric, t->src, t->dst, ports);

    for (int k = 0; k < n; k++) {
        d->seconds[ports[k]] += times * t->bytes
                                / d->fabric->capacity[ports[k]];
    }
}

/* Adds 'd' to 'op' as a stage that begins at 'release'. */
static void
demand_to_problem(const struct demand *d, struct order_problem *op,
                  double weight, uint64_t id, double release)
{
    int s = order_problem_add_stage(op, weight, id);
    double isolated = d->isolated;

    for (int p = 0; p < d->fabric->n_ports; p++) {
        if (d->seconds[p] > 0) {
            order_problem_add_demand(op, s, p, d->seconds[p]);
            isolated = fmax(isolated, d->seconds[p]);
        }
    }
    order_problem_set_release(op, s, release, isolated);
}

/* Adds what 'job' still has to do, except for the flows on their way. */
static void
add_job(struct demand *d, const struct live_job *job, double now)
{
    const struct workload_job *wj = job->job;
    double whole = job->iterations_left;
    double alone = 0;

    if (job->state == LIVE_DONE) {
        return;
    }
    if (job->state == LIVE_EXCHANGING) {
        whole--;
    } else {
        alone = job->compute_end - now - wj->compute;
    }
    for (size_t i = 0; i < wj->n_transfers; i++) {
        const struct workload_transfer *t = &wj->transfers[i];
        bool ahead = job->state == LIVE_EXCHANGING
                     && t->phase > job->phase[t->shard];

        if (whole + ahead > 0) {
            demand_add_transfer(d, t, whole + ahead);
        }
    }
    alone += whole * (wj->compute + job->exchange_time);
    d->isolated = fmax(d->isolated, alone);
}

/* Adds the flows on their way of each stage to its row of 'rows'. */
static void
add_flows(const struct live *live, double *rows)
{
    const struct sim_fabric *fabric = live->workload->fabric;

    for (size_t i = 0; i < live->n_flows; i++) {
        const struct sim_flow *f = &live->flows[i];
        const struct live_job *job = f->owner;
        double *row = &rows[job->stage->index * fabric->n_ports];

        for (int k = 0; k < f->n_ports; k++) {
            row[f->ports[k]] += f->remaining / fabric->capacity[f->ports[k]];
        }
    }
}

struct order_problem *
remaining_problem(const struct live *live, double aging_s)
{
    const struct sim_fabric *fabric = live->workload->fabric;
    struct order_problem *op = order_problem_create(fabric->n_ports);
    double *rows = sim_calloc(live->n_stages * fabric->n_ports, sizeof *rows);

    add_flows(live, rows);
    for (size_t i = 0; i < live->n_stages; i++) {
        const struct live_stage *stage = live->stages[i];
        double age = live->now - stage->record->begin;
        double weight = stage->cojob->weight;
        struct demand d = { fabric, &rows[i * fabric->n_ports], 0 };

        for (size_t j = 0; j < stage->n_jobs; j++) {
            add_job(&d, &stage->jobs[j], live->now);
        }
        demand_to_problem(&d, op,
                          aging_s > 0 ? weight * (1 + age / aging_s) : weight,
                          stage->record - live->records, 0);
    }
    free(rows);
    return op;
}

/* Adds all of the work of a stage that has been to 'op'. */
static void
add_record(struct order_problem *op, const struct workload *w,
           const struct sim_stage *stage, uint64_t id, struct demand *d)
{
    const struct workload_cojob *cojob = &w->cojobs[stage->cojob];
    const struct workload_rung *rung = &cojob->rungs[stage->rung];
    double iterations = rung->iterations
                        - (stage->rung ? rung[-1].iterations : 0);

    memset(d->seconds, 0, w->fabric->n_ports * sizeof *d->seconds);
    d->isolated = 0;
    for (size_t i = 0; i < rung->n_jobs; i++) {
        const struct workload_job *job = &cojob->jobs[i];
        double exchange = workload_exchange_time(job, w->fabric);

        for (size_t j = 0; j < job->n_transfers; j++) {
            demand_add_transfer(d, &job->transfers[j], iterations);
        }
        d->isolated = fmax(d->isolated,
                           iterations * (job->compute + exchange));
    }
    demand_to_problem(d, op, 1, id, stage->begin);
}

double
recorded_bound(const struct workload *w, const struct sim_stage *stages,
               size_t n)
{
    struct order_problem *op = order_problem_create(w->fabric->n_ports);
    struct demand d = { w->fabric, NULL, 0 };
    double begins = 0;
    double bound;

    d.seconds = sim_calloc(w->fabric->n_ports, sizeof *d.seconds);
    for (size_t i = 0; i < n; i++) {
        add_record(op, w, &stages[i], i, &d);
        begins += stages[i].begin;
    }
    bound = n ? (certificate_bound(op) - begins) / n : 0;
    order_problem_destroy(op);
    free(d.seconds);
    return fmax(bound, 0);
}
