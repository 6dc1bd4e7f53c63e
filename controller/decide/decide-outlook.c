/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/decide-outlook.h"

#include <stdlib.h>

#include "controller/decide/decide-override.h"
#include "controller/decide/decide-problem.h"
#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "controller/model/iteration-traffic.h"
#include "policies/policy.h"
#include "util.h"

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

/* Returns the iterations, each of 'times' real ones, to the end of the early
 * phase of 'dj'. */
static double
to_early(const struct decide_job *dj, double times)
{
    return dj->traits.early ? MAX(dj->traits.iterations_to_theta / times, 1)
                            : 0;
}

/* Describes 'dj', which is judged by one of 'grain' iterations. */
static void
describe_job(const struct decide_job *dj, double grain,
             const struct judge_situation *sit, struct judge_job *jj)
{
    struct judge_demand *demands =
        xcalloc(MAX(dj->n_demands, 1), sizeof *demands);
    int64_t iterations = MAX(dj->iterations / grain, 1);
    double times = (double) dj->iterations / iterations;
    double flows;

    *jj = (struct judge_job){ .state = JUDGE_COMPUTING,
                              .iterations = iterations,
                              .exchange = times * dj->burst,
                              .to_early = to_early(dj, times),
                              .level = MAX(dj->job->level, 0),
                              .first = dj->job->override == OVERRIDE_PIN };
    describe_flows(dj->job, times, sit->capacity, jj, &flows);
    jj->exchange = MAX(jj->exchange, flows);
    jj->compute = MAX(dj->predicted / iterations - jj->exchange, 0);
    jj->wait = jj->compute / 2;
    for (size_t i = 0; i < dj->n_demands; i++) {
        int port = dj->demands[i].port;

        if (port < sit->n_ports && dj->demands[i].seconds > 0) {
            demands[jj->n_demands++] = (struct judge_demand){
                .port = port,
                .bytes = times * dj->demands[i].seconds * sit->capacity[port],
            };
        }
    }
    jj->demands = demands;
}

/* Adds the jobs of stage 's' that no override keeps back. */
static void
add_jobs(struct decide_outlook *o, const struct decide_problem *dp, size_t s,
         double grain, struct judge_job *jobs)
{
    struct judge_situation *sit = &o->situation;

    for (size_t i = dp->first_job[s]; i < dp->first_job[s + 1]; i++) {
        const struct decide_job *dj = &dp->jobs[i];

        if (decide_override_class(dj) <= 0) {
            describe_job(dj, grain, sit, &jobs[sit->n_jobs]);
            o->jobs[sit->n_jobs] = xstrdup(dj->job->full_name);
            o->factors[sit->n_jobs] = dj->job->factor;
            sit->n_jobs++;
        }
    }
}

/* Describes stage 's', whose jobs are those of 'o' from 'first' on. */
static struct judge_search
describe_search(const struct decide_outlook *o,
                const struct decide_problem *dp, const struct policy *policy,
                const struct candor *candor, size_t s, double grain,
                size_t first, long long now)
{
    const struct stage *stage = dp->stages[s];
    struct judge_rung *rung = xmalloc(sizeof *rung);

    *rung = (struct judge_rung){
        .iterations =
            MAX((stage->iterations - stage->first_iteration) / grain, 1),
        .n_jobs = o->situation.n_jobs - first,
    };
    return (struct judge_search){
        .weight = decide_stage_weight(policy, stage),
        .age = MAX(0, now - stage->begin_ms) / 1000.0,
        .owed = (stage->announcement.later
                 + announcement_debt(&stage->announcement, candor))
                / grain,
        .first_job = first,
        .n_jobs = rung->n_jobs,
        .rungs = rung,
        .n_rungs = 1, /* There is nothing to guess. */
    };
}

static void
describe_stages(struct decide_outlook *o, const struct decide_problem *dp,
                const struct policy *policy, long long now)
{
    struct judge_search *searches = xcalloc(dp->n_stages, sizeof *searches);
    struct judge_job *jobs = xcalloc(dp->n_jobs, sizeof *jobs);
    struct judge_situation *sit = &o->situation;
    struct candor candor = { .n = 0 };
    double iterations = 0, grain;

    for (size_t i = 0; i < dp->n_jobs; i++) {
        iterations += dp->jobs[i].iterations;
    }
    grain = MAX(iterations / MAX_ITERATIONS, 1);
    for (size_t s = 0; s < dp->n_stages; s++) {
        candor_add(&candor, &dp->stages[s]->announcement);
    }
    for (size_t s = 0; s < dp->n_stages; s++) {
        size_t first = sit->n_jobs;

        add_jobs(o, dp, s, grain, jobs);
        if (sit->n_jobs > first) {
            searches[sit->n_searches++] =
                describe_search(o, dp, policy, &candor, s, grain, first, now);
        }
    }
    sit->searches = searches;
    sit->jobs = jobs;
}

/* 'dp' has weighted iterations; 'now' is time_msec(). */
struct decide_outlook *
decide_outlook_create(const struct decide_problem *dp, const struct cluster *c,
                      const struct policy *policy, long long now)
{
    struct decide_outlook *o = xzalloc(sizeof *o);

    o->situation = (struct judge_situation){
        .n_ports = c->n_hosts * N_DIRS,
        .capacity = copy_capacities(c),
        .n_levels = policy->n_levels,
        .min_share = policy->min_share,
        .refresh_s = policy->refresh_ms / 1000.0,
        .late_s = LATE_S,
        .aging_s = policy->aging_s,
        .objective_slowdown = policy->objective_slowdown,
        .early_boost = policy->order.kind == ORDER_STAGE_EARLY
                           ? policy->order.early_boost
                           : 0,
    };
    o->jobs = xcalloc(MAX(dp->n_jobs, 1), sizeof *o->jobs);
    o->factors = xcalloc(MAX(dp->n_jobs, 1), sizeof *o->factors);
    describe_stages(o, dp, policy, now);
    return o;
}

void
decide_outlook_destroy(struct decide_outlook *o)
{
    if (!o) {
        return;
    }
    for (size_t i = 0; i < o->situation.n_searches; i++) {
        free(CONST_CAST(struct judge_rung *, o->situation.searches[i].rungs));
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
    free(CONST_CAST(struct judge_search *, o->situation.searches));
    free(CONST_CAST(struct judge_job *, o->situation.jobs));
    free(CONST_CAST(double *, o->situation.capacity));
    free(o->jobs);
    free(o->factors);
    free(o);
}
