/* SPDX-License-Identifier: Apache-2.0 */

#include "order/fluid/fluid.h"

#include <math.h>

#include "order/fluid/cover.h"
#include "order/fluid/prices.h"
#include "order/problem/memory.h"

#define ROUNDING 1e-7  /* Of values, relative. */
#define MAX_SEARCHES 6 /* Seven have 5,040 orders at least. */

struct fluid *
fluid_create(int n_ports)
{
    struct fluid *f = order_alloc(1, sizeof *f);

    f->n_ports = n_ports;
    return f;
}

void
fluid_destroy(struct fluid *f)
{
    if (f) {
        free(f->searches);
        free(f->rungs);
        free(f->jobs);
        free(f->demands);
        free(f);
    }
}

void
fluid_add_search(struct fluid *f, double weight, double begin)
{
    f->searches = order_grow(f->searches, f->n_searches + 1, &f->allocated[0],
                             sizeof *f->searches);
    f->searches[f->n_searches++] = (struct fluid_search){
        .weight = weight, .begin = begin, .first_rung = f->n_rungs
    };
}

void
fluid_add_rung(struct fluid *f, size_t keep)
{
    f->rungs = order_grow(f->rungs, f->n_rungs + 1, &f->allocated[1],
                          sizeof *f->rungs);
    f->rungs[f->n_rungs++] =
        (struct fluid_rung){ .first_job = f->n_jobs, .keep = keep };
    f->searches[f->n_searches - 1].n_rungs++;
}

void
fluid_add_job(struct fluid *f, double iterations, double period)
{
    f->jobs =
        order_grow(f->jobs, f->n_jobs + 1, &f->allocated[2], sizeof *f->jobs);
    f->jobs[f->n_jobs++] =
        (struct fluid_job){ .iterations = iterations,
                            .period = fmax(period, ORDER_MIN_SECONDS),
                            .first_demand = f->n_demands };
    f->rungs[f->n_rungs - 1].n_jobs++;
}

void
fluid_add_demand(struct fluid *f, int port, double seconds)
{
    struct fluid_job *job = &f->jobs[f->n_jobs - 1];
    size_t i = job->first_demand;

    while (i < f->n_demands && f->demands[i].port != port) {
        i++;
    }
    if (i == f->n_demands) {
        f->demands = order_grow(f->demands, ++f->n_demands, &f->allocated[3],
                                sizeof *f->demands);
        f->demands[i] = (struct order_demand){ .port = port };
        job->n_demands++;
    }
    f->demands[i].seconds += seconds;
    job->period = fmax(job->period, f->demands[i].seconds);
}

/* Returns the seconds that the last of the 'keep' shortest jobs of 'rung'
 * takes without competitors. */
static double
rung_alone(const struct fluid *f, const struct fluid_rung *rung)
{
    const struct fluid_job *jobs = &f->jobs[rung->first_job];

    for (size_t i = 0; i < rung->n_jobs; i++) {
        double own = jobs[i].iterations * jobs[i].period;
        size_t n_shorter = 0, n_equal = 0;

        for (size_t k = 0; k < rung->n_jobs; k++) {
            double other = jobs[k].iterations * jobs[k].period;

            n_shorter += other < own;
            n_equal += other == own;
        }
        if (n_shorter < rung->keep && rung->keep <= n_shorter + n_equal) {
            return own;
        }
    }
    return 0;
}

/* Sets how long rungs and searches take at least.  Returns the weighted sum of
 * the searches' times. */
static double
set_alone(struct fluid *f)
{
    double sum = 0;

    for (size_t s = 0; s < f->n_searches; s++) {
        struct fluid_search *search = &f->searches[s];

        search->alone = 0;
        for (size_t r = 0; r < search->n_rungs; r++) {
            struct fluid_rung *rung = &f->rungs[search->first_rung + r];

            rung->alone = rung_alone(f, rung);
            search->alone += rung->alone;
        }
        sum += search->weight * search->alone;
    }
    return sum;
}

/* The best rates of jobs for each order of the ends of rungs.
 *
 * In an order of ends, what runs between two of them is known, and only the
 * rates of jobs there matter, not their course.  So the best ends are those of
 * a linear program: each job has a number of seconds in each interval between
 * two ends, at most its length, and each port serves a job that runs for a
 * second for as long as the job's demand over its period.  A search that
 * begins later is an event between the ends, too.
 *
 * In the strict form only iterations count that are in one interval as a
 * whole.  An end cuts at most one iteration of a job that goes on, so a job of
 * a rung with n intervals has n - 1 less to do. */

/* Events are the ends of rungs, and the begins of the searches that begin
 * after the first one.  Interval i ends with event i. */
struct event {
    size_t search;
    const struct fluid_rung *rung; /* NULL for a begin. */
    size_t from;                   /* First interval of the rung. */
    size_t first;                  /* First piece of the rung. */
};

/* A variable: the seconds of a job in an interval, at its full rate.  The
 * variables before the pieces are the lengths of the intervals. */
struct piece {
    const struct fluid_job *job;
    size_t interval;
};

struct orders {
    const struct fluid *f;
    bool strict;
    double begin;   /* Of the first search, seconds. */
    double *load;   /* Of each port, if all jobs run at their full rates. */
    size_t *placed; /* Events of each search so far. */
    size_t *since;  /* First interval of each search's rung. */
    size_t n_events;
    struct event *events;
    size_t n_pieces, allocated_pieces;
    struct piece *pieces; /* By rung, job and interval. */
    struct cover cover;
    double n_orders, work;
    double best;
};

static bool
begins_later(const struct orders *o, size_t s)
{
    return o->f->searches[s].begin > o->begin;
}

/* Returns true if search 's' has the next event of all.  Begins have their
 * order. */
static bool
may_be_next(const struct orders *o, size_t s)
{
    const struct fluid_search *searches = o->f->searches;

    if (o->placed[s] || !begins_later(o, s)) {
        return o->placed[s] < searches[s].n_rungs + begins_later(o, s);
    }
    for (size_t t = 0; t < o->f->n_searches; t++) {
        if (begins_later(o, t) && !o->placed[t]
            && (searches[t].begin < searches[s].begin
                || (searches[t].begin == searches[s].begin && t < s))) {
            return false;
        }
    }
    return true;
}

/* Calls 'visit' for each order of the events after the first 'n', until it
 * returns false. */
static bool
walk(struct orders *o, size_t n, bool (*visit)(struct orders *))
{
    bool more = n < o->n_events || visit(o);

    for (size_t s = 0; more && n < o->n_events && s < o->f->n_searches; s++) {
        if (may_be_next(o, s)) {
            o->events[n].search = s;
            o->placed[s]++;
            more = walk(o, n + 1, visit);
            o->placed[s]--;
        }
    }
    return more;
}

static bool
count(struct orders *o)
{
    return ++o->n_orders <= FLUID_MAX_ORDERS;
}

/* Adds the pieces of the jobs of event 'e'. */
static void
add_pieces(struct orders *o, const struct event *event, size_t e)
{
    const struct fluid_rung *rung = event->rung;

    o->pieces = order_grow(o->pieces, o->n_pieces + rung->n_jobs * (e + 1),
                           &o->allocated_pieces, sizeof *o->pieces);
    for (size_t j = rung->first_job; j < rung->first_job + rung->n_jobs; j++) {
        for (size_t i = event->from; i <= e; i++) {
            o->pieces[o->n_pieces++] = (struct piece){ &o->f->jobs[j], i };
        }
    }
}

/* Sets what the events end, and the pieces. */
static void
set_events(struct orders *o)
{
    size_t *next = order_alloc(o->f->n_searches, sizeof *next);

    o->n_pieces = 0;
    memset(o->since, 0, o->f->n_searches * sizeof *o->since);
    for (size_t e = 0; e < o->n_events; e++) {
        struct event *event = &o->events[e];
        const struct fluid_search *search = &o->f->searches[event->search];
        size_t nth = next[event->search]++;
        bool begins = begins_later(o, event->search);

        event->from = o->since[event->search];
        event->first = o->n_pieces;
        event->rung = NULL;
        if (nth || !begins) {
            event->rung = &o->f->rungs[search->first_rung + nth - begins];
            add_pieces(o, event, e);
        }
        o->since[event->search] = e + 1;
    }
    free(next);
}

/* Sets the costs of the variables: an interval costs the weights of the
 * searches that have not ended before it. */
static void
set_costs(struct orders *o)
{
    const struct fluid *f = o->f;
    double weight = 0;

    cover_begin(&o->cover, o->n_events + o->n_pieces);
    for (size_t e = o->n_events; e-- > 0;) {
        const struct fluid_search *search = &f->searches[o->events[e].search];

        if (o->events[e].rung
            == &f->rungs[search->first_rung + search->n_rungs - 1]) {
            weight += search->weight;
        }
        o->cover.cost[e] = weight;
        o->cover.most[e] = INFINITY;
    }
    for (size_t i = 0; i < o->n_pieces; i++) {
        const struct fluid_job *job = o->pieces[i].job;

        o->cover.cost[o->n_events + i] = 0;
        o->cover.most[o->n_events + i] = job->iterations * job->period;
    }
}

/* Adds a row, in which 'n' variables from 'first' on are 'coefficient'. */
static double *
add_sum(struct orders *o, double need, double coefficient, size_t first,
        size_t n)
{
    double *row = cover_add_row(&o->cover, need);

    for (size_t i = first; i < first + n; i++) {
        row[i] = coefficient;
    }
    return row;
}

/* Adds what the jobs of a rung need if some of them take part, each with 'n'
 * pieces and 'lost' iterations less.  Let a job take part by the share of its
 * iterations that it does.  The shares must be as many as jobs take part, and
 * no more jobs than that may run at a time. */
static void
add_choice(struct orders *o, const struct event *event, size_t n, double lost)
{
    const struct fluid_rung *rung = event->rung;
    size_t first = o->n_events + event->first;
    double *row;

    for (size_t i = 0; i < n; i++) {
        row = add_sum(o, 0, rung->keep, event->from + i, 1);
        for (size_t j = 0; j < rung->n_jobs; j++) {
            row[first + j * n + i] = -1;
        }
    }
    row = cover_add_row(&o->cover, rung->keep);
    for (size_t i = 0; i < n * rung->n_jobs; i++) {
        const struct fluid_job *job = o->pieces[event->first + i].job;
        double left = (job->iterations - lost) * job->period;

        row[first + i] = left > 0 ? 1 / left : 0;
        if (left <= 0) { /* It may have nothing to do. */
            o->cover.need[o->cover.n_rows - 1] = 0;
        }
    }
    for (size_t j = 0; j < rung->n_jobs; j++) {
        const struct fluid_job *job = o->pieces[event->first + j * n].job;

        add_sum(o, -job->iterations * job->period, -1, first + j * n, n);
    }
}

/* Adds what must have been done at event 'e'. */
static void
add_needs(struct orders *o, size_t e)
{
    const struct event *event = &o->events[e];
    size_t n = e - event->from + 1;
    double lost = o->strict ? n - 1 : 0;

    if (!event->rung) {
        /* That the search begins later is an order of events, too. */
        add_sum(o, o->f->searches[event->search].begin - o->begin, 1, 0, n);
    } else if (event->rung->keep < event->rung->n_jobs) {
        add_choice(o, event, n, lost);
    } else {
        for (size_t j = 0; j < event->rung->n_jobs; j++) {
            size_t first = event->first + j * n;
            const struct fluid_job *job = o->pieces[first].job;

            add_sum(o, (job->iterations - lost) * job->period, 1,
                    o->n_events + first, n);
        }
    }
}

/* Returns the share of 'port' that 'job' has at its full rate. */
static double
share_of(const struct fluid *f, const struct fluid_job *job, int port)
{
    const struct order_demand *demands = &f->demands[job->first_demand];

    for (size_t d = 0; d < job->n_demands; d++) {
        if (demands[d].port == port) {
            return demands[d].seconds / job->period;
        }
    }
    return 0;
}

/* Adds that 'port' serves what it can in interval 'e', unless it can serve all
 * jobs at their full rates. */
static void
add_port(struct orders *o, int port, size_t e)
{
    double load = 0;
    double *row;

    for (size_t i = 0; i < o->n_pieces; i++) {
        load += o->pieces[i].interval == e
                    ? share_of(o->f, o->pieces[i].job, port)
                    : 0;
    }
    if (load <= 1) {
        return;
    }
    row = add_sum(o, 0, 1, e, 1);
    for (size_t i = 0; i < o->n_pieces; i++) {
        row[o->n_events + i] = o->pieces[i].interval == e
                                   ? -share_of(o->f, o->pieces[i].job, port)
                                   : 0;
    }
}

/* Improves the best value by the order.  Returns false if that would
 * take too long for all orders. */
static bool
solve(struct orders *o)
{
    double n;

    set_events(o);
    n = o->n_events + o->n_pieces;
    if (4 * o->n_orders * n * n * n > o->work) {
        return false;
    }
    set_costs(o);
    for (size_t e = 0; e < o->n_events; e++) {
        add_needs(o, e);
        for (int port = 0; port < o->f->n_ports; port++) {
            if (o->load[port] > 1) {
                add_port(o, port, e);
            }
        }
    }
    for (size_t i = 0; i < o->n_pieces; i++) {
        add_sum(o, 0, -1, o->n_events + i, 1)[o->pieces[i].interval] = 1;
    }
    o->best = fmin(o->best, cover_solve(&o->cover, o->best));
    return true;
}

static double *
find_load(const struct fluid *f)
{
    double *load = order_alloc(f->n_ports, sizeof *load);

    for (size_t j = 0; j < f->n_jobs; j++) {
        const struct fluid_job *job = &f->jobs[j];

        for (size_t d = 0; d < job->n_demands; d++) {
            const struct order_demand *demand =
                &f->demands[job->first_demand + d];

            load[demand->port] += demand->seconds / job->period;
        }
    }
    return load;
}

/* If there are few enough orders, raises '*value' to the least weighted sum of
 * the times of searches, but for rounding, and returns true.  Returns false if
 * it needs more than 'work' multiplications. */
static bool
orders_bound(const struct fluid *f, bool strict, double work, double *value)
{
    struct orders o = { .f = f,
                        .strict = strict,
                        .work = work,
                        .begin = INFINITY,
                        .best = INFINITY };
    double begins = 0;
    bool done;

    o.load = find_load(f);
    o.placed = order_alloc(f->n_searches, sizeof *o.placed);
    o.since = order_alloc(f->n_searches, sizeof *o.since);
    o.events = order_alloc(f->n_searches + f->n_rungs, sizeof *o.events);
    for (size_t s = 0; s < f->n_searches; s++) {
        o.begin = fmin(o.begin, f->searches[s].begin);
    }
    for (size_t s = 0; s < f->n_searches; s++) {
        o.n_events += f->searches[s].n_rungs + begins_later(&o, s);
        begins += f->searches[s].weight * (f->searches[s].begin - o.begin);
    }
    done = f->n_searches <= MAX_SEARCHES && walk(&o, 0, count)
           && walk(&o, 0, solve);
    if (done) {
        *value = fmax(*value, o.best - begins);
    }
    free(o.load);
    free(o.placed);
    free(o.since);
    free(o.events);
    free(o.pieces);
    cover_uninit(&o.cover);
    return done;
}

struct fluid_bound
fluid_bound(struct fluid *f, double work)
{
    double alone = set_alone(f);
    struct fluid_bound bound = { alone, alone, ORDER_BOUND_ISOLATED };

    if (f->n_searches) {
        if (orders_bound(f, false, work, &bound.fluid)) {
            bound.kind = ORDER_BOUND_FLUID;
            orders_bound(f, true, work, &bound.strict);
        } else if (prices_bound(f, work, &bound.fluid)) {
            bound.kind = ORDER_BOUND_PRICES;
            bound.strict = bound.fluid;
        }
    }
    bound.fluid *= 1 - ROUNDING;
    bound.strict *= 1 - ROUNDING;
    return bound;
}
