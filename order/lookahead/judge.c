/* SPDX-License-Identifier: Apache-2.0 */

#include "order/lookahead/judge.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "order/lookahead/level-rates.h"
#include "order/problem/iteration-weight.h"
#include "order/problem/memory.h"
#include "order/problem/problem.h"
#include "order/result/levels.h"

/* Factor of the keys of pinned jobs. */
#define PINNED 1e-30

/* The flows of one phase of a shard. */
struct phase {
    size_t job;
    size_t first, n; /* Flows. */
    bool last;       /* Of its shard; otherwise the next one
                      * follows. */
    size_t n_moving; /* In a run: flows that have not ended. */
};

struct flow {
    struct level_flow rate; /* The first member. */
    const struct judge_flow *spec;
    struct phase *phase;
};

struct ranked {
    double key;
    size_t job;
};

/* A search at this moment of a run. */
struct search_state {
    size_t rung; /* Index in 'rungs'; 'n_rungs' at the end. */
    size_t jobs_left;
    double begin;    /* Of the stage, seconds; < 0 before the
                      * run. */
    double isolated; /* Of the stage, seconds. */
    double later;    /* Iterations of the rungs after this one... */
    double rest;     /* ...and the least time that they take, seconds. */
};

struct judge {
    const struct judge_situation *s;
    size_t *search_of;      /* Of each job. */
    double *work, *busiest; /* Seconds of an iteration of each job, of all
                             * ports and of the busiest one. */
    size_t n_flows, n_phases;
    struct flow *flows;   /* By job. */
    struct phase *phases; /* By job, then by shard. */
    size_t *first_phase;  /* Of each job; one more for the end. */
    size_t *first_end;    /* Of each search in 'ends'. */

    /* State of a run. */
    double now, due, refresh; /* Seconds: time of the next late order, and of
                               * the next one without a change. */
    struct judge_job_state *jobs;
    struct search_state *searches;
    size_t n_live; /* Searches that have not ended. */
    double weight; /* Of these. */
    double cost;   /* Weighted sum of the ends of the others, and of
                    * early phases. */
    struct level_rates rates;
    bool reordered; /* Jobs began or ended. */
    bool decided;   /* The last step ordered jobs. */

    const double *factors; /* Arguments of the run. */
    const size_t *places;
    double *ends; /* By search and rung, or NULL. */

    /* For one step. */
    double *keys;
    struct ranked *ranked;
    int *depth, *next; /* Of each rank; of the fold by port. */
    double *seconds;   /* Of each port. */
};

static double
period_of(const struct judge *j, size_t job)
{
    return j->s->jobs[job].compute + j->s->jobs[job].exchange;
}

/* Returns the time that the running rung of search 'i' takes at least. */
static double
isolated_of(struct judge *j, size_t i)
{
    const struct judge_search *search = &j->s->searches[i];
    int64_t n = search->rungs[j->searches[i].rung].iterations;
    double isolated = 0;

    memset(j->seconds, 0, j->s->n_ports * sizeof *j->seconds);
    for (size_t k = search->first_job; k < search->first_job + search->n_jobs;
         k++) {
        if (!j->jobs[k].iterations) {
            continue;
        }
        isolated = fmax(isolated, n * period_of(j, k));
        for (size_t d = 0; d < j->s->jobs[k].n_demands; d++) {
            const struct judge_demand *demand = &j->s->jobs[k].demands[d];
            double *seconds = &j->seconds[demand->port];

            *seconds += n * demand->bytes / j->s->capacity[demand->port];
            isolated = fmax(isolated, *seconds);
        }
    }
    return isolated;
}

/* Returns the time that the rungs of search 'i' after the running one take at
 * least. */
static double
rest_of(const struct judge *j, size_t i)
{
    const struct judge_search *search = &j->s->searches[i];
    double rest = 0;

    for (size_t r = j->searches[i].rung + 1; r < search->n_rungs; r++) {
        double longest = 0;

        for (size_t k = search->first_job;
             k < search->first_job + search->n_jobs; k++) {
            if (j->places[k] < search->rungs[r].n_jobs) {
                longest = fmax(longest, period_of(j, k));
            }
        }
        rest += search->rungs[r].iterations * longest;
    }
    return rest;
}

/* Adds the flows and the phases of job 'k'. */
static void
add_flows(struct judge *j, size_t k)
{
    const struct judge_job *job = &j->s->jobs[k];
    const struct judge_flow *last = NULL;

    j->first_phase[k] = j->n_phases;
    for (size_t f = 0; f < job->n_flows; f++) {
        const struct judge_flow *spec = &job->flows[f];
        struct phase *phase = j->n_phases ? &j->phases[j->n_phases - 1] : NULL;

        if (!last || spec->shard != last->shard
            || spec->phase != last->phase) {
            if (last && spec->shard == last->shard) {
                phase->last = false;
            }
            phase = &j->phases[j->n_phases++];
            *phase =
                (struct phase){ .job = k, .first = j->n_flows, .last = true };
        }
        j->flows[j->n_flows++] =
            (struct flow){ .rate = { spec->ports, spec->n_ports },
                           .spec = spec,
                           .phase = phase };
        phase->n++;
        last = spec;
    }
    j->first_phase[k + 1] = j->n_phases;
}

/* Adds up what an iteration of job 'k' needs. */
static void
add_work(struct judge *j, size_t k)
{
    for (size_t d = 0; d < j->s->jobs[k].n_demands; d++) {
        const struct judge_demand *demand = &j->s->jobs[k].demands[d];
        double seconds = demand->bytes / j->s->capacity[demand->port];

        j->work[k] += seconds;
        j->busiest[k] = fmax(j->busiest[k], seconds);
    }
}

static void
allocate_arrays(struct judge *j)
{
    const struct judge_situation *s = j->s;
    size_t n = s->n_jobs, n_flows = 0;

    for (size_t k = 0; k < n; k++) {
        n_flows += s->jobs[k].n_flows;
    }
    j->search_of = order_alloc(n, sizeof *j->search_of);
    j->work = order_alloc(n, sizeof *j->work);
    j->busiest = order_alloc(n, sizeof *j->busiest);
    j->flows = order_alloc(n_flows, sizeof *j->flows);
    j->phases = order_alloc(n_flows, sizeof *j->phases);
    j->first_phase = order_alloc(n + 1, sizeof *j->first_phase);
    j->first_end = order_alloc(s->n_searches, sizeof *j->first_end);
    j->jobs = order_alloc(n, sizeof *j->jobs);
    j->searches = order_alloc(s->n_searches, sizeof *j->searches);
    j->keys = order_alloc(n, sizeof *j->keys);
    j->ranked = order_alloc(n, sizeof *j->ranked);
    j->depth = order_alloc(n, sizeof *j->depth);
    j->next = order_alloc(s->n_ports, sizeof *j->next);
    j->seconds = order_alloc(s->n_ports, sizeof *j->seconds);
    level_rates_init(&j->rates, s->n_ports, s->capacity,
                     n < (size_t) s->n_levels ? n + 1 : (size_t) s->n_levels,
                     n_flows, fmin(s->min_share, 1.0 / s->n_levels));
}

struct judge *
judge_create(const struct judge_situation *s)
{
    struct judge *j = order_alloc(1, sizeof *j);
    size_t n_rungs = 0;

    j->s = s;
    allocate_arrays(j);
    for (size_t i = 0; i < s->n_searches; i++) {
        const struct judge_search *search = &s->searches[i];

        j->first_end[i] = n_rungs;
        n_rungs += search->n_rungs;
        for (size_t k = 0; k < search->n_jobs; k++) {
            j->search_of[search->first_job + k] = i;
        }
    }
    for (size_t k = 0; k < s->n_jobs; k++) {
        add_flows(j, k);
        add_work(j, k);
    }
    return j;
}

void
judge_destroy(struct judge *j)
{
    if (j) {
        level_rates_uninit(&j->rates);
        free(j->search_of);
        free(j->work);
        free(j->busiest);
        free(j->flows);
        free(j->phases);
        free(j->first_phase);
        free(j->first_end);
        free(j->jobs);
        free(j->searches);
        free(j->keys);
        free(j->ranked);
        free(j->depth);
        free(j->next);
        free(j->seconds);
        free(j);
    }
}

const struct judge_job_state *
judge_job(const struct judge *j, size_t i)
{
    return &j->jobs[i];
}

double
judge_alone(const struct judge *j, size_t i)
{
    const struct judge_job_state *state = &j->jobs[i];

    switch (state->state) {
    case JUDGE_COMPUTING:
        return (state->until - j->now - j->s->jobs[i].compute
                + state->iterations * period_of(j, i));
    case JUDGE_EXCHANGING:
        return (state->iterations - 1) * period_of(j, i);
    case JUDGE_DONE:
        break;
    }
    return 0;
}

/* Returns what the end of the early phase of a job of search 'i' weighs. */
static double
weight_of_early_end(const struct judge *j, size_t i)
{
    const struct judge_search *search = &j->s->searches[i];

    return j->s->early_boost * search->weight / search->n_jobs;
}

/* Returns the least weighted sum of the ends of all searches that can follow
 * from the state of the run: each job goes on as if it were alone. */
static double
least_cost(const struct judge *j)
{
    double cost = j->cost + j->weight * j->now;

    for (size_t i = 0; i < j->s->n_searches; i++) {
        const struct judge_search *search = &j->s->searches[i];
        double slowest = 0;

        for (size_t k = search->first_job;
             k < search->first_job + search->n_jobs; k++) {
            double alone = judge_alone(j, k);

            slowest = alone > slowest ? alone : slowest;
        }
        cost += search->weight * (slowest + j->searches[i].rest);
    }
    return cost;
}

/* Keys. */

/* Returns what is added to the weight of an iteration of job 'k' because it is
 * in its early phase. */
static double
early_weight(const struct judge *j, size_t k,
             const struct iteration_need *need)
{
    double n = j->jobs[k].to_early;

    return n > 0 ? j->s->early_boost / fmax(n, 1)
                       * iteration_early_weight(
                           need, j->s->searches[j->search_of[k]].n_jobs,
                           j->busiest[k], j->work[k])
                 : 0;
}

/* Returns the factor of the weight of search 'i' by its lateness.  The rungs
 * after the first one are assumed to last as long in the plain network as they
 * have iterations. */
static double
lateness_of(const struct judge *j, size_t i)
{
    const struct judge_search *search = &j->s->searches[i];
    const struct search_state *state = &j->searches[i];
    const struct plain_times *t = &search->plain;
    double all = announced_iterations(&search->rungs[1], search->n_rungs - 1);
    double own = announced_iterations(&search->rungs[state->rung], 1);
    double of_iteration = all > 0 ? (t->whole - t->end) / all : 0;
    double end = t->end + (all - state->later) * of_iteration;

    return lateness_weight(
        t->spent + search->age + state->begin, j->now - state->begin,
        state->rung ? end - own * of_iteration : t->before, end, j->s->latest);
}

/* Returns the seconds by which search 'i', which ends now, is too late. */
static double
seconds_late(const struct judge *j, size_t i)
{
    const struct judge_search *search = &j->s->searches[i];
    const struct plain_times *plain = &search->plain;
    double spent = plain->spent + search->age + j->now;

    return j->s->latest > 0 && plain->whole > 0
               ? fmax(spent - j->s->latest * plain->whole, 0)
               : 0;
}

/* Returns what the search 'i' still needs. */
static struct iteration_need
need_of(const struct judge *j, size_t i)
{
    const struct judge_search *search = &j->s->searches[i];
    const struct search_state *state = &j->searches[i];
    struct iteration_need need = { .weight = search->weight };
    double of_iterations = 0;
    size_t n = search->rungs[state->rung].n_jobs;

    for (size_t k = search->first_job; k < search->first_job + search->n_jobs;
         k++) {
        if (j->places[k] < n) {
            need.work += j->jobs[k].iterations * j->work[k];
            need.slowest = fmax(need.slowest, judge_alone(j, k));
            of_iterations += j->work[k];
        }
    }
    need.work += state->later * of_iterations / n;
    need.weight *= order_aging(j->now - state->begin, state->isolated,
                               j->s->aging_s, j->s->aging_slowdown)
                   * lateness_of(j, i);
    return need;
}

static void
stage_keys(const struct judge *j, double keys[])
{
    for (size_t i = 0; i < j->s->n_searches; i++) {
        const struct judge_search *search = &j->s->searches[i];
        struct iteration_need need;

        if (j->searches[i].rung == search->n_rungs) {
            continue;
        }
        need = need_of(j, i);
        for (size_t k = search->first_job;
             k < search->first_job + search->n_jobs; k++) {
            if (j->jobs[k].state != JUDGE_DONE) {
                keys[k] = j->busiest[k]
                          / (iteration_weight(&need, judge_alone(j, k),
                                              j->busiest[k])
                             + early_weight(j, k, &need));
            }
        }
    }
}

static int
compare_keys(const void *a_, const void *b_)
{
    const struct ranked *a = a_, *b = b_;

    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return (a->job > b->job) - (a->job < b->job);
}

/* Gives job 'k' another level. */
static void
set_level(struct judge *j, size_t k, int level)
{
    for (size_t p = j->first_phase[k];
         level != j->jobs[k].level && p < j->first_phase[k + 1]; p++) {
        const struct phase *phase = &j->phases[p];

        for (size_t f = 0; phase->n_moving && f < phase->n; f++) {
            struct level_flow *flow = &j->flows[phase->first + f].rate;

            if (flow->moves) {
                level_rates_move(&j->rates, flow, level);
            }
        }
    }
    j->jobs[k].level = level;
}

/* Orders the jobs that are not done and sets their levels. */
static void
decide(struct judge *j)
{
    struct fold fold;
    size_t n = 0;

    (j->s->keys ? j->s->keys : stage_keys)(j, j->keys);
    for (size_t k = 0; k < j->s->n_jobs; k++) {
        if (j->jobs[k].state != JUDGE_DONE) {
            j->ranked[n++] =
                (struct ranked){ j->keys[k] * (j->factors ? j->factors[k] : 1)
                                     * (j->s->jobs[k].first ? PINNED : 1),
                                 k };
        }
    }
    qsort(j->ranked, n, sizeof *j->ranked, compare_keys);
    fold_init(&fold, j->next, j->s->n_ports);
    for (size_t i = 0; i < n; i++) {
        const struct judge_job *job = &j->s->jobs[j->ranked[i].job];

        j->depth[i] =
            fold_depth(&fold, job->n_demands ? &job->demands->port : NULL,
                       job->n_demands, sizeof *job->demands);
    }
    for (size_t i = 0; i < n; i++) {
        set_level(j, j->ranked[i].job,
                  fold_level(&fold, j->depth[i], j->s->n_levels));
    }
    j->refresh = j->s->refresh_s > 0 ? j->now + j->s->refresh_s : INFINITY;
    j->due = INFINITY;
    j->decided = true;
}

/* Events. */

static void
begin_iteration(struct judge *j, size_t k)
{
    j->jobs[k].state = JUDGE_COMPUTING;
    j->jobs[k].until = j->now + j->s->jobs[k].compute;
}

/* Begins the rung of search 'i' that its state names. */
static void
begin_rung(struct judge *j, size_t i)
{
    const struct judge_search *search = &j->s->searches[i];
    struct search_state *state = &j->searches[i];
    const struct announced_rung *rung = &search->rungs[state->rung];

    state->jobs_left = rung->n_jobs;
    state->begin = j->now;
    state->later -= rung->iterations * rung->n_jobs;
    for (size_t k = search->first_job; k < search->first_job + search->n_jobs;
         k++) {
        if (j->places[k] < rung->n_jobs) {
            j->jobs[k].iterations = rung->iterations;
            j->jobs[k].level = j->s->late_s > 0 ? j->s->n_levels - 1 : 0;
            begin_iteration(j, k);
        }
    }
    state->isolated = isolated_of(j, i);
    state->rest = rest_of(j, i);
}

static void
end_search(struct judge *j, size_t i)
{
    const struct judge_search *search = &j->s->searches[i];

    j->n_live--;
    j->weight -= search->weight;
    j->cost += search->weight * (j->now + JUDGE_LATE * seconds_late(j, i));
    for (size_t f = 0; f < j->s->n_searches; f++) {
        if (j->s->searches[f].after == search) {
            begin_rung(j, f);
        }
    }
}

static void
end_rung(struct judge *j, size_t i)
{
    struct search_state *state = &j->searches[i];

    if (j->ends) {
        j->ends[j->first_end[i] + state->rung] = j->now;
    }
    if (++state->rung < j->s->searches[i].n_rungs) {
        begin_rung(j, i);
    } else {
        end_search(j, i);
    }
}

static void
end_exchange(struct judge *j, size_t k)
{
    struct judge_job_state *state = &j->jobs[k];
    size_t i = j->search_of[k];

    if (state->to_early > 0 && --state->to_early <= 0) {
        j->cost += weight_of_early_end(j, i) * j->now;
    }
    if (--state->iterations) {
        begin_iteration(j, k);
        return;
    }
    state->state = JUDGE_DONE;
    j->reordered = true;
    if (!--j->searches[i].jobs_left) {
        end_rung(j, i);
    }
}

/* Lets 'bytes' of 'flow' move. */
static void
begin_flow(struct judge *j, struct flow *flow, double bytes)
{
    flow->phase->n_moving++;
    level_rates_add(&j->rates, &flow->rate, j->jobs[flow->phase->job].level,
                    bytes, j->now);
}

static void
begin_phase(struct judge *j, struct phase *phase)
{
    for (size_t f = phase->first; f < phase->first + phase->n; f++) {
        begin_flow(j, &j->flows[f], j->flows[f].spec->bytes);
    }
}

/* Begins the exchange of job 'k', or ends it if it moves nothing. */
static void
begin_exchange(struct judge *j, size_t k)
{
    bool first = true;

    j->jobs[k].state = JUDGE_EXCHANGING;
    for (size_t p = j->first_phase[k]; p < j->first_phase[k + 1]; p++) {
        if (first) {
            begin_phase(j, &j->phases[p]);
            j->jobs[k].n_shards++;
        }
        first = j->phases[p].last;
    }
    if (!j->jobs[k].n_shards) {
        end_exchange(j, k);
    }
}

/* Continues the exchange of job 'k' where it is. */
static void
resume_exchange(struct judge *j, size_t k)
{
    bool first = true;

    for (size_t p = j->first_phase[k]; p < j->first_phase[k + 1]; p++) {
        struct phase *phase = &j->phases[p];

        for (size_t f = phase->first; first && f < phase->first + phase->n;
             f++) {
            if (j->flows[f].spec->left > 0) {
                begin_flow(j, &j->flows[f], j->flows[f].spec->left);
            }
        }
        j->jobs[k].n_shards += phase->n_moving > 0;
        first = phase->last || (first && !phase->n_moving);
    }
    if (!j->jobs[k].n_shards) {
        end_exchange(j, k);
    }
}

/* Goes on after the end of 'flow': to the next phase of its shard, or to the
 * end of the exchange. */
static void
end_flow(struct judge *j, struct flow *flow)
{
    struct phase *phase = flow->phase;

    if (--phase->n_moving) {
        return;
    }
    if (!phase->last) {
        begin_phase(j, phase + 1);
    } else if (!--j->jobs[phase->job].n_shards) {
        end_exchange(j, phase->job);
    }
}

/* Returns the time of the next event. */
static double
next_event(const struct judge *j)
{
    double next =
        fmin(level_rates_next(&j->rates), isinf(j->due) ? j->refresh : j->due);

    for (size_t k = 0; k < j->s->n_jobs; k++) {
        if (j->jobs[k].state == JUDGE_COMPUTING && j->jobs[k].until < next) {
            next = j->jobs[k].until;
        }
    }
    return next;
}

/* Goes on to the next event. */
static void
step(struct judge *j)
{
    struct level_flow *ended;

    j->decided = false;
    j->now = next_event(j);
    assert(isfinite(j->now));
    while ((ended = level_rates_pop(&j->rates, j->now))) {
        end_flow(j, (struct flow *) ended);
    }
    for (size_t k = 0; k < j->s->n_jobs; k++) {
        while (j->jobs[k].state == JUDGE_COMPUTING
               && j->jobs[k].until <= j->now) {
            begin_exchange(j, k);
        }
    }
    if (j->reordered) {
        j->due = fmin(j->due, j->now + j->s->late_s);
        j->reordered = false;
    }
    if (j->due <= j->now || (isinf(j->due) && j->refresh <= j->now)) {
        decide(j);
    }
    level_rates_update(&j->rates, j->now);
}

static void
begin_job(struct judge *j, size_t k)
{
    const struct judge_job *job = &j->s->jobs[k];

    j->jobs[k] = (struct judge_job_state){ .state = job->state,
                                           .until = job->wait,
                                           .iterations = job->iterations,
                                           .to_early = job->to_early,
                                           .level = job->level };
}

static void
begin_search(struct judge *j, size_t i)
{
    const struct judge_search *search = &j->s->searches[i];
    struct search_state *state = &j->searches[i];
    size_t first = search->after ? 0 : 1;

    *state = (struct search_state){
        .begin = -search->age,
        .later = announced_iterations(&search->rungs[first],
                                      search->n_rungs - first),
    };
    j->weight += search->weight;
    for (size_t k = 0; k < search->n_jobs; k++) {
        state->jobs_left += j->jobs[search->first_job + k].state != JUDGE_DONE;
    }
    state->isolated = isolated_of(j, i);
    state->rest = rest_of(j, i);
}

/* Copies the situation into the state of a run. */
static void
begin_run(struct judge *j, const size_t places[])
{
    j->now = j->cost = j->weight = 0;
    j->places = places;
    j->n_live = j->s->n_searches;
    j->reordered = false;
    level_rates_clear(&j->rates);
    for (size_t p = 0; p < j->n_phases; p++) {
        j->phases[p].n_moving = 0;
    }
    for (size_t k = 0; k < j->s->n_jobs; k++) {
        begin_job(j, k);
    }
    for (size_t i = 0; i < j->s->n_searches; i++) {
        begin_search(j, i);
    }
}

void
judge_keys(struct judge *j, const size_t places[], double keys[])
{
    begin_run(j, places);
    (j->s->keys ? j->s->keys : stage_keys)(j, keys);
}

double
judge_run(struct judge *j, const double factors[], const size_t places[],
          double limit, double ends[])
{
    j->factors = factors;
    j->ends = ends;
    begin_run(j, places);
    decide(j);
    for (size_t k = 0; k < j->s->n_jobs; k++) {
        if (j->jobs[k].state == JUDGE_EXCHANGING) {
            resume_exchange(j, k);
        }
    }
    level_rates_update(&j->rates, 0);
    while (j->n_live) {
        if (j->decided && least_cost(j) > limit) {
            return INFINITY;
        }
        step(j);
    }
    return j->cost;
}
