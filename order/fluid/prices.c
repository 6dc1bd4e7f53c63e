/* SPDX-License-Identifier: Apache-2.0 */

#include "order/fluid/prices.h"

#include <math.h>
#include <stddef.h>

#include "order/fluid/fluid.h"
#include "order/problem/memory.h"

#define N_GROUPS 8
#define N_CELLS 64                   /* A price is constant in each. */
#define STEPS 16                     /* Ends that are tried in a cell. */
#define N_ENDS (N_CELLS * STEPS + 1) /* The last one is any later one. */

#define MAX_ROUNDS 400
#define MIN_ROUNDS 30
#define PATIENCE                                              \
    15             /* Rounds without a better value until the \
                    * target is nearer. */
#define MEMORY 0.6 /* Share of the last direction in the next. */

/* Times are seconds from the begin of the first search. */
struct prices {
    const struct fluid *f;
    double begin;             /* Of the first search. */
    double slice;             /* Seconds from the begin of one group to the
                               * next. */
    double cell, step;        /* Seconds. */
    size_t n_each, n;         /* Elements of a group, and of all. */
    double *price;            /* By group, port and cell; a search pays those
                               * of its group and of those before it. */
    double *use;              /* Seconds that are served, by group, port and
                               * cell. */
    double *direction, *best; /* By group, port and cell. */
    double *paid;             /* By port and cell: by the searches of a
                               * group. */
    double *job_cost;         /* By job and end of its rung. */
    double *cost;             /* By rung and end: least cost of its search
                               * until then. */
    size_t *last;             /* By rung and end: end of the rung before. */
};

static size_t
group_of(const struct prices *p, const struct fluid_search *search)
{
    double group = (search->begin - p->begin) / p->slice;

    return p->slice > 0 ? fmin(group, N_GROUPS - 1) : 0;
}

/* Returns what 'sum' is after 'cells', between its elements. */
static double
sum_at(const double sum[N_CELLS + 1], double cells)
{
    size_t c = cells;

    return (cells <= 0         ? 0
            : cells >= N_CELLS ? sum[N_CELLS]
                               : sum[c] + (cells - c) * (sum[c + 1] - sum[c]));
}

/* Sets what job 'j' pays for each end of its rung. */
static void
set_job_cost(struct prices *p, size_t j)
{
    const struct fluid_job *job = &p->f->jobs[j];
    double *cost = &p->job_cost[j * N_ENDS];
    double sum[N_CELLS + 1] = { 0 };

    for (size_t d = 0; d < job->n_demands; d++) {
        const struct order_demand *demand =
            &p->f->demands[job->first_demand + d];

        for (size_t c = 0; c < N_CELLS; c++) {
            sum[c + 1] += p->cell / job->period * demand->seconds
                          * p->paid[demand->port * N_CELLS + c];
        }
    }
    for (size_t c = 0; c < N_CELLS; c++) {
        sum[c + 1] += sum[c];
    }
    for (size_t e = 0; e < N_ENDS - 1; e++) {
        double to = e * p->step + job->period;
        double from = to - job->iterations * job->period;

        cost[e] = sum_at(sum, to / p->cell) - sum_at(sum, from / p->cell);
    }
}

/* Returns true if job 'j' of 'rung' is one of its cheapest at end 'e'. */
static bool
takes_part(const struct prices *p, const struct fluid_rung *rung, size_t j,
           size_t e)
{
    double own = p->job_cost[j * N_ENDS + e];
    size_t n = 0;

    if (rung->keep == rung->n_jobs) {
        return true;
    }
    for (size_t k = rung->first_job; k < rung->first_job + rung->n_jobs; k++) {
        double other = p->job_cost[k * N_ENDS + e];

        n += other < own || (other == own && k < j);
    }
    return n < rung->keep;
}

/* Returns the least cost of 'search' until its rung 'r' begins at 'e'. */
static double
cost_before(const struct prices *p, const struct fluid_search *search,
            size_t r, size_t e)
{
    if (r > search->first_rung) {
        return p->cost[(r - 1) * N_ENDS + e];
    }
    return e == ceil((search->begin - p->begin) / p->step) ? 0 : INFINITY;
}

/* Sets the least cost of each end of rung 'r' of 'search'.  End e is any time
 * after end e - 1, so that a rung may seem shorter than it is, by less than a
 * step. */
static void
set_rung_cost(struct prices *p, const struct fluid_search *search, size_t r)
{
    const struct fluid_rung *rung = &p->f->rungs[r];
    size_t steps = rung->alone / p->step;
    size_t begin = 0, best = 0; /* The first one that was not examined, and
                                 * the best one. */
    double least = INFINITY;

    for (size_t j = 0; j < rung->n_jobs; j++) {
        set_job_cost(p, rung->first_job + j);
    }
    for (size_t e = 0; e < N_ENDS; e++) {
        double *cost = &p->cost[r * N_ENDS + e];

        for (; e == N_ENDS - 1 ? begin <= e : begin + steps <= e; begin++) {
            double before = cost_before(p, search, r, begin);

            best = before < least ? begin : best;
            least = fmin(before, least);
        }
        *cost = least;
        p->last[r * N_ENDS + e] = best;
        for (size_t j = rung->first_job; j < rung->first_job + rung->n_jobs;
             j++) {
            *cost +=
                takes_part(p, rung, j, e) ? p->job_cost[j * N_ENDS + e] : 0;
        }
    }
}

/* Adds what 'job' is served to the 'use' of its group, if its rung ends at
 * 'e'. */
static void
add_use(const struct prices *p, const struct fluid_job *job, size_t e,
        double *use)
{
    double to = e * p->step + job->period;
    double from = to - job->iterations * job->period;

    for (size_t c = fmax(from / p->cell, 0); c < N_CELLS && c * p->cell < to;
         c++) {
        double seconds = fmin(to, (c + 1) * p->cell) - fmax(from, c * p->cell);

        for (size_t d = 0; d < job->n_demands; d++) {
            const struct order_demand *demand =
                &p->f->demands[job->first_demand + d];

            use[demand->port * N_CELLS + c] +=
                seconds / job->period * demand->seconds;
        }
    }
}

/* Returns the least cost of 'search', and adds its use. */
static double
decide(struct prices *p, const struct fluid_search *search)
{
    double *use = &p->use[group_of(p, search) * p->n_each];
    size_t r, end = search->first_rung + search->n_rungs, best = 0;
    double least = INFINITY;

    for (r = search->first_rung; r < end; r++) {
        set_rung_cost(p, search, r);
    }
    for (size_t e = 0; e < N_ENDS; e++) {
        double time = e * p->step - p->step - (search->begin - p->begin);
        double all = p->cost[(r - 1) * N_ENDS + e]
                     + search->weight * fmax(time, search->alone);

        best = all < least ? e : best;
        least = fmin(all, least);
    }
    for (size_t e = best; r-- > search->first_rung;
         e = p->last[r * N_ENDS + e]) {
        const struct fluid_rung *rung = &p->f->rungs[r];

        for (size_t j = rung->first_job;
             e < N_ENDS - 1 && j < rung->first_job + rung->n_jobs; j++) {
            if (takes_part(p, rung, j, e)) {
                add_use(p, &p->f->jobs[j], e, use);
            }
        }
    }
    return least;
}

/* Returns the value of the prices and sets the use, less what ports can
 * serve: the subgradient. */
static double
evaluate(struct prices *p)
{
    double value = 0;

    memset(p->use, 0, p->n * sizeof *p->use);
    memset(p->paid, 0, p->n_each * sizeof *p->paid);
    for (size_t g = 0; g < p->n / p->n_each; g++) {
        for (size_t i = 0; i < p->n_each; i++) {
            p->paid[i] += p->price[g * p->n_each + i];
        }
        for (size_t s = 0; s < p->f->n_searches; s++) {
            const struct fluid_search *search = &p->f->searches[s];

            value += group_of(p, search) == g ? decide(p, search) : 0;
        }
    }
    for (size_t i = p->n - p->n_each; i-- > 0;) {
        p->use[i] += p->use[i + p->n_each];
    }
    for (size_t i = 0; i < p->n; i++) {
        double end = (i % N_CELLS + 1) * p->cell;
        double seconds =
            fmin(fmax(end - i / p->n_each * p->slice, 0), p->cell);

        p->use[i] -= seconds;
        value -= p->price[i] * seconds;
    }
    return value;
}

/* Replaces prices by the nearest ones that do not rise from cell 'first' on,
 * and are not below 0. */
static void
allow(double price[N_CELLS], size_t first)
{
    double sums[N_CELLS];
    size_t counts[N_CELLS], n = 0, c = first;

    memset(price, 0, first * sizeof *price);
    for (size_t i = first; i < N_CELLS; i++) {
        sums[n] = price[i];
        counts[n++] = 1;
        while (n > 1
               && sums[n - 2] * counts[n - 1] < sums[n - 1] * counts[n - 2]) {
            n--;
            sums[n - 1] += sums[n];
            counts[n - 1] += counts[n];
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < counts[i]; k++) {
            price[c++] = fmax(sums[i] / counts[i], 0);
        }
    }
}

/* Moves the prices so that the value would grow by 'growth' if it were
 * linear. */
static void
move(struct prices *p, double growth)
{
    double norm = 0;

    for (size_t i = 0; i < p->n; i++) {
        p->direction[i] = p->use[i] + MEMORY * p->direction[i];
        norm += p->direction[i] * p->direction[i];
    }
    for (size_t i = 0; norm > 0 && i < p->n; i++) {
        p->price[i] += growth / norm * p->direction[i];
    }
    for (size_t i = 0; i < p->n; i += N_CELLS) {
        allow(&p->price[i], fmin(i / p->n_each * p->slice / p->cell, N_CELLS));
    }
}

/* Follows the subgradient for 'rounds' and returns the best value. */
static double
climb(struct prices *p, int rounds)
{
    double best = -INFINITY, ahead = 0;
    int since = 0;

    for (int round = 0; round < rounds; round++) {
        double now = evaluate(p);

        ahead = round ? ahead : 0.1 * fabs(now);
        since++;
        if (now > best + 1e-5 * fabs(best)) {
            ahead *= since < PATIENCE / 3 ? 1.2 : 1;
            since = 0;
        }
        if (now > best) {
            best = now;
            memcpy(p->best, p->price, p->n * sizeof *p->best);
        }
        if (since == PATIENCE) {
            since = 0;
            ahead /= 2;
            memcpy(p->price, p->best, p->n * sizeof *p->price);
            memset(p->direction, 0, p->n * sizeof *p->direction);
        } else {
            move(p, best + ahead - now);
        }
    }
    return best;
}

/* Sets the times: until the horizon, everything can be served. */
static void
set_times(struct prices *p)
{
    const struct fluid *f = p->f;
    double *load = order_alloc(f->n_ports, sizeof *load);
    double horizon = 0, latest = 0, most = 0;

    p->begin = f->searches[0].begin;
    for (size_t s = 1; s < f->n_searches; s++) {
        p->begin = fmin(p->begin, f->searches[s].begin);
    }
    for (size_t s = 0; s < f->n_searches; s++) {
        double begin = f->searches[s].begin - p->begin;

        latest = fmax(latest, begin);
        horizon = fmax(horizon, begin + f->searches[s].alone);
    }
    for (size_t j = 0; j < f->n_jobs; j++) {
        for (size_t d = 0; d < f->jobs[j].n_demands; d++) {
            const struct order_demand *demand =
                &f->demands[f->jobs[j].first_demand + d];

            load[demand->port] += f->jobs[j].iterations * demand->seconds;
            most = fmax(most, load[demand->port]);
        }
    }
    horizon = fmax(horizon, latest + most);
    p->cell = fmax(horizon, ORDER_MIN_SECONDS) / N_CELLS;
    p->step = p->cell / STEPS;
    p->slice = latest / N_GROUPS;
    free(load);
}

bool
prices_bound(const struct fluid *f, double work, double *value)
{
    struct prices p = { .f = f };
    double each = 1; /* Multiplications of a round, or as long. */
    int rounds;

    set_times(&p);
    p.n_each = (size_t) f->n_ports * N_CELLS;
    p.n = p.n_each * (p.slice > 0 ? N_GROUPS : 1);
    for (size_t j = 0; j < f->n_jobs; j++) {
        each += 60 * N_ENDS + 10 * f->jobs[j].n_demands * N_CELLS;
    }
    rounds = fmin(work / (each + 10 * p.n), MAX_ROUNDS);
    if (rounds < MIN_ROUNDS || !p.n) {
        return false;
    }
    p.price = order_alloc(p.n, sizeof *p.price);
    p.use = order_alloc(p.n, sizeof *p.use);
    p.direction = order_alloc(p.n, sizeof *p.direction);
    p.best = order_alloc(p.n, sizeof *p.best);
    p.paid = order_alloc(p.n_each, sizeof *p.paid);
    p.job_cost = order_alloc(f->n_jobs * N_ENDS, sizeof *p.job_cost);
    p.cost = order_alloc(f->n_rungs * N_ENDS, sizeof *p.cost);
    p.last = order_alloc(f->n_rungs * N_ENDS, sizeof *p.last);
    *value = fmax(*value, climb(&p, rounds));
    free(p.price);
    free(p.use);
    free(p.direction);
    free(p.best);
    free(p.paid);
    free(p.job_cost);
    free(p.cost);
    free(p.last);
    return true;
}
