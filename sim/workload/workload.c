/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/workload/workload.h"

#include <assert.h>

#include "order/problem/memory.h"

struct workload *
workload_create(const char *noun, struct sim_fabric *fabric)
{
    struct workload *w = order_alloc(1, sizeof *w);

    w->noun = noun;
    w->fabric = fabric;
    return w;
}

static void
cojob_uninit(struct workload_cojob *cojob)
{
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        free(cojob->jobs[i].name);
        free(cojob->jobs[i].transfers);
    }
    free(cojob->jobs);
    free(cojob->rungs);
    free(cojob->trials.rungs);
    free(cojob->user);
    free(cojob->name);
}

void
workload_destroy(struct workload *w)
{
    if (w) {
        for (size_t i = 0; i < w->n_cojobs; i++) {
            cojob_uninit(&w->cojobs[i]);
        }
        free(w->cojobs);
        sim_fabric_destroy(w->fabric);
        free(w);
    }
}

struct workload_cojob *
workload_add_cojob(struct workload *w, const char *name, double weight,
                   double arrival)
{
    struct workload_cojob *cojob;

    assert(weight > 0 && arrival >= 0);
    w->cojobs = order_grow(w->cojobs, w->n_cojobs + 1, &w->allocated_cojobs,
                           sizeof *w->cojobs);
    cojob = &w->cojobs[w->n_cojobs++];
    *cojob = (struct workload_cojob) {
        .name = order_strdup(name), .weight = weight, .arrival = arrival,
    };
    return cojob;
}

struct workload_job *
workload_add_job(struct workload_cojob *cojob, const char *name,
                 double compute)
{
    struct workload_job *job;

    assert(compute >= 0);
    cojob->jobs = order_grow(cojob->jobs, cojob->n_jobs + 1,
                             &cojob->allocated_jobs, sizeof *cojob->jobs);
    job = &cojob->jobs[cojob->n_jobs++];
    *job = (struct workload_job) {
        .name = order_strdup(name), .compute = compute, .devices = 1,
    };
    return job;
}

/* Adds 'bytes' from host 'src' to host 'dst' to each exchange of 'job'.
 * Nothing to send is no transfer. */
void
workload_add_transfer(struct workload_job *job, int src, int dst,
                      double bytes, int shard, int phase)
{
    assert(bytes >= 0 && shard >= 0 && phase >= 0);
    if (bytes > 0) {
        job->transfers = order_grow(job->transfers, job->n_transfers + 1,
                                    &job->allocated_transfers,
                                  sizeof *job->transfers);
        job->transfers[job->n_transfers++] = (struct workload_transfer) {
            .src = src, .dst = dst, .bytes = bytes,
            .shard = shard, .phase = phase,
        };
        job->n_shards = shard >= job->n_shards ? shard + 1 : job->n_shards;
        job->n_phases = phase >= job->n_phases ? phase + 1 : job->n_phases;
    }
}

void
workload_add_rung(struct workload *w, struct workload_cojob *cojob,
                  int64_t iterations, size_t n_jobs)
{
    assert(n_jobs > 0 && n_jobs <= cojob->n_jobs && iterations > 0);
    cojob->rungs = order_grow(cojob->rungs, cojob->n_rungs + 1,
                              &cojob->allocated_rungs, sizeof *cojob->rungs);
    cojob->rungs[cojob->n_rungs++] =
        (struct workload_rung){ .iterations = iterations, .n_jobs = n_jobs };
    w->n_stages++;
}

void
workload_add_trials(struct workload *w, struct workload_cojob *cojob,
                    const struct workload_trials *trials)
{
    size_t size = trials->n_rungs * sizeof *trials->rungs;

    assert(trials->places && trials->eta > 1 && trials->n_brackets > 0
           && trials->n_brackets <= trials->n_rungs);
    workload_add_rung(w, cojob, trials->rungs[trials->n_rungs - 1],
                      cojob->n_jobs);
    cojob->trials = *trials;
    cojob->trials.rungs = memcpy(order_alloc(1, size), trials->rungs, size);
}

double
workload_rung_iterations(const struct workload_cojob *cojob, size_t i)
{
    const struct workload_rung *rung = &cojob->rungs[i];

    return (double) (rung->iterations - (i ? rung[-1].iterations : 0))
           * rung->n_jobs;
}

void
workload_set_fabric(struct workload *w, struct sim_fabric *fabric)
{
    sim_fabric_destroy(w->fabric);
    w->fabric = fabric;
}

bool
workload_iterates(const struct workload *w)
{
    for (size_t i = 0; i < w->n_cojobs; i++) {
        const struct workload_cojob *cojob = &w->cojobs[i];

        if (cojob->n_rungs
            && cojob->rungs[cojob->n_rungs - 1].iterations > 1) {
            return true;
        }
    }
    return false;
}

void
workload_make_offline(struct workload *w)
{
    for (size_t i = 0; i < w->n_cojobs; i++) {
        w->cojobs[i].arrival = 0;
    }
}

/* Longest port of one phase of one shard, in seconds. */
static double
phase_time(const struct workload_job *job, const struct sim_fabric *fabric,
           int shard, int phase, double *seconds)
{
    double longest = 0;

    memset(seconds, 0, fabric->n_ports * sizeof *seconds);
    for (size_t i = 0; i < job->n_transfers; i++) {
        const struct workload_transfer *t = &job->transfers[i];
        int ports[SIM_FABRIC_MAX_PATH];
        int n = sim_fabric_path(fabric, t->src, t->dst, ports);

        for (int k = 0; t->shard == shard && t->phase == phase && k < n; k++) {
            double *s = &seconds[ports[k]];

            *s += t->bytes / fabric->capacity[ports[k]];
            longest = *s > longest ? *s : longest;
        }
    }
    return longest;
}

double
workload_exchange_time(const struct workload_job *job,
                       const struct sim_fabric *fabric)
{
    double *seconds = order_alloc(fabric->n_ports, sizeof *seconds);
    double longest = 0;

    for (int s = 0; s < job->n_shards; s++) {
        double time = 0;

        for (int phase = 0; phase < job->n_phases; phase++) {
            time += phase_time(job, fabric, s, phase, seconds);
        }
        longest = time > longest ? time : longest;
    }
    free(seconds);
    return longest;
}
