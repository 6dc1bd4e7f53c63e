/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FLUID_H
#define FLUID_H 1

/* Lower bounds on the completion times of searches, where jobs iterate.
 *
 * The bounds of primal-dual/ are of ports: none sees that a job which waits at
 * one port leaves the others idle.  Here a job is rigid: it has one rate, the
 * same on all its ports, which is at most 1 / period.  The rungs of a search
 * follow each other, so the sum of the times of its stages is its end, less
 * its begin.
 *
 *    struct fluid *f = fluid_create(n_ports);
 *    fluid_add_search(f, weight, begin);
 *    fluid_add_rung(f, keep);                ...of the last search...
 *    fluid_add_job(f, iterations, period);   ...of the last rung...
 *    fluid_add_demand(f, port, seconds);     ...of the last job...
 *    struct fluid_bound bound = fluid_bound(f, work);
 *    fluid_destroy(f);
 *
 * If not all jobs of a rung take part, it is not said which do: the cheapest
 * 'keep' of them count.
 *
 * There are two forms.  In the fluid form a job is served at any rate at all
 * times, as a liquid: an order could reach it if iterations were short.  A
 * real job is rigid only from iteration to iteration, so that with few and
 * long ones it can end before that.  The strict form is below the completion
 * times of each schedule; it leaves out what an iteration at the boundaries of
 * rungs can win, about 4.5 % with 30 and 80 iterations.
 *
 * If the ends of rungs have at most FLUID_MAX_ORDERS orders, the fluid form is
 * exact: for each order of the ends a linear program has the best rates
 * between two of them, see fluid.c.  Elsewhere prices of ports bound both
 * forms, see prices.h.
 *
 * The caller owns it.  Not for several threads at once. */

#include <stddef.h>

#include "order/problem/problem.h"
#include "order/result/result.h"

/* Four searches of two rungs that begin together have 2,520. */
#define FLUID_MAX_ORDERS 3000

struct fluid_job {
    double iterations; /* In its rung. */
    double period;     /* Seconds of an iteration without competitors,
                        * at least what it needs of a port. */
    size_t first_demand, n_demands; /* Of an iteration; each port once. */
};

struct fluid_rung {
    size_t first_job, n_jobs;
    size_t keep;  /* Number of its jobs that take part. */
    double alone; /* It takes at least these seconds. */
};

struct fluid_search {
    double weight;
    double begin; /* Seconds. */
    size_t first_rung, n_rungs;
    double alone; /* It takes at least these seconds. */
};

/* Read-only outside this room. */
struct fluid {
    int n_ports;
    size_t n_searches, n_rungs, n_jobs, n_demands;
    struct fluid_search *searches;
    struct fluid_rung *rungs;
    struct fluid_job *jobs;
    struct order_demand *demands;
    size_t allocated[4]; /* Of these arrays. */
};

struct fluid_bound {
    double fluid, strict;  /* Weighted sums of the ends of the searches,
                            * each less its begin. */
    enum order_bound kind; /* ORDER_BOUND_FLUID if 'fluid' is the optimum,
                            * ORDER_BOUND_PRICES, or if neither could be
                            * computed ORDER_BOUND_ISOLATED. */
};

struct fluid *fluid_create(int n_ports);
void fluid_destroy(struct fluid *);

void fluid_add_search(struct fluid *, double weight, double begin);
void fluid_add_rung(struct fluid *, size_t keep);
void fluid_add_job(struct fluid *, double iterations, double period);

/* Demands of a job for the same port add up. */
void fluid_add_demand(struct fluid *, int port, double seconds);

/* Computes both forms, each by about 'work' multiplications at most. */
struct fluid_bound fluid_bound(struct fluid *, double work);

#endif /* order/fluid/fluid.h */
