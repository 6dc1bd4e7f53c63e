/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/run/live.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "order/problem/memory.h"
#include "sim/run/records.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload-pattern.h"
#include "sim/workload/workload.h"

/* Iterations of a job before its bytes have been counted. */
#define UNCOUNTED 9

static void stage_begin(struct live *, const struct workload_cojob *,
                        size_t rung);
static void trial_begin(struct live *, struct live_stage *);
static void stage_end(struct live *, struct live_stage *);
static void exchange_end(struct live *, struct live_job *);
static void cojob_end(struct live *, const struct workload_cojob *);

static void
begin_unit(struct live *live, struct unit *unit)
{
    unit->id = live->n_begun_units++;
    unit->rank = -1;
    unit_begin(unit, live->fabric, live->now);
    live->units = order_grow(live->units, live->n_units + 1,
                             &live->allocated_units, sizeof *live->units);
    live->units[live->n_units++] = unit;
    live->units_changed = true;
}

static void
end_unit(struct live *live, struct unit *unit)
{
    struct unit *after = NULL;

    for (size_t i = live->n_units--; after != unit;) {
        struct unit *next = live->units[--i];

        live->units[i] = after;
        after = next;
    }
    live->units_changed = true;
}

/* Begins the next phase of 'shard' that sends anything, or ends the shard. */
static void
shard_advance(struct live *live, struct live_job *job, int shard)
{
    int n_phases = job->job->n_phases;
    const size_t *first = &job->first[shard * n_phases];
    int phase = job->phase[shard] + 1;

    while (phase < n_phases && first[phase] == first[phase + 1]) {
        phase++;
    }
    job->phase[shard] = phase;
    if (phase == n_phases) {
        if (!--job->shards_left) {
            exchange_end(live, job);
        }
        return;
    }
    job->on_the_way[shard] = first[phase + 1] - first[phase];
    for (size_t i = first[phase]; i < first[phase + 1]; i++) {
        struct flow *flow = &job->flows[i];

        flow->remaining = flow->bytes;
        flow->node.seq = live->n_begun_flows++;
        live->rates->class->add(live->rates, flow, live->now);
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
    if (live->ordered == ORDER_UNIT_COFLOW) {
        begin_unit(live, &job->unit);
    }
    for (int s = 0; s < job->job->n_shards; s++) {
        job->phase[s] = -1;
    }
    for (int s = 0; s < job->job->n_shards; s++) {
        shard_advance(live, job, s);
    }
}

static void
job_end(struct live *live, struct live_job *job)
{
    struct live_stage *stage = job->stage;

    job->state = LIVE_DONE;
    job->iterations_left = 0;
    job->to_come = 0;
    job->record->end = live->now;
    job->record->iterations = job->iterations_done;
    if (live->ordered != ORDER_UNIT_COFLOW) {
        end_unit(live, &job->unit);
    }
    if (!--stage->jobs_left) {
        stage_end(live, stage);
    } else if (stage->rungs) {
        trial_begin(live, stage);
    }
}

/* Returns true if 'job' reports its metric after the iteration that ended: as
 * the trainer after the first one and at the end of a rung, too. */
static bool
reports_metric(const struct live_job *job)
{
    return job->iterations_done % job->job->curve.every == 0
           || job->iterations_done == 1 || !job->iterations_left;
}

static double
metric_of(const struct live_job *job)
{
    return workload_curve_at(&job->job->curve, job->iterations_done);
}

/* Keeps the current metric of 'job' if no trial of its search had a better
 * one. */
static void
note_best(struct live *live, const struct live_job *job)
{
    struct sim_bests *b = &live->bests[job->record->cojob];
    double metric = metric_of(job);

    if (!b->n || metric > b->bests[b->n - 1].metric) {
        b->bests =
            order_grow(b->bests, b->n + 1, &b->allocated, sizeof *b->bests);
        b->bests[b->n++] = (struct sim_best){ live->now, metric };
    }
}

/* Reports the current metric of 'job'. */
static void
report_metric(struct live *live, struct live_job *job)
{
    const struct sim_options *options = live->options;

    note_best(live, job);

    if (job->curve) {
        progress_curve_add(job->curve, job->iterations_done, metric_of(job),
                           live->now);
    }
    if (options->reported) {
        options->reported(options->aux, job->record, metric_of(job),
                          live->now);
    }
}

/* Returns the time from the begin of the next iteration of 'job' until it
 * exchanges. */
static double
compute_time(const struct live *live, struct live_job *job)
{
    double seconds = job->job->compute;

    if (live->options->jitter_s > 0) {
        seconds += live->options->jitter_s * sim_random_gap(&job->jitter);
    }
    return seconds + (job->iterations_done ? 0 : live->options->start_s);
}

/* Returns the iterations that are expected of a trial that is on its way to
 * 'rung' after it. */
static double
iterations_after(const struct live_stage *stage, const struct trial_rung *rung)
{
    const struct workload_trials *t = &stage->cojob->trials;
    size_t i = (rung - stage->rungs) % t->n_rungs;

    return trials_after(rung, t->n_rungs - i, t->eta);
}

/* Lets 'job' go on to 'rung'. */
static void
go_to_rung(struct live_job *job, struct trial_rung *rung)
{
    job->next = rung;
    job->iterations_left = rung->iterations - job->iterations_done;
    job->to_come =
        (1 - job->stage->cojob->hidden) * iterations_after(job->stage, rung);
}

/* Gives a unit that has nothing left the work of the iterations of 'job' to
 * its next rung. */
static void
renew_unit(struct live *live, struct live_job *job)
{
    struct unit *unit = &job->unit;

    for (size_t i = 0; i < unit->n_work; i++) {
        struct work *work = &unit->work[i];

        work->whole = work->whole / job->times * job->iterations_left;
        work->n_whole = work->n_whole / job->times * job->iterations_left;
    }
    job->times = job->iterations_left;
    unit_begin(unit, live->fabric, live->now);
    live->units_changed = true;
}

/* Returns true if 'job', which has done its iterations, is a trial that passes
 * the rung where it is. */
static bool
passes_rung(struct live *live, struct live_job *job)
{
    const struct workload_trials *t = &job->stage->cojob->trials;
    const struct sim_options *options = live->options;
    struct trial_rung *rung = job->next;
    size_t i;
    bool passes;

    if (!rung || job->iterations_done < rung->iterations) {
        return false;
    }
    i = (rung - job->stage->rungs) % t->n_rungs;
    passes =
        trial_rung_judge(rung, metric_of(job), t->eta) && i + 1 < t->n_rungs;
    if (options->judged) {
        options->judged(options->aux, job->record, i, passes);
    }
    if (passes) {
        go_to_rung(job, &rung[1]);
        if (live->ordered != ORDER_UNIT_COFLOW) {
            renew_unit(live, job);
        }
    }
    return passes;
}

static void
iteration_begin(struct live *live, struct live_job *job)
{
    double compute;

    if (job->iterations_done == job->early_iteration
        && isinf(job->record->early_end)) {
        job->record->early_end = live->now;
    }
    if (!job->iterations_left && !passes_rung(live, job)) {
        job_end(live, job);
        return;
    }
    compute = compute_time(live, job);
    if (compute > 0) {
        job->state = LIVE_COMPUTING;
        job->compute_end.key = live->now + compute;
        job->compute_end.seq = live->n_computations++;
        node_heap_push(&live->computing, &job->compute_end);
    } else {
        exchange_begin(live, job);
    }
}

static void
exchange_end(struct live *live, struct live_job *job)
{
    if (live->ordered == ORDER_UNIT_COFLOW && job->job->n_shards) {
        end_unit(live, &job->unit);
    }
    job->iterations_left--;
    job->iterations_done++;
    if (job->iterations_done == UNCOUNTED) {
        job->stage->announcement.understated +=
            UNCOUNTED * job->stage->cojob->understated;
    }
    if (job->job->curve.every && reports_metric(job)) {
        report_metric(live, job);
    }
    iteration_begin(live, job);
}

/* Sorts the transfers of 'job' into flows by shard and phase. */
static void
make_flows(struct live *live, struct live_job *job)
{
    const struct workload_job *wj = job->job;
    size_t n_keys = (size_t) wj->n_shards * wj->n_phases;

    job->first = order_alloc(n_keys + 2, sizeof *job->first);
    job->flows = order_alloc(wj->n_transfers, sizeof *job->flows);
    for (size_t i = 0; i < wj->n_transfers; i++) {
        const struct workload_transfer *t = &wj->transfers[i];

        job->first[t->shard * wj->n_phases + t->phase + 2]++;
    }
    for (size_t i = 2; i < n_keys + 2; i++) {
        job->first[i] += job->first[i - 1];
    }
    for (size_t i = 0; i < wj->n_transfers; i++) {
        const struct workload_transfer *t = &wj->transfers[i];
        size_t key = t->shard * wj->n_phases + t->phase;

        job->flows[job->first[key + 1]++] = (struct flow) {
            .job = job, .shard = t->shard, .bytes = t->bytes,
            .path = paths_find(&live->paths, t->src, t->dst),
        };
    }
}

/* Makes a unit of the flows of 'job', 'times' each. */
static void
make_unit(struct live *live, struct live_job *job, int64_t times)
{
    const struct path *paths = live->paths.paths;
    size_t n = job->job->n_transfers;

    job->unit.stage = job->stage;
    job->unit.job = job;
    job->unit.level = live->last_level;
    job->times = times;
    for (size_t i = 0; i < n; i++) {
        const struct flow *flow = &job->flows[i];

        unit_maker_add(&live->maker, &paths[flow->path], flow->bytes, times);
    }
    unit_maker_finish(&live->maker, &job->unit);
    for (size_t i = 0; i < n; i++) {
        struct flow *flow = &job->flows[i];

        flow->unit = &job->unit;
        unit_maker_bind(&live->maker, &paths[flow->path], flow);
    }
    unit_maker_clear(&live->maker);
    for (size_t i = 0; i < job->unit.n_work; i++) {
        struct work *work = &job->unit.work[i];

        work->seconds =
            work->whole / times / live->fabric->capacity[work->port];
        if (work->port < live->n_seen_ports) {
            job->work += work->seconds;
            job->busiest = fmax(job->busiest, work->seconds);
        }
    }
}

static int
compare_ports(const void *a_, const void *b_)
{
    const int *a = a_, *b = b_;

    return (*a > *b) - (*a < *b);
}

/* Lists the ports of all jobs of 'stage', so that what they need can be added
 * up without looking for any. */
static void
make_ports(struct live_stage *stage)
{
    size_t n = 0;

    for (size_t i = 0; i < stage->n_jobs; i++) {
        n += stage->jobs[i].unit.n_work;
    }
    stage->ports = order_alloc(n, sizeof *stage->ports);
    stage->seconds = order_alloc(n, sizeof *stage->seconds);
    n = 0;
    for (size_t i = 0; i < stage->n_jobs; i++) {
        const struct unit *unit = &stage->jobs[i].unit;

        for (size_t j = 0; j < unit->n_work; j++) {
            stage->ports[n++] = unit->work[j].port;
        }
    }
    qsort(stage->ports, n, sizeof *stage->ports, compare_ports);
    for (size_t i = 0; i < n; i++) {
        if (!i || stage->ports[i] != stage->ports[i - 1]) {
            stage->ports[stage->n_ports++] = stage->ports[i];
        }
    }
    for (size_t i = 0; i < stage->n_jobs; i++) {
        struct live_job *job = &stage->jobs[i];
        size_t place = 0;

        job->place = order_alloc(job->unit.n_work, sizeof *job->place);
        for (size_t j = 0; j < job->unit.n_work; j++) {
            while (stage->ports[place] != job->unit.work[j].port) {
                place++;
            }
            job->place[j] = place;
        }
    }
}

/* Returns the first rung at which trial 'index' is judged. */
static struct trial_rung *
first_rung(const struct live_stage *stage, size_t index)
{
    const struct workload_trials *t = &stage->cojob->trials;
    size_t bracket = index % t->n_brackets;

    return &stage->rungs[bracket * t->n_rungs + bracket];
}

/* Returns the iterations of 'job' in 'stage', which has not begun: those that
 * are expected of a trial. */
static double
iterations_of(const struct live_stage *stage, const struct live_job *job)
{
    return stage->rungs ? job->to_come : job->iterations_left;
}

/* Sets the isolated time of 'stage': the time of its slowest job, or of as
 * many trials at a time as it has places for, or of the port that all its jobs
 * need most. */
static void
find_whole(const struct live *live, struct live_stage *stage)
{
    size_t places = stage->cojob->trials.places;
    double sum = 0;

    for (size_t i = 0; i < stage->n_jobs; i++) {
        const struct live_job *job = &stage->jobs[i];
        double n = iterations_of(stage, job);
        double alone = n * (job->job->compute + job->exchange_time);

        sum += alone;
        stage->whole = fmax(stage->whole, places ? sum / places : alone);
        for (size_t j = 0; j < job->unit.n_work; j++) {
            double *seconds = &stage->seconds[job->place[j]];

            *seconds += n * job->unit.work[j].seconds;
            stage->whole = fmax(stage->whole, *seconds);
        }
    }
}

static void
make_units(struct live *live, struct live_stage *stage, int64_t iterations)
{
    for (size_t i = 0; i < stage->n_jobs; i++) {
        struct live_job *job = &stage->jobs[i];

        if (live->ordered == ORDER_UNIT_COFLOW) {
            make_unit(live, job, 1);
        } else if (stage->rungs) {
            make_unit(live, job, first_rung(stage, i)->iterations);
        } else {
            make_unit(live, job, iterations);
            begin_unit(live, &job->unit);
        }
    }
    if (live->ordered == ORDER_UNIT_STAGE || live->weighted) {
        make_ports(stage);
    }
    if (live->weighted) {
        find_whole(live, stage);
        for (size_t i = 0; i < stage->n_jobs; i++) {
            const struct live_job *job = &stage->jobs[i];

            stage->work += iterations_of(stage, job) * job->work;
        }
    }
}

/* Lets 'job' go on with its curve of the rungs before, if orders look at its
 * progress. */
static void
find_curve(struct live *live, struct live_job *job)
{
    if (live->curves && job->job->curve.every) {
        job->curve = &live->curves[job->record - live->jobs];
        if (isinf(job->record->begin)) {
            progress_curve_init(job->curve, live->now);
        }
    }
}

/* Returns the random numbers of job 'index' of 'stage'. */
static struct sim_random
jitter_of(uint64_t seed, const struct sim_stage *stage, size_t index)
{
    const uint64_t parts[] = { stage->cojob, stage->rung, index };
    struct sim_random r = { seed };

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        r.state = sim_random_next(&r) + parts[i];
    }
    return r;
}

static bool
takes_time(const struct workload_job *job)
{
    return job->compute > 0 || job->n_transfers;
}

/* Lets the record of 'job' begin, unless it has. */
static void
begin_record(struct live *live, struct live_job *job)
{
    find_curve(live, job);
    job->record->begin = fmin(job->record->begin, live->now);
}

static void
live_job_init(struct live *live, struct live_job *job,
              struct live_stage *stage, size_t index)
{
    const struct workload_cojob *cojob = stage->cojob;
    const struct workload_rung *rung = &cojob->rungs[stage->record->rung];
    const struct workload_job *wj = &cojob->jobs[index];
    int64_t before = stage->record->rung ? rung[-1].iterations : 0;

    *job = (struct live_job){
        .job = wj,
        .stage = stage,
        .record = &live->jobs[live->first_job[stage->record->cojob] + index],
        .exchange_time = workload_exchange_time(wj, live->fabric),
        .iterations_done = before,
        .iterations_left = takes_time(wj) ? rung->iterations - before : 0,
        .promise = 1,
        .early_iteration = early_iteration(cojob, index),
        .jitter = jitter_of(live->options->seed, stage->record, index),
        .phase = order_alloc(wj->n_shards, sizeof *job->phase),
        .on_the_way = order_alloc(wj->n_shards, sizeof *job->on_the_way),
    };
    make_flows(live, job);
    if (stage->rungs) {
        const struct trial_rung *first = first_rung(stage, index);

        job->state = LIVE_DONE;
        job->iterations_left = 0;
        job->to_come = first->iterations + iterations_after(stage, first);
    } else {
        begin_record(live, job);
    }
}

/* Makes the rungs of an asynchronous 'stage'. */
static void
make_rungs(struct live_stage *stage)
{
    const struct workload_trials *t = &stage->cojob->trials;
    size_t n = t->n_brackets * t->n_rungs;

    stage->rungs = order_alloc(n, sizeof *stage->rungs);
    for (size_t i = 0; i < n; i++) {
        stage->rungs[i].iterations = t->rungs[i % t->n_rungs];
    }
}

/* Begins the next trial of 'stage', if there is one. */
static void
trial_begin(struct live *live, struct live_stage *stage)
{
    struct live_job *job = &stage->jobs[stage->n_begun];

    if (stage->n_begun == stage->n_jobs) {
        return;
    }
    go_to_rung(job, first_rung(stage, stage->n_begun++));
    if (!takes_time(job->job)) {
        job->iterations_left = 0;
    }
    begin_record(live, job);
    if (live->ordered != ORDER_UNIT_COFLOW) {
        begin_unit(live, &job->unit);
    }
    iteration_begin(live, job);
}

/* Begins as many trials of 'stage' as it has places for. */
static void
trials_begin(struct live *live, struct live_stage *stage)
{
    size_t places = stage->cojob->trials.places;

    stage->jobs_left++; /* A trial that takes no time ends now. */
    for (size_t i = 0; i < stage->n_jobs; i++) {
        stage->jobs[i].to_come *= 1 - stage->cojob->hidden;
    }
    for (size_t i = 0; i < places; i++) {
        trial_begin(live, stage);
    }
    if (!--stage->jobs_left) {
        stage_end(live, stage);
    }
}

static void
live_stage_destroy(struct live_stage *stage)
{
    for (size_t i = 0; i < stage->n_jobs; i++) {
        struct live_job *job = &stage->jobs[i];

        unit_uninit(&job->unit);
        free(job->phase);
        free(job->on_the_way);
        free(job->flows);
        free(job->first);
        free(job->place);
    }
    for (size_t i = 0;
         i < stage->cojob->trials.n_brackets * stage->cojob->trials.n_rungs;
         i++) {
        trial_rung_uninit(&stage->rungs[i]);
    }
    free(stage->rungs);
    free(stage->ports);
    free(stage->seconds);
    free(stage->jobs);
    free(stage);
}

/* Returns what 'cojob' has announced when it begins its rung 'last'. */
static struct announcement
announcement_of(const struct workload_cojob *cojob, size_t last)
{
    struct announcement a;
    double later = 0;

    for (size_t i = 1; i < cojob->n_rungs; i++) {
        later += workload_rung_iterations(cojob, i);
    }
    announcement_init(&a, (1 - cojob->hidden) * later);
    for (size_t i = 1; i <= last; i++) {
        double own = workload_rung_iterations(cojob, i);

        later -= own;
        announcement_next(&a, own, (1 - cojob->hidden) * later);
    }
    return a;
}

static void
stage_begin(struct live *live, const struct workload_cojob *cojob, size_t rung)
{
    struct live_stage *stage = order_alloc(1, sizeof *stage);
    int64_t before = rung ? cojob->rungs[rung - 1].iterations : 0;
    size_t n = cojob->rungs[rung].n_jobs;

    stage->cojob = cojob;
    stage->announcement = announcement_of(cojob, rung);
    candor_add(&live->candor, &stage->announcement);
    stage->record = &live->stages[live->n_stages++];
    stage->record->cojob = cojob - live->workload->cojobs;
    stage->record->rung = rung;
    stage->record->begin = live->now;
    live->running[stage->record->cojob] = stage;
    stage->n_jobs = stage->jobs_left = n;
    stage->jobs = order_alloc(n, sizeof *stage->jobs);
    if (cojob->trials.places) {
        make_rungs(stage);
    }
    for (size_t i = 0; i < n; i++) {
        live_job_init(live, &stage->jobs[i], stage, i);
    }
    make_units(live, stage, cojob->rungs[rung].iterations - before);
    if (stage->rungs) {
        trials_begin(live, stage);
        return;
    }

    /* The last job may end the stage, and so free it. */
    for (size_t i = 0; i < n; i++) {
        iteration_begin(live, &stage->jobs[i]);
    }
}

static void
stage_end(struct live *live, struct live_stage *stage)
{
    const struct workload_cojob *cojob = stage->cojob;
    struct plain_times *plain = &live->plain[stage->record->cojob];
    size_t next = stage->record->rung + 1;

    stage->record->end = live->now;
    plain_next(plain, live->now - stage->record->begin);
    live->n_ended++;
    candor_remove(&live->candor, &stage->announcement);
    live->served[stage->record->cojob] += stage->work;
    live->running[stage->record->cojob] = NULL;
    live_stage_destroy(stage);
    if (next < cojob->n_rungs) {
        stage_begin(live, cojob, next);
    } else {
        cojob_end(live, cojob);
    }
}

/* Keeps what 'cojob' was served in the account of its owner, and begins the
 * cojob that waits for its end. */
static void
cojob_end(struct live *live, const struct workload_cojob *cojob)
{
    const struct workload *w = live->workload;
    size_t i = cojob - w->cojobs;

    if (live->options->owner_memory_s > 0) {
        account_add(&live->accounts[live->owners[i]], live->served[i],
                    live->now, live->options->owner_memory_s);
    }
    if (i + 1 < w->n_cojobs && cojob[1].follows && cojob[1].n_rungs) {
        stage_begin(live, &cojob[1], 0);
    }
}

bool
live_is_asynchronous(const struct live_stage *stage)
{
    return stage->rungs && stage->cojob->hidden < 1;
}

bool
live_is_promising(const struct live *live)
{
    return live->weighted
           && live->options->order.trials == ORDER_TRIALS_PROMISING;
}

void
live_init(struct live *live, const struct workload *w,
          const struct sim_fabric *fabric, const struct sim_options *options,
          enum rates_rule rule)
{
    const struct order_options *order = &options->order;

    memset(live, 0, sizeof *live);
    live->workload = w;
    live->fabric = fabric;
    live->options = options;
    live->n_seen_ports = (options->hosts_only ? 2 * fabric->n_hosts
                          : fabric->n_ports);
    live->last_level = options->late_s > 0 && !order_is_equal(order->kind)
                           ? order->n_levels - 1
                           : 0;
    live->ordered = order_unit(order->kind, workload_iterates(w));
    live->weighted = live->ordered == ORDER_UNIT_ITERATION;
    if (live->weighted && options->present_only) {
        live->ordered = ORDER_UNIT_COFLOW;
    } else if (live->ordered == ORDER_UNIT_COFLOW && options->late_s > 0
               && !order_is_equal(order->kind) && workload_iterates(w)) {
        live->ordered = ORDER_UNIT_ITERATION;
    }
    live->running = order_alloc(w->n_cojobs, sizeof *live->running);
    live->stages = order_alloc(w->n_stages, sizeof *live->stages);
    live->bests = order_alloc(w->n_cojobs, sizeof *live->bests);
    live->plain = order_alloc(w->n_cojobs, sizeof *live->plain);
    live->jobs = job_records_create(w, &live->n_jobs, &live->first_job);
    if (order_uses_metrics(order->kind) || live_is_promising(live)) {
        live->curves = order_alloc(live->n_jobs, sizeof *live->curves);
    }
    if (options->lookahead_runs && order_looks_ahead(order->kind)
        && live->ordered == ORDER_UNIT_ITERATION) {
        live->factors = order_alloc(live->n_jobs, sizeof *live->factors);
        for (size_t i = 0; i < live->n_jobs; i++) {
            live->factors[i] = 1;
        }
    }
    live_find_owners(live);
    paths_init(&live->paths, fabric);
    unit_maker_init(&live->maker, fabric->n_ports);
    live->rates = rates_create(rule, &live->paths);
    live->arrivals = order_alloc(w->n_cojobs, sizeof *live->arrivals);
    for (size_t i = 0; i < w->n_cojobs; i++) {
        live->arrivals[i].key = w->cojobs[i].arrival;
        live->arrivals[i].seq = i;
        if (!w->cojobs[i].follows) {
            node_heap_push(&live->arriving, &live->arrivals[i]);
        }
    }
}

void
live_uninit(struct live *live)
{
    rates_destroy(live->rates);
    for (size_t i = 0; i < live->workload->n_cojobs; i++) {
        if (live->running[i]) {
            live_stage_destroy(live->running[i]);
        }
    }
    free(live->running);
    unit_maker_uninit(&live->maker);
    paths_uninit(&live->paths);
    free(live->first_job);
    free(live->owners);
    free(live->accounts);
    free(live->served);
    free(live->curves);
    free(live->plain);
    free(live->factors);
    free(live->units);
    free(live->arrivals);
    free(live->arriving.nodes);
    free(live->computing.nodes);
}

double
live_known_share(const struct live_job *job)
{
    double announced = 1 - job->stage->cojob->understated;
    double k = job->iterations_done;

    return k < 3 ? announced : k < UNCOUNTED ? fmax(announced, 1 - 1 / k) : 1;
}

void
live_flow_ended(struct live *live, struct flow *flow)
{
    struct live_job *job = flow->job;

    assert(job->on_the_way[flow->shard]);
    if (!--job->on_the_way[flow->shard]) {
        shard_advance(live, job, flow->shard);
    }
}

double
live_next_event(const struct live *live)
{
    return fmin(node_heap_next(&live->arriving),
                node_heap_next(&live->computing));
}

void
live_run_events(struct live *live)
{
    const struct workload_cojob *cojobs = live->workload->cojobs;

    while (live_next_event(live) <= live->now) {
        if (node_heap_next(&live->arriving) <= live->now) {
            struct heap_node *arrival = node_heap_pop(&live->arriving);
            size_t i = arrival - live->arrivals;

            if (cojobs[i].n_rungs) {
                stage_begin(live, &cojobs[i], 0);
            }
        } else {
            struct heap_node *end = node_heap_pop(&live->computing);

            exchange_begin(live,
                           HEAP_NODE_OWNER(end, struct live_job, compute_end));
        }
    }
}
