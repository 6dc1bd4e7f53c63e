/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/live.h"

#include <assert.h>

#include "sim/memory.h"
#include "sim/simulate.h"
#include "sim/workload.h"

static void stage_begin(struct live *, const struct workload_cojob *,
                        size_t rung);
static void stage_end(struct live *, struct live_stage *);
static void exchange_end(struct live *, struct live_job *);

static void
flow_begin(struct live *live, struct live_job *job,
           const struct workload_transfer *t)
{
    struct sim_flow *f;

    live->flows = sim_grow(live->flows, live->n_flows + 1,
                           &live->allocated_flows, sizeof *live->flows);
    f = &live->flows[live->n_flows++];
    *f = (struct sim_flow) {
        .level = job->stage->level, .remaining = t->bytes, .bytes = t->bytes,
        .owner = job, .shard = t->shard,
    };
    f->n_ports = sim_fabric_path(live->workload->fabric, t->src, t->dst,
                                 f->ports);
    live->flows_changed = true;
}

/* Begins the next phase of 'shard' that sends anything, or ends the shard. */
static void
shard_advance(struct live *live, struct live_job *job, int shard)
{
    const struct workload_job *wj = job->job;

    do {
        job->phase[shard]++;
        for (size_t i = 0; i < wj->n_transfers; i++) {
            const struct workload_transfer *t = &wj->transfers[i];

            if (t->shard == shard && t->phase == job->phase[shard]) {
                flow_begin(live, job, t);
                job->on_the_way[shard]++;
            }
        }
    } while (!job->on_the_way[shard] && job->phase[shard] < wj->n_phases);

    if (!job->on_the_way[shard] && !--job->shards_left) {
        exchange_end(live, job);
    }
}

static void
exchange_begin(struct live *live, struct live_job *job)
{
    job->state = LIVE_EXCHANGING;
    job->shards_left = job->job->n_shards;
    if (!job->shards_left) {
        exchange_end(live, job);
        return;
    }
    for (int s = 0; s < job->job->n_shards; s++) {
        job->phase[s] = -1;
        shard_advance(live, job, s);
    }
}

static void
compute_end(void *live, void *job)
{
    exchange_begin(live, job);
}

static void
iteration_begin(struct live *live, struct live_job *job)
{
    if (!job->iterations_left) {
        job->state = LIVE_DONE;
        if (!--job->stage->jobs_left) {
            stage_end(live, job->stage);
        }
    } else if (job->job->compute > 0) {
        job->state = LIVE_COMPUTING;
        job->compute_end = live->now + job->job->compute;
        event_queue_push(&live->events, job->compute_end, compute_end, job);
    } else {
        exchange_begin(live, job);
    }
}

static void
exchange_end(struct live *live, struct live_job *job)
{
    job->iterations_left--;
    iteration_begin(live, job);
}

static void
live_job_init(struct live *live, struct live_job *job,
              struct live_stage *stage, const struct workload_job *wj,
              int64_t iterations)
{
    bool takes_time = wj->compute > 0 || wj->n_transfers;

    *job = (struct live_job) {
        .job = wj, .stage = stage,
        .exchange_time = workload_exchange_time(wj, live->workload->fabric),
        .iterations_left = takes_time ? iterations : 0,
        .phase = sim_calloc(wj->n_shards, sizeof *job->phase),
        .on_the_way = sim_calloc(wj->n_shards, sizeof *job->on_the_way),
    };
}

static void
live_stage_destroy(struct live_stage *stage)
{
    for (size_t i = 0; i < stage->n_jobs; i++) {
        free(stage->jobs[i].phase);
        free(stage->jobs[i].on_the_way);
    }
    free(stage->jobs);
    free(stage);
}

static void
stage_begin(struct live *live, const struct workload_cojob *cojob, size_t rung)
{
    struct live_stage *stage = sim_calloc(1, sizeof *stage);
    int64_t before = rung ? cojob->rungs[rung - 1].iterations : 0;
    size_t n = cojob->rungs[rung].n_jobs;

    stage->cojob = cojob;
    stage->record = &live->records[live->n_records++];
    stage->record->cojob = cojob - live->workload->cojobs;
    stage->record->rung = rung;
    stage->record->begin = live->now;
    stage->n_jobs = stage->jobs_left = n;
    stage->jobs = sim_calloc(n, sizeof *stage->jobs);
    for (size_t i = 0; i < n; i++) {
        live_job_init(live, &stage->jobs[i], stage, &cojob->jobs[i],
                      cojob->rungs[rung].iterations - before);
    }

    live->stages = sim_grow(live->stages, live->n_stages + 1,
                            &live->allocated_stages, sizeof *live->stages);
    stage->index = live->n_stages++;
    live->stages[stage->index] = stage;
    live->stages_changed = true;

    /* The last job may end the stage, and so free it. */
    for (size_t i = 0; i < n; i++) {
        iteration_begin(live, &stage->jobs[i]);
    }
}

static void
stage_end(struct live *live, struct live_stage *stage)
{
    const struct workload_cojob *cojob = stage->cojob;
    size_t next = stage->record->rung + 1;
    struct live_stage *last = live->stages[--live->n_stages];

    stage->record->end = live->now;
    live->n_ended++;
    live->stages[stage->index] = last;
    last->index = stage->index;
    live->stages_changed = true;
    live_stage_destroy(stage);
    if (next < cojob->n_rungs) {
        stage_begin(live, cojob, next);
    }
}

static void
cojob_begin(void *live, void *cojob_)
{
    const struct workload_cojob *cojob = cojob_;

    if (cojob->n_rungs) {
        stage_begin(live, cojob, 0);
    }
}

void
live_init(struct live *live, const struct workload *w)
{
    memset(live, 0, sizeof *live);
    live->workload = w;
    live->records = sim_calloc(w->n_stages, sizeof *live->records);
    event_queue_init(&live->events);
    for (size_t i = 0; i < w->n_cojobs; i++) {
        event_queue_push(&live->events, w->cojobs[i].arrival, cojob_begin,
                         &w->cojobs[i]);
    }
}

void
live_uninit(struct live *live)
{
    for (size_t i = 0; i < live->n_stages; i++) {
        live_stage_destroy(live->stages[i]);
    }
    free(live->stages);
    free(live->flows);
    event_queue_uninit(&live->events);
}

void
live_flow_ended(struct live *live, const struct sim_flow *f)
{
    struct live_job *job = f->owner;

    assert(job->on_the_way[f->shard]);
    if (!--job->on_the_way[f->shard]) {
        shard_advance(live, job, f->shard);
    }
}

void
live_run_events(struct live *live)
{
    while (event_queue_next(&live->events) <= live->now) {
        struct event e = event_queue_pop(&live->events);

        e.run(live, e.arg);
    }
}
