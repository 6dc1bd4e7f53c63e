/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/decide-outlook.h"

#include <math.h>
#include <stdlib.h>

#include "controller/decide/decide-override.h"
#include "controller/decide/decide-problem.h"
#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "controller/model/iteration-traffic.h"
#include "hash.h"
#include "policies/policy.h"
#include "util.h"

/* Until jobs have done iterations it is not known how long they compute, and
 * the plain network waits for that, but not longer after the begin of a stage
 * than this. */
#define KNOWN_MS 10000

/* A job on more hosts has a flow for each port instead of one for each pair,
 * because the number of pairs grows with the square. */
#define MAX_PAIR_HOSTS 128

/* Seconds until hosts serve an order, and until an agent reports the end of a
 * job, together (bench control-fanout). */
#define LATE_S 0.04

/* With more iterations of all jobs together, several are judged as one, with
 * as many bytes.  That hardly changes which jobs overlap, and a judgement
 * takes about as long as there are iterations. */
#define MAX_ITERATIONS 1000

static double *
copy_capacities(const struct cluster *c)
{
    double *capacity = xcalloc(MAX(c->n_hosts, 1) * N_DIRS, sizeof *capacity);
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &c->hosts) {
        const struct host *host = node->data;

        for (int dir = 0; dir < N_DIRS; dir++) {
            capacity[demand_port(host, dir)] = host_capacity(host) / 8;
        }
    }
    return capacity;
}

/* Returns 1 for what servers send to workers, which begins when they have
 * received all, 0 for the rest. */
static int
phase_of(const struct job *job, const struct traffic_pair *pair)
{
    const struct job_traffic *src =
        shash_find_data(&job->traffic, pair->src->name);

    return src->workers[ROLE_SERVER] && !src->workers[ROLE_WORKER];
}

/* Describes the flows of 'times' iterations of 'job'.  Stores in '*seconds'
 * how long they take without competitors. */
static void
describe_flows(const struct job *job, double times, const double *capacity,
               struct judge_job *jj, double *seconds)
{
    struct traffic_pair *pairs;
    size_t n = iteration_traffic_pairs(job, &pairs);
    struct judge_flow *flows = xcalloc(MAX(n, 1), sizeof *flows);
    int *ports = xcalloc(MAX(n, 1) * 2, sizeof *ports);
    double longest[2] = { 0, 0 };

    for (int phase = 0; phase < 2; phase++) {
        for (size_t i = 0; i < n; i++) {
            struct judge_flow *flow = &flows[jj->n_flows];
            int *own = &ports[2 * jj->n_flows];

            if (phase_of(job, &pairs[i]) != phase) {
                continue;
            }
            own[0] = demand_port(pairs[i].src, DIR_TX);
            own[1] = demand_port(pairs[i].dst, DIR_RX);
            *flow = (struct judge_flow){ .ports = own,
                                         .n_ports = 2,
                                         .bytes = times * pairs[i].bytes,
                                         .phase = phase };
            for (int k = 0; k < 2; k++) {
                longest[phase] =
                    MAX(longest[phase], flow->bytes / capacity[own[k]]);
            }
            jj->n_flows++;
        }
    }
    if (!jj->n_flows) {
        free(ports);
    }
    free(pairs);
    jj->flows = flows;
    *seconds = longest[0] + longest[1];
}

/* Describes a flow for each demand of 'jj', without its peers. */
static void
describe_lone_flows(struct judge_job *jj)
{
    int *ports = xcalloc(jj->n_demands, sizeof *ports);
    struct judge_flow *flows = xcalloc(jj->n_demands, sizeof *flows);

    free(CONST_CAST(struct judge_flow *, jj->flows));
    for (size_t i = 0; i < jj->n_demands; i++) {
        ports[i] = jj->demands[i].port;
        flows[i] = (struct judge_flow){ .ports = &ports[i],
                                        .n_ports = 1,
                                        .bytes = jj->demands[i].bytes };
    }
    jj->flows = flows;
    jj->n_flows = jj->n_demands;
}

/* Returns how many iterations of the judge stand for 'n'. */
static int64_t
count_grains(double n, double grain)
{
    return MAX(llround(n / grain), 1);
}

/* Returns the iterations, each of 'grain' real ones, to the end of the early
 * phase of 'dj'. */
static double
to_early(const struct decide_job *dj, double grain)
{
    return dj->traits.early ? MAX(dj->traits.iterations_to_theta / grain, 1)
                            : 0;
}

/* Describes 'dj', which is judged by one of 'grain' iterations. */
static void
describe_job(const struct decide_job *dj, double grain,
             const struct judge_situation *sit, struct judge_job *jj)
{
    struct judge_demand *demands =
        xcalloc(MAX(dj->n_demands, 1), sizeof *demands);
    double flows;

    *jj =
        (struct judge_job){ .state = JUDGE_COMPUTING,
                            .iterations = count_grains(dj->iterations, grain),
                            .exchange = grain * dj->burst,
                            .to_early = to_early(dj, grain),
                            .level = MAX(dj->job->level, 0),
                            .first = dj->job->override == OVERRIDE_PIN };
    if (shash_count(&dj->job->traffic) <= MAX_PAIR_HOSTS) {
        describe_flows(dj->job, grain, sit->capacity, jj, &flows);
        jj->exchange = MAX(jj->exchange, flows);
    }
    jj->compute =
        MAX(grain * dj->predicted / dj->iterations - jj->exchange, 0);
    jj->wait = jj->compute / 2;
    for (size_t i = 0; i < dj->n_demands; i++) {
        int port = dj->demands[i].port;

        if (port < sit->n_ports && dj->demands[i].seconds > 0) {
            demands[jj->n_demands++] = (struct judge_demand){
                .port = port,
                .bytes = grain * dj->demands[i].seconds * sit->capacity[port],
            };
        }
    }
    jj->demands = demands;
    if (!jj->n_flows && jj->n_demands) {
        describe_lone_flows(jj);
    }
}

/* Returns true if a job of stage 's' has iterations left and no override keeps
 * it back. */
static bool
has_work(const struct decide_problem *dp, size_t s)
{
    for (size_t i = dp->first_job[s]; i < dp->first_job[s + 1]; i++) {
        if (decide_override_class(&dp->jobs[i]) <= 0) {
            return true;
        }
    }
    return false;
}

/* Adds the jobs of stage 's' that no override keeps back.  Those that wait for
 * the others may continue in later rungs. */
static void
add_jobs(struct decide_outlook *o, const struct decide_problem *dp, size_t s,
         const struct cluster *c, double grain, struct judge_job *jobs)
{
    const struct decide_job *next = &dp->jobs[dp->first_job[s]];
    const struct decide_job *end = &dp->jobs[dp->first_job[s + 1]];
    const struct stage *stage = dp->stages[s];
    struct judge_situation *sit = &o->situation;

    for (size_t i = 0; i < stage->n_jobs; i++) {
        struct job *job = stage->jobs[i];
        bool done = next == end || next->job != job;
        struct decide_job own = { .job = job, .iterations = 1 };
        const struct decide_job *dj = done ? &own : next++;

        if (decide_override_class(dj) > 0
            || (done && (!job->live || !stage->n_later))) {
            continue;
        }
        if (done) {
            decide_job_measure(&own, c);
        }
        describe_job(dj, grain, sit, &jobs[sit->n_jobs]);
        if (done) {
            jobs[sit->n_jobs].state = JUDGE_DONE;
            jobs[sit->n_jobs].iterations = 0;
            free(own.demands);
        }
        o->left[sit->n_jobs] = done ? 0 : dj->iterations / grain;
        o->jobs[sit->n_jobs] = xstrdup(job->full_name);
        o->factors[sit->n_jobs] = job->factor;
        sit->n_jobs++;
    }
}

/* Returns the iterations that the search of 'stage' owes. */
static double
hidden_iterations(const struct stage *stage, const struct candor *candor)
{
    return (announcement_debt(&stage->announcement, candor)
            + (stage->work > 0 ? stage->debt / stage->work : 0));
}

/* Stores the rung of 'stage', with 'n_jobs' jobs, those that its search has
 * announced after it, and what it owes.  Returns their number. */
static size_t
describe_rungs(const struct stage *stage, const struct candor *candor,
               size_t n_jobs, double grain, struct announced_rung *rungs)
{
    rungs[0] = (struct announced_rung){
        .iterations =
            count_grains(stage->iterations - stage->first_iteration, grain),
        .n_jobs = n_jobs,
    };
    for (size_t i = 0; i < stage->n_later; i++) {
        rungs[i + 1] = (struct announced_rung){
            .iterations = count_grains(stage->later[i].iterations, grain),
            .n_jobs = MIN(stage->later[i].n_jobs, rungs[i].n_jobs),
        };
    }
    return announced_rungs_add(rungs, 1 + stage->n_later,
                               hidden_iterations(stage, candor) / grain);
}

/* Describes an asynchronous search as one rung, in which the 'n' trials that
 * run, 'jobs', do an equal part of all that is known.  Returns 1. */
static size_t
describe_trials(const struct stage *stage, const struct candor *candor,
                double grain, struct judge_job *jobs, size_t n,
                struct announced_rung *rungs)
{
    double left = stage_trials_left(stage) + hidden_iterations(stage, candor);
    double all = left + stage_trials_done(stage);

    for (size_t i = 0; i < n; i++) {
        jobs[i].iterations = count_grains(left / n, grain);
    }
    *rungs =
        (struct announced_rung){ .iterations = count_grains(all / n, grain),
                                 .n_jobs = n };
    return 1;
}

/* Returns true if it is known what stage 's' needs. */
static bool
is_known(const struct decide_problem *dp, size_t s, long long now)
{
    bool known = true;

    for (size_t i = dp->first_job[s]; i < dp->first_job[s + 1]; i++) {
        const struct decide_job *dj = &dp->jobs[i];

        known &= dj->n_demands > 0 && demand_counts_iterations(dj->job)
                 && (dj->job->progress.period > 0
                     || now >= dp->stages[s]->begin_ms + KNOWN_MS);
    }
    return known;
}

uint64_t
decide_outlook_id(const struct stage *stage)
{
    return hash_add64(hash_string(stage->cojob_name, stage->rung),
                      stage->began);
}

/* Describes stage 's'; its jobs are those of 'o' from 'first' on. */
static struct judge_search
describe_search(const struct decide_outlook *o,
                const struct decide_problem *dp, const struct policy *policy,
                size_t s, double grain, struct judge_job *jobs, size_t first,
                long long now)
{
    const struct stage *stage = dp->stages[s];
    size_t n_jobs = o->situation.n_jobs - first;
    struct announced_rung *rungs = xcalloc(2 + stage->n_later, sizeof *rungs);

    return (struct judge_search){
        .weight = decide_stage_weight(policy, stage),
        .age = MAX(0, now - stage->begin_ms) / 1000.0,
        .unknown = !is_known(dp, s, now),
        .plain = stage->plain.id || !stage->rung ? stage->plain
                                                 : stage->cojob->plain,
        .first_job = first,
        .n_jobs = n_jobs,
        .rungs = rungs,
        .n_rungs = stage->trials.n ? describe_trials(
                       stage, &dp->candor, grain, &jobs[first], n_jobs, rungs)
                                   : describe_rungs(stage, &dp->candor, n_jobs,
                                                    grain, rungs),
        .id = decide_outlook_id(stage),
    };
}

static void
describe_stages(struct decide_outlook *o, const struct decide_problem *dp,
                const struct cluster *c, const struct policy *policy,
                const double ends[], long long now, struct judge_job *jobs)
{
    struct judge_search *searches = xcalloc(dp->n_stages, sizeof *searches);
    struct judge_situation *sit = &o->situation;
    double iterations = 0, grain;

    for (size_t i = 0; i < dp->n_jobs; i++) {
        iterations += dp->jobs[i].iterations;
    }
    for (size_t s = 0; s < dp->n_stages; s++) {
        iterations += dp->stages[s]->announcement.later;
    }
    grain = MAX(iterations / MAX_ITERATIONS, 1);
    for (size_t s = 0; s < dp->n_stages; s++) {
        size_t first = sit->n_jobs;

        if (has_work(dp, s)) {
            add_jobs(o, dp, s, c, grain, jobs);
        }
        if (sit->n_jobs > first) {
            searches[sit->n_searches] =
                describe_search(o, dp, policy, s, grain, jobs, first, now);
            o->estimate += searches[sit->n_searches++].weight * ends[s];
        }
    }
    sit->searches = searches;
    sit->jobs = jobs;
    o->grain = grain;
}

/* 'ends' are seconds until its stages end; 'now'
 * is time_msec(). */
struct decide_outlook *
decide_outlook_create(const struct decide_problem *dp, const struct cluster *c,
                      const struct policy *policy, const double ends[],
                      long long now)
{
    struct decide_outlook *o = xzalloc(sizeof *o);
    size_t n_jobs = 0;

    for (size_t s = 0; s < dp->n_stages; s++) {
        n_jobs += dp->stages[s]->n_jobs;
    }
    o->situation = (struct judge_situation){
        .n_ports = c->n_hosts * N_DIRS,
        .capacity = copy_capacities(c),
        .n_levels = policy->n_levels,
        .min_share = policy->min_share,
        .refresh_s = policy->refresh_ms / 1000.0,
        .late_s = LATE_S,
        .aging_s = policy->aging_s,
        .aging_slowdown = policy->aging_slowdown,
        .latest = policy->objective_latest,
        .early_boost = policy->order.kind == ORDER_STAGE_EARLY
                           ? policy->order.early_boost
                           : 0,
    };
    o->jobs = xcalloc(MAX(n_jobs, 1), sizeof *o->jobs);
    o->factors = xcalloc(MAX(n_jobs, 1), sizeof *o->factors);
    o->left = xcalloc(MAX(n_jobs, 1), sizeof *o->left);
    describe_stages(o, dp, c, policy, ends, now,
                    xcalloc(MAX(n_jobs, 1), sizeof(struct judge_job)));
    return o;
}

void
decide_outlook_destroy(struct decide_outlook *o)
{
    if (!o) {
        return;
    }
    for (size_t i = 0; i < o->situation.n_searches; i++) {
        free(CONST_CAST(struct announced_rung *,
                        o->situation.searches[i].rungs));
    }
    for (size_t i = 0; i < o->situation.n_jobs; i++) {
        const struct judge_job *job = &o->situation.jobs[i];

        if (job->n_flows) {
            free(CONST_CAST(int *, job->flows[0].ports));
        }
        free(CONST_CAST(struct judge_flow *, job->flows));
        free(CONST_CAST(struct judge_demand *, job->demands));
        free(o->jobs[i]);
    }
    free(o->situation.searches);
    free(CONST_CAST(struct judge_job *, o->situation.jobs));
    free(CONST_CAST(double *, o->situation.capacity));
    free(o->jobs);
    free(o->factors);
    free(o->left);
    free(o);
}
