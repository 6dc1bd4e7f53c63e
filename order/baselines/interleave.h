/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTERLEAVE_H
#define INTERLEAVE_H 1

/* Finds jobs that can interleave on their ports, and time shifts for them.
 *
 * A training job alternates between computing and communicating.  Two jobs on
 * a port do not delay each other if one communicates while the other computes.
 * That requires a suitable shift in time, and that the shares of time in which
 * they communicate add up to at most one.  CASSINI (Rajasekaran et al., NSDI
 * 2024) rolls the time of each job around a circle whose length is the least
 * common multiple of the periods, and rotates the jobs until they overlap
 * least.
 *
 *    struct interleave *il = interleave_create(problem);
 *    ...il->ports[i].compatible, il->shift[stage]...
 *    interleave_destroy(il);
 *
 * Stages need a 'period' and a 'burst' in their traits: the burst is the time
 * that an iteration needs of the stage's busiest port.  During the burst, the
 * other ports are used in proportion to the stage's demands.
 *
 * A job has one shift for all its ports.  Jobs are shifted one by one, in a
 * few passes, to where their load exceeds the rates of their ports least: the
 * shifts are good, not optimal.  The circle has a limited number of slots.
 * Periods are rounded to slots; if they have no short common multiple, only
 * the limited number of slots is compared.
 *
 * The result owns its arrays and does not refer to the problem. */

#include <stdbool.h>
#include <stddef.h>

struct order_problem;
struct order_stage;

/* A port that several periodic stages share. */
struct interleave_port {
    int port;
    size_t n_stages;            /* At least 2. */
    int *stages;                /* Indexes in the problem, rising. */
    double utilisation;         /* Sum of the shares of time that the stages
                                 * need, > 0. */
    bool compatible;            /* True if 'utilisation' is at most 1. */
    double unshifted;           /* Mean load above the port's rate if all
                                 * stages begin at once, relative to the
                                 * rate, >= 0. */
    double excess;              /* Mean load above the port's rate with the
                                 * shifts, relative to the rate, >= 0. */
};

struct interleave {
    size_t n_stages;
    double *shift;              /* Of each stage: seconds from a common moment
                                 * to its first burst, 0 to its period; 0 if it
                                 * shares no port. */
    size_t n_ports;
    struct interleave_port *ports;      /* By rising port. */
};

struct interleave *interleave_create(const struct order_problem *);
void interleave_destroy(struct interleave *);

/* Returns the share of time in which a stage communicates, 0 to 1; 0 if it is
 * not periodic. */
double interleave_duty(const struct order_stage *);

/* Returns true if two stages are periodic, have the same busiest port, and
 * need at most all of the time on every port that they share. */
bool interleave_fits(const struct order_stage *, const struct order_stage *);

#endif /* order/baselines/interleave.h */
