/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/workload/workload-training.h"

#include <assert.h>
#include <stdio.h>

#include "order/problem/memory.h"
#include "scenario/scenario.h"
#include "sim/workload/trial-curve.h"
#include "sim/workload/workload-pattern.h"
#include "sim/workload/workload.h"
#include "trainer/schemes/shard.h"
#include "trainer/search/spec.h"

/* As in trainer/ps/client.c: the values of a part of a gradient, and the most
 * parts. */
#define PART_LENGTH ((size_t) 1 << 15)
#define MAX_PARTS 64

/* A scenario's hosts are h0, h1...; its reader has checked the names. */
static int
host_index(const char *name)
{
    return atoi(name + 1);
}

/* Seconds that the worker with the largest share of the batch computes. */
static double
compute_seconds(const struct search_spec *spec,
                const struct search_trial *trial)
{
    struct shard share = shard_range(trial->batch, 0,
                                     trial->placement->n_workers);

    return share.n * spec->sample_cost_us / 1e6;
}

/* Adds what 'worker' pushes 'server', 'n' values of 'size' bytes, and what it
 * gets back.  Gradients are sent in parts, and each part is answered while the
 * next one is sent, as trainer/ps/client.c does. */
static void
add_parts(struct workload_job *job, int worker, int server, double size,
          size_t n, int shard)
{
    size_t least = (n + MAX_PARTS - 1) / MAX_PARTS;
    size_t length = least > PART_LENGTH ? least : PART_LENGTH;

    for (int phase = 0; n; phase++) {
        size_t part = n >= 2 * length ? length : n;

        workload_add_transfer(job, worker, server, part * size, shard, phase);
        workload_add_transfer(job, server, worker, part * size, shard,
                              phase + 1);
        n -= part;
    }
}

static void
add_exchange(struct workload_job *job, const struct search_placement *place,
             size_t n_parameters)
{
    for (size_t s = 0; s < place->n_servers; s++) {
        struct shard shard = shard_range(n_parameters, s, place->n_servers);
        int server = host_index(place->servers[s]);

        for (size_t w = 0; w < place->n_workers; w++) {
            int worker = host_index(place->workers[w]);
            double size = worker == server ? 0 : sizeof(float);

            add_parts(job, worker, server, size, shard.n, s);
        }
    }
}

/* Without a server: all-reduce around a ring.  The other schemes exchange
 * about as many bytes in an iteration, with peers that change. */
static void
add_peers(struct workload_job *job, const struct search_placement *place,
          size_t n_parameters)
{
    size_t n = place->n_workers;
    double bytes = 2. * (n - 1) / n * n_parameters * sizeof(float);

    for (size_t i = 0; i < n; i++) {
        int from = host_index(place->workers[i]);
        int to = host_index(place->workers[(i + 1) % n]);

        workload_add_transfer(job, from, to, from == to ? 0 : bytes, 0, 0);
    }
}

static void
add_search(struct workload *w, const struct search_spec *spec, double start)
{
    struct workload_cojob *cojob;

    cojob = workload_add_cojob(w, spec->name, spec->weight, start);
    for (int i = 0; i < spec->n_trials; i++) {
        struct search_trial trial = search_spec_trial(spec, i);
        struct workload_job *job;
        char name[16];

        snprintf(name, sizeof name, "t%d", i);
        job = workload_add_job(cojob, name, compute_seconds(spec, &trial));
        job->devices = trial.placement->n_workers;
        job->curve = (struct workload_curve){ .every = spec->eval_every,
                                              .recorded = trial_curve_find(
                                                  spec->model.n_classes,
                                                  trial.learning_rate) };
        (trial.placement->n_servers ? add_exchange : add_peers)(
            job, trial.placement,
            search_model_n_parameters(&spec->model, trial.width));
    }
    workload_add_rungs(w, cojob, &spec->method, spec->rungs, spec->n_rungs);
}

static struct sim_fabric *
make_fabric(const struct scenario *s)
{
    const struct leaf_spine *ls = &s->leaf_spine;
    double capacity = s->rate_bps / 8.0;

    return (s->fabric == FABRIC_LEAF_SPINE
                ? sim_fabric_create_leaf_spine(
                    s->n_hosts, s->n_hosts / ls->leaves, capacity, ls->over)
                : sim_fabric_create(s->n_hosts, capacity));
}

struct workload *
workload_training_create(const struct scenario *scenario)
{
    struct workload *w = workload_create("stage", make_fabric(scenario));

    for (size_t i = 0; i < scenario->n_searches; i++) {
        assert(scenario->searches[i].spec);
        add_search(w, scenario->searches[i].spec,
                   scenario->searches[i].start_s);
    }
    return w;
}
