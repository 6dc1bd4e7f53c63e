/* SPDX-License-Identifier: Apache-2.0 */

#include "order/fluid/fluid.h"

#include <math.h>

#include "order/fluid/orders.h"
#include "order/fluid/prices.h"
#include "order/problem/memory.h"

#define ROUNDING 1e-7 /* Of values, relative. */

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
