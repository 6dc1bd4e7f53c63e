/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTERLEAVE_H
#define INTERLEAVE_H 1

/* Which jobs could take turns on their ports, and when each should begin.
 *
 *
 * Motivation
 * ==========
 *
 * A training job computes and communicates in turns.  Two of them on a port do
 * not hold each other up if one communicates while the other computes, which
 * needs the right shift in time and that they fit: the shares of time that
 * they communicate must not add up to more than one.  CASSINI (Rajasekaran et
 * al., NSDI 2024) rolls each job's time around a circle as long as the least
 * common multiple of the periods and turns the jobs until they overlap least.
 *
 *
 * Usage
 * =====
 *
 *    struct interleave *il = interleave_create(problem);
 *    ...il->ports[i].compatible, il->shift[stage]...
 *    interleave_destroy(il);
 *
 * Stages need a 'period' and a 'burst' in their traits: the burst is what an
 * iteration needs of the stage's busiest port.  Another port is taken for a
 * part of its rate during the burst, in proportion to the stage's demands.
 *
 * A job has one shift for all its ports.  Jobs are turned one by one, a few
 * times, each to where all of its ports are asked for least beyond their
 * rates: good shifts, not the best.  The circle has a limited
 * number of slots; periods are rounded to them, and periods without a short
 * common multiple are compared over as many slots only.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A report owns its arrays and keeps nothing of the problem. */

#include <stdbool.h>
#include <stddef.h>

struct order_problem;
struct order_stage;

/* A port on which several periodic stages meet. */
struct interleave_port {
    int port;
    size_t n_stages;            /* At least 2. */
    int *stages;                /* Indexes in the problem, rising. */
    double utilisation;         /* Sum of the shares of time that they need,
                                 * > 0. */
    bool compatible;            /* That is at most 1. */
    double unshifted;           /* What they ask for beyond the port's rate, on
                                 * average, as a share of it, >= 0: if all
                                 * begin at once, */
    double excess;              /* and with the shifts. */
};

struct interleave {
    size_t n_stages;
    double *shift;              /* Of each stage, 0 to its period: seconds
                                 * from a common moment to its first burst.
                                 * 0 for those that meet nobody. */
    size_t n_ports;
    struct interleave_port *ports;      /* By rising port. */
};

struct interleave *interleave_create(const struct order_problem *);
void interleave_destroy(struct interleave *);

/* The share of time, 0 to 1, in which a stage communicates: 0 if it is not
 * periodic. */
double interleave_duty(const struct order_stage *);

/* True if two stages are periodic, one port is the busiest of both, and on
 * every port that they share they need no more than all of the time. */
bool interleave_fits(const struct order_stage *, const struct order_stage *);

#endif /* order/interleave.h */
