/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/run/outlook.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "order/problem/memory.h"
#include "sim/run/live.h"
#include "sim/run/simulate.h"
#include "sim/workload/random.h"
#include "sim/workload/workload.h"

/* What plans are wrong by, see struct sim_options. */
enum mistake { MISTAKE_SIZE, MISTAKE_COMPUTING, N_MISTAKES };

static double
mistake(const struct live *live, const struct live_job *job, enum mistake what)
{
    size_t i = job->record - live->jobs;
    struct sim_random r = { live->options->seed + N_MISTAKES * i + what };
    double factor = 1 + live->options->lookahead_error;

    return sim_random_between(&r, 0, 1) < 0.5 ? factor : 1 / factor;
}

/* Returns how much of 'flow' of 'phase' is left in the current exchange. */
static double
bytes_left(const struct live_job *job, const struct flow *flow, int phase)
{
    int current = job->phase[flow->shard];

    return phase < current    ? 0
           : phase == current ? flow->remaining
                              : flow->bytes;
}

/* Describes the flows of a phase of a shard.  Returns their number. */
static size_t
describe_phase(const struct live *live, const struct live_job *job, int shard,
               int phase, double factor, struct judge_flow *flows)
{
    const size_t *first = &job->first[shard * job->job->n_phases + phase];
    size_t n = 0;

    for (size_t i = first[0]; i < first[1]; i++) {
        const struct flow *flow = &job->flows[i];
        const struct path *path = &live->paths.paths[flow->path];

        if (flow->bytes > 0) {
            flows[n++] =
                (struct judge_flow){ .ports = path->ports,
                                     .n_ports = path->n_ports,
                                     .bytes = factor * flow->bytes,
                                     .shard = shard,
                                     .phase = phase,
                                     .left = factor
                                             * bytes_left(job, flow, phase) };
        }
    }
    return n;
}

/* Describes what one iteration of 'job' moves. */
static void
describe_exchange(const struct live *live, const struct live_job *job,
                  struct judge_job *jj)
{
    const struct unit *unit = &job->unit;
    double factor = live_known_share(job) * mistake(live, job, MISTAKE_SIZE);
    struct judge_flow *flows =
        order_alloc(job->job->n_transfers, sizeof *flows);
    struct judge_demand *demands = order_alloc(unit->n_work, sizeof *demands);

    for (int s = 0; s < job->job->n_shards; s++) {
        for (int p = 0; p < job->job->n_phases; p++) {
            jj->n_flows +=
                describe_phase(live, job, s, p, factor, &flows[jj->n_flows]);
        }
    }
    for (size_t i = 0; i < unit->n_work; i++) {
        if (unit->work[i].whole > 0
            && unit->work[i].port < live->n_seen_ports) {
            demands[jj->n_demands++] =
                (struct judge_demand){ .port = unit->work[i].port,
                                       .bytes = factor * unit->work[i].whole
                                                / job->times };
        }
    }
    jj->flows = flows;
    jj->demands = demands;
}

/* Returns the iterations to the end of the early phase of 'job'. */
static double
iterations_to_early(const struct live *live, const struct live_job *job,
                    const struct progress_options *early)
{
    struct order_traits traits = { .gain = 0 };

    if (early) {
        remaining_early(job, early, live->now, &traits);
    }
    return traits.early ? fmax(traits.iterations_to_theta, 1) : 0;
}

static void
describe_job(const struct live *live, const struct live_job *job,
             const struct progress_options *early, struct judge_job *jj)
{
    static const enum judge_state states[] = {
        [LIVE_COMPUTING] = JUDGE_COMPUTING,
        [LIVE_EXCHANGING] = JUDGE_EXCHANGING,
        [LIVE_DONE] = JUDGE_DONE,
    };

    *jj = (struct judge_job){
        .compute = (job->job->compute + live->options->jitter_s)
                   * mistake(live, job, MISTAKE_COMPUTING),
        .exchange = job->exchange_time * mistake(live, job, MISTAKE_SIZE),
        .state = states[job->state],
        .wait = job->compute_end.key - live->now,
        .iterations = job->iterations_left,
        .to_early = iterations_to_early(live, job, early),
        .level = job->unit.level
    };
    describe_exchange(live, job, jj);
}

/* Describes an asynchronous search as one rung, in which its 'n' running
 * trials, 'jobs', do an equal part of all that is known. */
static size_t
describe_trials(const struct live_stage *stage, struct judge_job *jobs,
                size_t n, struct announced_rung *rungs)
{
    double done = 0, left = 0;

    for (size_t i = 0; i < stage->n_jobs; i++) {
        done += stage->jobs[i].iterations_done;
        left += stage->jobs[i].iterations_left + stage->jobs[i].to_come;
    }
    for (size_t k = 0; k < n; k++) {
        jobs[k].iterations = fmax(round(left / n), 1);
    }
    *rungs = (struct announced_rung){ .iterations =
                                          fmax(round((done + left) / n), 1),
                                      .n_jobs = n };
    return 1;
}

/* Stores the rungs of 'stage' and of those after it that its search announces,
 * with as many iterations, and what it owes.  Returns their number. */
static size_t
describe_rungs(const struct live *live, const struct live_stage *stage,
               struct announced_rung *rungs)
{
    const struct workload_cojob *cojob = stage->cojob;
    size_t running = stage->record->rung, n = 0;

    for (size_t r = running; r < cojob->n_rungs; r++) {
        const struct workload_rung *rung = &cojob->rungs[r];
        double announced = r > running ? 1 - cojob->hidden : 1;

        rungs[n] = (struct announced_rung){
            .iterations =
                llround(announced
                        * (rung->iterations - (r ? rung[-1].iterations : 0))),
            .n_jobs = rung->n_jobs,
        };
        n += rungs[n].iterations > 0;
    }
    return announced_rungs_add(
        rungs, n,
        announcement_debt(&stage->announcement, &live->candor)
            + (stage->work > 0 ? stage->debt / stage->work
                                     * workload_rung_iterations(cojob, running)
                               : 0));
}

/* Returns true if it is not known yet what the jobs of 'stage' move. */
static bool
is_unknown(const struct live_stage *stage)
{
    for (size_t k = 0; k < stage->n_jobs; k++) {
        if (live_known_share(&stage->jobs[k]) < 1) {
            return true;
        }
    }
    return false;
}

/* Returns true if the judge has 'job': all of a rung, but only the running
 * trials. */
static bool
has_job(const struct live_job *job)
{
    return !job->stage->rungs || job->state != LIVE_DONE;
}

/* Describes 'stage'; its jobs are the last of 'n', from 'first' on. */
static struct judge_search
describe_search(const struct live *live, const struct live_stage *stage,
                struct judge_job *jobs, size_t first, size_t n)
{
    const struct workload_cojob *cojob = stage->cojob;
    struct announced_rung *rungs =
        order_alloc(cojob->n_rungs + 1, sizeof *rungs);

    return (struct judge_search){
        .weight = cojob->weight,
        .age = live->now - stage->record->begin,
        .unknown = is_unknown(stage),
        .plain = live->plain[stage->record->cojob],
        .first_job = first,
        .n_jobs = n - first,
        .rungs = rungs,
        .n_rungs = stage->rungs
                       ? describe_trials(stage, &jobs[first], n - first, rungs)
                       : describe_rungs(live, stage, rungs),
        .id = cojob - live->workload->cojobs
    };
}

/* Lists the running stages, each once, by their begin. */
static size_t
list_stages(const struct live *live, const struct live_stage **stages)
{
    size_t n = 0;

    for (size_t u = 0; u < live->n_units; u++) {
        const struct live_stage *stage = live->units[u]->stage;
        size_t i = n;

        while (i && stages[i - 1]->record > stage->record) {
            i--;
        }
        if (!i || stages[i - 1] != stage) {
            memmove(&stages[i + 1], &stages[i], (n - i) * sizeof *stages);
            stages[i] = stage;
            n++;
        }
    }
    return n;
}

static void
set_service(const struct live *live, struct judge_situation *s)
{
    const struct sim_options *options = live->options;
    bool exact = options->service == SIM_SERVICE_EXACT;

    s->n_ports = live->fabric->n_ports;
    s->capacity = live->fabric->capacity;
    s->n_levels = exact ? INT_MAX : options->order.n_levels;
    s->min_share = exact ? 0 : options->min_share;
    s->refresh_s = options->refresh_s;
    s->late_s = options->late_s;
    s->aging_s = options->aging_s;
    s->aging_slowdown = options->aging_slowdown;
    s->latest = options->latest;
    s->early_boost = options->order.kind == ORDER_STAGE_EARLY
                         ? options->order.early_boost
                         : 0;
}

void
outlook_init(struct outlook *outlook, const struct live *live,
             const struct progress_options *early)
{
    const struct live_stage **stages =
        order_alloc(live->n_units, sizeof *stages);
    size_t n = list_stages(live, stages);
    struct judge_search *searches = order_alloc(n, sizeof *searches);
    struct judge_job *jobs;
    size_t most = 0, n_jobs = 0;

    live->rates->class->settle(live->rates, live->now);
    for (size_t i = 0; i < n; i++) {
        most += stages[i]->n_jobs;
    }
    jobs = order_alloc(most, sizeof *jobs);
    outlook->jobs = order_alloc(most, sizeof *outlook->jobs);
    for (size_t i = 0; i < n; i++) {
        size_t first = n_jobs;

        for (size_t k = 0; k < stages[i]->n_jobs; k++) {
            const struct live_job *job = &stages[i]->jobs[k];

            if (has_job(job)) {
                outlook->jobs[n_jobs] = job;
                describe_job(live, job, early, &jobs[n_jobs++]);
            }
        }
        searches[i] = describe_search(live, stages[i], jobs, first, n_jobs);
    }
    outlook->situation = (struct judge_situation){
        .searches = searches, .n_searches = n, .jobs = jobs, .n_jobs = n_jobs
    };
    set_service(live, &outlook->situation);
    free(stages);
}

void
outlook_uninit(struct outlook *outlook)
{
    struct judge_situation *s = &outlook->situation;

    for (size_t i = 0; i < s->n_searches; i++) {
        free((void *) s->searches[i].rungs);
    }
    for (size_t k = 0; k < s->n_jobs; k++) {
        free((void *) s->jobs[k].flows);
        free((void *) s->jobs[k].demands);
    }
    free(s->searches);
    free((void *) s->jobs);
    free(outlook->jobs);
}
