/* SPDX-License-Identifier: Apache-2.0 */

#include "order/lookahead/plan.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "order/lookahead/judge.h"
#include "order/problem/memory.h"

/* Most by which the logarithm of a job's factor is changed at once. */
#define JOB_STEP 2.0

/* How far behind or before another search a search is put, in logarithms. */
#define BESIDE 0.1

/* Factors are from exp(-10) to exp(10). */
#define MAX_LOGARITHM 10

/* A plan must be better than the best one by such a share. */
#define BETTER 1e-6

struct planner {
    const struct judge_situation *s;
    struct judge *judge;
    uint64_t random;
    int n_left;                 /* Runs. */
    size_t *places;             /* Guesses, each of all jobs. */
    double *keys;               /* Of the jobs at the beginning, without
                                 * factors. */
    double *best, *tried;       /* Logarithms of the factors. */
    double *factors;            /* Of 'tried'. */
    double costs[PLAN_GUESSES]; /* Of 'best', by guess. */
};

/* Splitmix64. */
static uint64_t
next_random(struct planner *p)
{
    uint64_t z = p->random += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static size_t
draw(struct planner *p, size_t n)
{
    return (next_random(p) >> 11) * 0x1p-53 * n;
}

/* Draws which jobs of each search survive its rungs. */
static void
draw_places(struct planner *p, size_t *places)
{
    for (size_t i = 0; i < p->s->n_searches; i++) {
        const struct judge_search *search = &p->s->searches[i];
        size_t *own = &places[search->first_job];

        for (size_t k = 0; k < search->n_jobs; k++) {
            size_t other = draw(p, k + 1);

            own[k] = own[other];
            own[other] = k;
        }
    }
}

/* Judges 'tried' and takes it if it is better than the best plan.  It is worse
 * as soon as it is worse for the first guesses. */
static void
consider(struct planner *p)
{
    double costs[PLAN_GUESSES];
    double sum = 0, best = 0;

    if (p->n_left < PLAN_GUESSES) {
        return;
    }
    for (size_t k = 0; k < p->s->n_jobs; k++) {
        p->tried[k] = fmin(fmax(p->tried[k], -MAX_LOGARITHM), MAX_LOGARITHM);
        p->factors[k] = exp(p->tried[k]);
    }
    for (int g = 0; g < PLAN_GUESSES; g++) {
        best += p->costs[g] * (1 - BETTER);
        costs[g] = judge_run(p->judge, p->factors,
                             &p->places[g * p->s->n_jobs], best - sum, NULL);
        p->n_left--;
        sum += costs[g];
        if (sum >= best) {
            return;
        }
    }
    memcpy(p->best, p->tried, p->s->n_jobs * sizeof *p->best);
    memcpy(p->costs, costs, sizeof costs);
}

/* Returns the least logarithm of the keys of search 'i' in the best plan. */
static double
first_of(const struct planner *p, size_t i)
{
    const struct judge_search *search = &p->s->searches[i];
    double first = INFINITY;

    for (size_t k = search->first_job; k < search->first_job + search->n_jobs;
         k++) {
        if (p->s->jobs[k].state != JUDGE_DONE) {
            first = fmin(first, log(p->keys[k]) + p->best[k]);
        }
    }
    return first;
}

static void
shift_search(struct planner *p, size_t i, double by)
{
    const struct judge_search *search = &p->s->searches[i];

    for (size_t k = 0; k < search->n_jobs; k++) {
        p->tried[search->first_job + k] += by;
    }
}

/* Lets two searches change places, or puts one before or behind another. */
static void
move_search(struct planner *p)
{
    size_t n = p->s->n_searches;
    size_t a = draw(p, n);
    size_t b = (a + 1 + draw(p, n - 1)) % n;
    double by = first_of(p, b) - first_of(p, a);

    switch (draw(p, 3)) {
    case 0:
        shift_search(p, a, by);
        shift_search(p, b, -by);
        break;
    case 1:
        shift_search(p, a, by - BESIDE);
        break;
    default:
        shift_search(p, a, by + BESIDE);
        break;
    }
}

static void
move_job(struct planner *p)
{
    double by = (next_random(p) >> 11) * 0x1p-52 - 1;
    size_t k;

    do {
        k = draw(p, p->s->n_jobs);
    } while (p->s->jobs[k].state == JUDGE_DONE);
    p->tried[k] += JOB_STEP * by;
}

/* Sorts stages by their own remaining work: the key counts all of the
 * search. */
static void
try_least_work(struct planner *p)
{
    for (size_t i = 0; i < p->s->n_searches; i++) {
        const struct judge_search *search = &p->s->searches[i];
        double now = 0, later = 0;

        for (size_t k = 0; k < search->n_jobs; k++) {
            now += p->s->jobs[search->first_job + k].iterations;
        }
        for (size_t r = 1; r < search->n_rungs; r++) {
            later += search->rungs[r].iterations * search->rungs[r].n_jobs;
        }
        for (size_t k = 0; k < search->n_jobs; k++) {
            p->tried[search->first_job + k] = log(now / (now + later));
        }
    }
    consider(p);
}

static bool
is_zero(const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (x[i]) {
            return false;
        }
    }
    return true;
}

static void
search(struct planner *p, const double last[])
{
    size_t n = p->s->n_jobs;
    int n_moves;

    for (size_t k = 0; k < n; k++) {
        p->tried[k] = log(last[k]);
    }
    if (!is_zero(p->tried, n)) {
        consider(p);
    }
    try_least_work(p);
    n_moves = p->n_left;
    while (p->n_left >= PLAN_GUESSES) {
        memcpy(p->tried, p->best, n * sizeof *p->tried);
        if (p->n_left > n_moves / 2) {
            move_search(p);
        } else {
            move_job(p);
        }
        consider(p);
    }
}

/* Judges the key alone, which is 'best' then.  Returns its cost. */
static double
begin(struct planner *p)
{
    double sum = 0;

    for (int g = 0; g < PLAN_GUESSES; g++) {
        draw_places(p, &p->places[g * p->s->n_jobs]);
        p->costs[g] = judge_run(p->judge, NULL, &p->places[g * p->s->n_jobs],
                                INFINITY, NULL);
        p->n_left--;
        sum += p->costs[g];
    }
    judge_keys(p->judge, p->places, p->keys);
    return sum;
}

static void
planner_init(struct planner *p, const struct judge_situation *s,
             const struct plan_options *options)
{
    *p = (struct planner){ .s = s,
                           .judge = judge_create(s),
                           .random = options->seed,
                           .n_left = options->n_runs };
    p->places = order_alloc(PLAN_GUESSES * s->n_jobs, sizeof *p->places);
    p->keys = order_alloc(s->n_jobs, sizeof *p->keys);
    p->best = order_alloc(s->n_jobs, sizeof *p->best);
    p->tried = order_alloc(s->n_jobs, sizeof *p->tried);
    p->factors = order_alloc(s->n_jobs, sizeof *p->factors);
}

static void
planner_uninit(struct planner *p)
{
    judge_destroy(p->judge);
    free(p->places);
    free(p->keys);
    free(p->best);
    free(p->tried);
    free(p->factors);
}

double
plan_improve(const struct judge_situation *s,
             const struct plan_options *options, double factors[])
{
    struct planner p;
    double alone, sum = 0;

    planner_init(&p, s, options);
    if (options->n_runs >= PLAN_GUESSES && s->n_searches > 1) {
        alone = begin(&p);
        search(&p, factors);
    } else {
        alone = 0;
    }
    for (size_t k = 0; k < s->n_jobs; k++) {
        factors[k] = exp(p.best[k]);
    }
    for (int g = 0; g < PLAN_GUESSES; g++) {
        sum += p.costs[g];
    }
    planner_uninit(&p);
    return alone > 0 ? 1 - sum / alone : 0;
}
