/* SPDX-License-Identifier: Apache-2.0 */

#include "order/lookahead/plain-network.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "order/lookahead/judge.h"
#include "order/problem/memory.h"

/* Seconds after its end within which a search may begin another stage. */
#define PAUSE_S 10

/* A stage of a search, as it is at its begin. */
struct stage {
    uint64_t id;
    struct stage *after;   /* The stage before; NULL for the first one. */
    struct stage *arrival; /* The first one. */
    bool runs;             /* In the real network. */
    size_t n_jobs, n_rungs;
    struct judge_job *jobs;
    struct announced_rung *rungs; /* The stage, and those that follow it. */

    /* Seconds of the caller's clock. */
    double begin;      /* Begin of the first stage. */
    double seen;       /* When it has run in the real network. */
    double end, whole; /* By the last simulation: its end, and the end of all
                        * rungs. */
    double over;       /* End of its search in both networks. */
};

struct plain_network {
    uint64_t n_added;
    size_t n_stages, n_jobs, allocated;
    struct stage **stages; /* Each after the one before. */
};

struct plain_network *
plain_network_create(void)
{
    return order_alloc(1, sizeof(struct plain_network));
}

static void
stage_clear(struct stage *stage)
{
    for (size_t k = 0; k < stage->n_jobs; k++) {
        free((void *) stage->jobs[k].flows);
    }
    free(stage->jobs);
    free(stage->rungs);
}

static void
stage_destroy(struct stage *stage)
{
    stage_clear(stage);
    free(stage);
}

void
plain_network_destroy(struct plain_network *p)
{
    if (p) {
        for (size_t i = 0; i < p->n_stages; i++) {
            stage_destroy(p->stages[i]);
        }
        free(p->stages);
        free(p);
    }
}

/* Returns the index of stage 'id', or 'n_stages' without one. */
static size_t
find(const struct plain_network *p, uint64_t id)
{
    size_t i = 0;

    while (i < p->n_stages && p->stages[i]->id != id) {
        i++;
    }
    return i;
}

static struct stage *
add_stage(struct plain_network *p, struct judge_search *search, double now)
{
    struct stage *stage = order_alloc(1, sizeof *stage);
    size_t last = find(p, search->plain.last);

    search->plain.id = stage->id = ++p->n_added;
    stage->after = last < p->n_stages ? p->stages[last] : NULL;
    stage->arrival = stage->after ? stage->after->arrival : stage;
    search->plain.spent = stage->after ? search->plain.spent : 0;
    stage->begin = now - search->age;
    p->stages = order_grow(p->stages, p->n_stages + 1, &p->allocated,
                           sizeof *p->stages);
    p->stages[p->n_stages++] = stage;
    return stage;
}

/* Copies the flows of 'from', 'times' of them as one, with their ports behind
 * them. */
static struct judge_flow *
copy_flows(const struct judge_job *from, double times)
{
    size_t size = from->n_flows * sizeof *from->flows, n_ports = 0;
    struct judge_flow *flows;
    int *ports;

    for (size_t f = 0; f < from->n_flows; f++) {
        n_ports += from->flows[f].n_ports;
    }
    flows = order_alloc(1, size + n_ports * sizeof *ports);
    ports = (int *) (flows + from->n_flows);
    for (size_t f = 0; f < from->n_flows; f++) {
        flows[f] = from->flows[f];
        flows[f].bytes *= times;
        flows[f].ports = memcpy(ports, from->flows[f].ports,
                                from->flows[f].n_ports * sizeof *ports);
        ports += from->flows[f].n_ports;
    }
    return flows;
}

/* Sets what 'stage' is at its begin, by what is known of it now. */
static void
describe(struct stage *stage, const struct judge_situation *s,
         const struct judge_search *search)
{
    double iterations = search->rungs->iterations;
    double merged = fmax(iterations / PLAIN_ITERATIONS, 1);
    double times;

    stage_clear(stage);
    stage->n_jobs = search->n_jobs;
    stage->n_rungs = search->n_rungs;
    stage->rungs = order_alloc(search->n_rungs, sizeof *stage->rungs);
    for (size_t r = 0; r < search->n_rungs; r++) {
        stage->rungs[r] = search->rungs[r];
        stage->rungs[r].iterations =
            fmax(round(search->rungs[r].iterations / merged), 1);
    }
    times = iterations / stage->rungs->iterations;
    stage->jobs = order_alloc(search->n_jobs, sizeof *stage->jobs);
    for (size_t k = 0; k < search->n_jobs; k++) {
        const struct judge_job *job = &s->jobs[search->first_job + k];

        stage->jobs[k] = (struct judge_job){
            .flows = copy_flows(job, times),
            .n_flows = job->n_flows,
            .compute = times * job->compute,
            .exchange = times * job->exchange,
            .state = stage->after ? JUDGE_DONE : JUDGE_COMPUTING,
            .iterations = stage->after ? 0 : stage->rungs->iterations,
        };
    }
}

/* Removes the searches that were over before those that are not arrived, or
 * all that are over if there are many. */
static void
remove_old(struct plain_network *p, double now)
{
    double oldest = now;
    size_t n = 0;

    for (size_t i = 0; i < p->n_stages; i++) {
        struct stage *stage = p->stages[i];

        stage->over = fmax(stage->end, stage->seen + PAUSE_S);
        stage->arrival->over = fmax(stage->arrival->over, stage->over);
    }
    for (size_t i = 0; i < p->n_stages; i++) {
        struct stage *stage = p->stages[i];

        stage->over = stage->arrival->over;
        if (stage->over > now && p->n_jobs <= PLAIN_MAX_JOBS / 2) {
            oldest = fmin(oldest, stage->arrival->begin);
        }
    }
    p->n_jobs = 0;
    for (size_t i = 0; i < p->n_stages; i++) {
        if (p->stages[i]->over > oldest) {
            p->n_jobs += p->stages[i]->n_jobs;
            p->stages[n++] = p->stages[i];
        } else {
            stage_destroy(p->stages[i]);
        }
    }
    p->n_stages = n;
}

/* Returns how many rungs of 'stage' are simulated: what has ended in the real
 * network is not followed by what it had announced. */
static size_t
n_rungs_of(const struct stage *stage)
{
    return stage->runs ? stage->n_rungs : 1;
}

/* Adds stage 'i' to the situation of a simulation that begins at 'start'. */
static void
add_to_run(const struct plain_network *p, size_t i, double start,
           struct judge_situation *run, struct judge_job *jobs, size_t *places)
{
    const struct stage *stage = p->stages[i];
    size_t n = stage->n_jobs;

    run->searches[i] = (struct judge_search){
        .weight = 1,
        .first_job = run->n_jobs,
        .n_jobs = n,
        .rungs = stage->rungs,
        .n_rungs = n_rungs_of(stage),
        .after =
            stage->after ? &run->searches[find(p, stage->after->id)] : NULL,
    };
    for (size_t k = 0; k < n; k++) {
        struct judge_job *job = &jobs[run->n_jobs + k];

        *job = stage->jobs[k];
        job->wait = stage->begin - start + job->compute;
        places[run->n_jobs + k] = (k + stage->id) % n;
    }
    run->n_jobs += n;
}

/* Simulates all stages from their begin. */
static void
simulate(struct plain_network *p, const struct judge_situation *s)
{
    size_t n_jobs = 0, n_ends = 0, n = p->n_stages;
    double start = INFINITY;
    struct judge_search *searches = order_alloc(n, sizeof *searches);
    struct judge_situation run = { .n_ports = s->n_ports,
                                   .capacity = s->capacity,
                                   .searches = searches,
                                   .n_searches = n,
                                   .n_levels = 1 };
    struct judge_job *jobs;
    struct judge *judge;
    size_t *places;
    double *ends;

    for (size_t i = 0; i < n; i++) {
        n_jobs += p->stages[i]->n_jobs;
        n_ends += n_rungs_of(p->stages[i]);
        start = fmin(start, p->stages[i]->begin);
    }
    run.jobs = jobs = order_alloc(n_jobs, sizeof *jobs);
    places = order_alloc(n_jobs, sizeof *places);
    ends = order_alloc(n_ends, sizeof *ends);
    for (size_t i = 0; i < n; i++) {
        add_to_run(p, i, start, &run, jobs, places);
    }
    judge = judge_create(&run);
    judge_run(judge, NULL, places, INFINITY, ends);
    n_ends = 0;
    for (size_t i = 0; i < n; i++) {
        struct stage *stage = p->stages[i];

        stage->end = start + ends[n_ends];
        n_ends += n_rungs_of(stage);
        stage->whole = start + ends[n_ends - 1];
    }
    judge_destroy(judge);
    free(searches);
    free(jobs);
    free(places);
    free(ends);
}

void
plain_network_follow(struct plain_network *p, const struct judge_situation *s,
                     double now)
{
    for (size_t i = 0; i < p->n_stages; i++) {
        p->stages[i]->runs = false;
    }
    for (size_t i = 0; i < s->n_searches; i++) {
        struct judge_search *search = &s->searches[i];
        size_t k = find(p, search->plain.id);
        struct stage *stage = k < p->n_stages ? p->stages[k] : NULL;

        if (!stage && !search->unknown
            && p->n_jobs + search->n_jobs <= PLAIN_MAX_JOBS) {
            stage = add_stage(p, search, now);
            p->n_jobs += search->n_jobs;
        }
        if (stage && search->n_jobs >= stage->n_jobs) {
            describe(stage, s, search);
        }
        if (stage) {
            stage->runs = true;
            stage->seen = now;
        }
    }
    remove_old(p, now);
    if (!p->n_stages) {
        return;
    }
    simulate(p, s);
    for (size_t i = 0; i < s->n_searches; i++) {
        struct plain_times *t = &s->searches[i].plain;
        size_t k = find(p, t->id);

        if (k < p->n_stages) {
            const struct stage *stage = p->stages[k];
            double arrival = stage->arrival->begin;

            t->before = stage->after ? stage->after->end - arrival : 0;
            t->end = stage->end - arrival;
            t->whole = stage->whole - arrival;
        }
    }
}
