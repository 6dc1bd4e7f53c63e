/* SPDX-License-Identifier: Apache-2.0 */

#include "order/lookahead/plan.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "order/lookahead/judge.h"
#include "order/primal-dual/primal-dual.h"
#include "order/problem/memory.h"
#include "order/problem/problem.h"

/* Most by which the logarithm of a job's factor is changed at once. */
#define JOB_STEP 2.0

/* How far behind or before another search a search is put, in logarithms. */
#define BESIDE 0.1

/* Factors are from exp(-10) to exp(10). */
#define MAX_LOGARITHM 10

/* A plan must be better than the best one by such a share. */
#define BETTER 1e-3

/* Number of changes in a row without an improvement that ends the search. */
#define MAX_FAILED 60

struct planner {
    const struct judge_situation *s;
    struct judge *judge;
    uint64_t random;
    int n_left;                 /* Runs. */
    int n_failed;               /* Changes since the last better one. */
    double until;               /* Processor time of the thread, seconds. */
    size_t *places;             /* Guesses, each of all jobs. */
    double *keys;               /* Of the jobs at the beginning, without
                                 * factors. */
    double *best, *tried;       /* Logarithms of the factors. */
    double *factors;            /* Of 'tried'. */
    double costs[PLAN_GUESSES]; /* Of 'best', by guess. */
};

/* Returns the processor time of this thread, seconds. */
static double
thread_seconds(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* Splitmix64. */
static uint64_t
next_random(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static size_t
draw(uint64_t *seed, size_t n)
{
    return (next_random(seed) >> 11) * 0x1p-53 * n;
}

/* Guesses which jobs of search 'i' survive its rungs.  Each guess has others,
 * as far as there are enough, and they stay the same from plan to plan, so
 * that plans do not change with them. */
static void
guess_places(struct planner *p, size_t i)
{
    const struct judge_search *search = &p->s->searches[i];
    size_t *own = &p->places[search->first_job];
    size_t n_jobs = p->s->n_jobs, n = search->n_jobs;
    uint64_t seed = search->id;

    for (size_t k = 0; k < n; k++) {
        size_t other = draw(&seed, k + 1);

        own[k] = own[other];
        own[other] = k;
    }
    for (size_t g = 1; g < PLAN_GUESSES; g++) {
        for (size_t k = 0; k < n; k++) {
            own[g * n_jobs + k] = (own[k] + g * n / PLAN_GUESSES) % n;
        }
    }
}

static bool
is_over(const struct planner *p)
{
    return p->n_left < PLAN_GUESSES || p->n_failed >= MAX_FAILED
           || (isfinite(p->until) && thread_seconds() >= p->until);
}

/* Judges 'tried' and takes it if it is better than the best plan.  It is worse
 * as soon as it is worse for the first guesses. */
static void
consider(struct planner *p)
{
    double costs[PLAN_GUESSES];
    double sum = 0, best = 0;

    if (is_over(p)) {
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
            p->n_failed++;
            return;
        }
    }
    p->n_failed = 0;
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
    size_t a = draw(&p->random, n);
    size_t b = (a + 1 + draw(&p->random, n - 1)) % n;
    double by = first_of(p, b) - first_of(p, a);

    switch (draw(&p->random, 3)) {
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
    double by = (next_random(&p->random) >> 11) * 0x1p-52 - 1;
    size_t k;

    do {
        k = draw(&p->random, p->s->n_jobs);
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
        double later =
            announced_iterations(&search->rungs[1], search->n_rungs - 1);
        double now = 0;

        for (size_t k = 0; k < search->n_jobs; k++) {
            now += p->s->jobs[search->first_job + k].iterations;
        }
        for (size_t k = 0; k < search->n_jobs; k++) {
            p->tried[search->first_job + k] = log(now / (now + later));
        }
    }
    consider(p);
}

/* Adds what search 'i' has left to 'op'. */
static void
add_search(const struct planner *p, size_t i, struct order_problem *op)
{
    const struct judge_search *search = &p->s->searches[i];
    int entry = order_problem_add_stage(op, search->weight, i);
    double later =
        announced_iterations(&search->rungs[1], search->n_rungs - 1);

    for (size_t k = search->first_job; k < search->first_job + search->n_jobs;
         k++) {
        const struct judge_job *job = &p->s->jobs[k];
        double n = (job->state == JUDGE_DONE ? 0 : job->iterations)
                   + later / search->n_jobs;

        for (size_t d = 0; d < job->n_demands; d++) {
            int port = job->demands[d].port;

            order_problem_add_demand(op, entry, port,
                                     n * job->demands[d].bytes
                                         / p->s->capacity[port]);
        }
    }
}

static int
compare_doubles(const void *a_, const void *b_)
{
    double a = *(const double *) a_, b = *(const double *) b_;

    return a < b ? -1 : a > b;
}

/* Sorts searches as the primal-dual permutation does. */
static void
try_permutation(struct planner *p)
{
    size_t n = p->s->n_searches;
    struct order_problem *op = order_problem_create(p->s->n_ports);
    int *order = order_alloc(n, sizeof *order);
    double *first = order_alloc(n, sizeof *first);
    double *sorted = order_alloc(n, sizeof *sorted);

    for (size_t i = 0; i < n; i++) {
        add_search(p, i, op);
        first[i] = sorted[i] = first_of(p, i);
    }
    permute(op, 0, order);
    qsort(sorted, n, sizeof *sorted, compare_doubles);
    memcpy(p->tried, p->best, p->s->n_jobs * sizeof *p->tried);
    for (size_t i = 0; i < n; i++) {
        shift_search(p, order[i], sorted[i] - first[order[i]]);
    }
    consider(p);
    free(order);
    free(first);
    free(sorted);
    order_problem_destroy(op);
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
    try_permutation(p);
    n_moves = p->n_left;
    while (!is_over(p)) {
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

    for (size_t i = 0; i < p->s->n_searches; i++) {
        guess_places(p, i);
    }
    for (int g = 0; g < PLAN_GUESSES; g++) {
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
                           .n_left = options->n_runs,
                           .until = options->cpu_s > 0
                                        ? thread_seconds() + options->cpu_s
                                        : INFINITY };
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

struct plan_result
plan_improve(const struct judge_situation *s,
             const struct plan_options *options, double factors[])
{
    struct plan_result result = { 0 };
    struct planner p;
    double began = thread_seconds();
    double alone, sum = 0;

    planner_init(&p, s, options);
    if (options->n_runs >= PLAN_GUESSES && s->n_searches > 1) {
        alone = begin(&p);
        search(&p, factors);
        for (int g = 0; g < PLAN_GUESSES; g++) {
            sum += p.costs[g];
        }
        result.saved = alone > 0 ? 1 - sum / alone : 0;
        result.n_runs = options->n_runs - p.n_left;
    }
    for (size_t k = 0; k < s->n_jobs; k++) {
        factors[k] = exp(p.best[k]);
    }
    planner_uninit(&p);
    result.cpu_s = thread_seconds() - began;
    return result;
}
