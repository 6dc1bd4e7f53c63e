/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/decide-places.h"

#include <stdlib.h>

#include "controller/model/cluster.h"
#include "controller/decide/decide-override.h"
#include "controller/decide/decide-problem.h"
#include "controller/decide/hysteresis.h"
#include "order/result/levels.h"
#include "order/order.h"
#include "order/result/slack.h"
#include "policies/policy.h"
#include "util.h"

/* A job moves at most so many places back. */
#define MAX_PASSES 16

static bool
was_other_way_round(const struct slack_job *a, const struct slack_job *b)
{
    const struct job *ja = ((const struct decide_job *) a->owner)->job;
    const struct job *jb = ((const struct decide_job *) b->owner)->job;

    return (ja->level >= 0 && jb->level >= 0 && !ja->forced && !jb->forced
            && ja->rank > jb->rank);
}

/* Puts neighbours back whose slack differs by no more than 'tolerance' times
 * the later end of their stages. */
static void
keep_old_places(const struct order_result *r, double tolerance,
                struct slack_job *jobs, size_t n)
{
    bool again = true;

    for (int pass = 0; again && pass < MAX_PASSES; pass++) {
        again = false;
        for (size_t i = 1; i < n; i++) {
            struct slack_job *a = &jobs[i - 1], *b = &jobs[i];
            double end = MAX(r->completion[a->stage],
                             r->completion[b->stage]);

            if (was_other_way_round(a, b)
                && b->slack - a->slack <= tolerance * end) {
                struct slack_job tmp = *a;

                *a = *b;
                *b = tmp;
                again = true;
            }
        }
    }
}

static int
class_of(const struct slack_job *job)
{
    return decide_override_class(
        ((const struct decide_job *) job->owner)->job->override);
}

/* Sorts by what people said, and leaves the order as it is otherwise. */
static void
sort_by_override(struct slack_job *jobs, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct slack_job job = jobs[i];
        size_t k = i;

        for (; k > 0 && class_of(&jobs[k - 1]) > class_of(&job); k--) {
            jobs[k] = jobs[k - 1];
        }
        jobs[k] = job;
    }
}

/* Gives the jobs, which are sorted, levels as the policy folds them. */
static void
fold_jobs(const struct policy *policy, int n_ports, struct slack_job *jobs,
          size_t n)
{
    int *next = xcalloc(MAX(n_ports, 1), sizeof *next);
    struct fold fold;

    fold_init(&fold, next, n_ports);
    for (size_t i = 0; i < n; i++) {
        jobs[i].level = fold_depth(&fold, jobs[i].ports, jobs[i].n_ports,
                                   jobs[i].stride);
    }
    for (size_t i = 0; i < n; i++) {
        jobs[i].level = (policy->order.kind == ORDER_FAIR ? 0
                         : policy->order.truncate
                         ? MIN((int) i, policy->n_levels - 1)
                         : fold_level(&fold, jobs[i].level,
                                      policy->n_levels));
    }
    free(next);
}

/* Of a job whose ports are not known yet, those of its stage count. */
static struct slack_job
to_slack_job(const struct decide_problem *dp, const struct decide_job *dj)
{
    const struct order_stage *os = &dp->op->stages[dj->entry];
    const struct order_demand *d = dj->n_demands ? dj->demands : os->demands;

    return (struct slack_job) {
        .stage = dj->entry, .id = dj - dp->jobs, .isolated = dj->alone,
        .ports = d ? &d->port : NULL, .stride = sizeof *d,
        .n_ports = dj->n_demands ? dj->n_demands : os->n_demands,
        .owner = CONST_CAST(struct decide_job *, dj),
    };
}

static void
place_by_slack(struct decide_places *places, const struct decide_problem *dp,
               const struct policy *policy, const struct order_result *r)
{
    struct slack_job *jobs = xcalloc(MAX(dp->n_jobs, 1), sizeof *jobs);

    for (size_t i = 0; i < dp->n_jobs; i++) {
        jobs[i] = to_slack_job(dp, &dp->jobs[i]);
    }
    slack_assign(dp->op, r, policy->n_levels, jobs, dp->n_jobs);
    keep_old_places(r, policy->hysteresis, jobs, dp->n_jobs);
    sort_by_override(jobs, dp->n_jobs);
    fold_jobs(policy, dp->op->n_ports, jobs, dp->n_jobs);
    for (size_t k = 0; k < dp->n_jobs; k++) {
        places->jobs[k] = (struct decide_place) {
            .dj = jobs[k].owner, .level = jobs[k].level,
            .slack = jobs[k].slack,
        };
    }
    free(jobs);
}

static void
place_by_order(struct decide_places *places, const struct decide_problem *dp,
               const struct order_result *r)
{
    for (size_t k = 0; k < r->n; k++) {
        places->jobs[k] = (struct decide_place) {
            .dj = &dp->jobs[r->order[k]], .level = r->level[r->order[k]],
        };
    }
}

/* Ranks stages by their first jobs, and those without jobs last. */
static void
rank_stages(struct decide_places *places)
{
    bool *seen = xcalloc(MAX(places->n_stages, 1), sizeof *seen);
    size_t n = 0;

    for (size_t k = 0; k < places->n_jobs; k++) {
        int s = places->jobs[k].dj->stage;

        if (!seen[s]) {
            seen[s] = true;
            places->stages[n++] = s;
        }
    }
    for (size_t s = 0; s < places->n_stages; s++) {
        if (!seen[s]) {
            places->stages[n++] = s;
        }
    }
    free(seen);
}

/* Finds out who waits for whom. */
static void
mark_waiting(struct decide_places *places, int n_ports, bool share)
{
    int *before = xcalloc(MAX(n_ports, 1), sizeof *before);

    for (size_t k = 0; share && k < places->n_jobs; k++) {
        const struct decide_job *dj = places->jobs[k].dj;

        for (size_t i = 0; i < dj->n_demands; i++) {
            before[dj->demands[i].port]++;
        }
    }
    for (size_t k = 0; k < places->n_jobs; k++) {
        const struct decide_job *dj = places->jobs[k].dj;

        for (size_t i = 0; i < dj->n_demands; i++) {
            int *n = &before[dj->demands[i].port];

            places->jobs[k].waits |= share ? *n > 1 : (*n)++ > 0;
        }
    }
    free(before);
}

/* Returns when each entry of 'dp' ends if they are served in the order of 'r',
 * none before what is foreseen of it alone; the caller frees.  Orders of
 * coflows look at single iterations, and shares are not served in order:
 * there it is what the order says. */
static double *
foresee(const struct decide_problem *dp, const struct policy *policy,
        const struct order_result *r)
{
    const struct order_class *class = &order_classes[policy->order.kind];
    double *ends = xmemdup(r->completion, r->n * sizeof *ends);
    double *alone;

    if (dp->unit == ORDER_UNIT_COFLOW
        || class->service == ORDER_SERVICE_SHARE) {
        return ends;
    }
    alone = xcalloc(MAX(r->n, 1), sizeof *alone);
    for (size_t i = 0; i < dp->n_jobs; i++) {
        double *entry = &alone[dp->jobs[i].entry];

        *entry = MAX(*entry, dp->jobs[i].foreseen);
    }
    for (size_t i = 0; i < r->n; i++) {
        order_problem_set_release(dp->op, i, 0, alone[i]);
    }
    hysteresis_estimate(dp->op, r->order, ends);
    for (size_t i = 0; i < r->n; i++) {
        order_problem_set_release(dp->op, i, 0, 0);
    }
    free(alone);
    return ends;
}

/* Says of each stage which level its best job has and when its last one
 * ends. */
static void
describe_stages(struct decide_places *places, const struct decide_problem *dp,
                const struct policy *policy, const struct order_result *r)
{
    double *ends = foresee(dp, policy, r);
    bool *seen = xcalloc(MAX(places->n_stages, 1), sizeof *seen);

    for (size_t s = 0; dp->unit == ORDER_UNIT_STAGE && s < r->n; s++) {
        places->stage_levels[s] = r->level[s];
        places->completions[s] = ends[s];
    }
    for (size_t k = 0; k < places->n_jobs; k++) {
        const struct decide_place *place = &places->jobs[k];
        int s = place->dj->stage;
        int *level = &places->stage_levels[s];

        *level = seen[s] ? MIN(*level, place->level) : place->level;
        places->completions[s] = MAX(places->completions[s],
                                     ends[place->dj->entry]);
        seen[s] = true;
    }
    free(ends);
    free(seen);
}

/* Places the jobs of 'dp', for which 'r' is the order by 'policy'. */
void
decide_places_init(struct decide_places *places,
                   const struct decide_problem *dp,
                   const struct policy *policy, const struct order_result *r)
{
    *places = (struct decide_places) {
        .jobs = xcalloc(MAX(dp->n_jobs, 1), sizeof *places->jobs),
        .n_jobs = dp->n_jobs,
        .stages = xcalloc(MAX(dp->n_stages, 1), sizeof *places->stages),
        .stage_levels = xcalloc(MAX(dp->n_stages, 1),
                                sizeof *places->stage_levels),
        .completions = xcalloc(MAX(dp->n_stages, 1),
                               sizeof *places->completions),
        .n_stages = dp->n_stages,
    };
    if (dp->unit == ORDER_UNIT_STAGE) {
        place_by_slack(places, dp, policy, r);
        for (size_t k = 0; k < r->n; k++) {
            places->stages[k] = r->order[k];
        }
    } else {
        place_by_order(places, dp, r);
        rank_stages(places);
    }
    decide_override_levels(policy, places->jobs, places->n_jobs);
    mark_waiting(places, dp->op->n_ports,
                 order_classes[policy->order.kind].service
                 == ORDER_SERVICE_SHARE);
    describe_stages(places, dp, policy, r);
}

void
decide_places_uninit(struct decide_places *places)
{
    free(places->jobs);
    free(places->stages);
    free(places->stage_levels);
    free(places->completions);
}
