/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ITERATION_WEIGHT_H
#define ITERATION_WEIGHT_H 1

/* Weight of one iteration of a job, so that stages end early.
 *
 * Jobs that iterate compute, exchange, and compute again.  While one port of a
 * job waits its other ports are idle, so a stage is not one coflow: the
 * entities that compete are the iterations that exchange now.  They are
 * sorted by the seconds of their busiest port over their weight, or ordered by
 * the primal-dual permutation if that is clearly better, see
 * primal-dual/stage.c, with the weight
 *
 *     weight of the search x urgency^3 x size of the iteration / work
 *
 * 'work' is the time of all ports, in seconds, that the search still needs
 * until its end: the rest of the running stage, the rungs to come that it has
 * announced, and what counts for those that it hid, see announcement.h.  A
 * search that is nearly done goes first, as in the rule of Smith.  'urgency'
 * is the time that the job still needs without competitors, relative to the
 * job of its stage that needs most: a stage ends with its slowest job, so a
 * job that has time to spare lets others pass.
 *
 * The size of an iteration is the seconds of its busiest port.  The last
 * factor makes the order independent of what a job calls an iteration: an
 * iteration is sorted by what its search still needs over the weight of the
 * search and the urgency, so that a job that reports its iterations in k parts
 * keeps its place, and a job that sends needless bytes goes back.  With 1 /
 * work in its place the mean was 0.6 % less, but a job that split each
 * exchange into four ended its stages a third earlier (test-mixed-traffic.c),
 * and so would a job that waits and goes on to report iterations, because the
 * bytes that are measured for each of them fall.
 *
 * The seconds of all ports as the size, or the geometric mean of both, favour
 * wide jobs: by the geometric mean a ring over 16 hosts goes before narrow
 * jobs with a third of its work, and uses its 32 ports unevenly, because it
 * waits for the slowest.  On 64 and 128 hosts with such rings the mean is then
 * 2 and 3 % longer than by the busiest port, and the 95th percentile 5 and 2 %
 * (default objective, 12 seeds).
 *
 * Weights change as jobs make progress.  Computing them again every 0.2, 0.5
 * and 1 s gives a mean stage completion time of 0.765, 0.772 and 0.779 of
 * fair sharing, and 0.794 only when stages begin or end (40 random placements
 * of four searches on six hosts, without the last factor).
 *
 * The weight of a search grows with the slowdown of its stage, see
 * order_aging(): a smaller slowdown shortens the longest stages and lengthens
 * the mean.  It also grows with the lateness of the search, see lateness.h.
 *
 * Pure functions. */

#include <stddef.h>

/* What is left of a stage, as its jobs see it. */
struct iteration_need {
    double weight;              /* Of the search, aging included. */
    double work;                /* Seconds of all ports until the search ends;
                                 * 0 if unknown. */
    double slowest;             /* Seconds that the slowest job of the stage
                                 * still needs without competitors; 0 if all
                                 * are urgent: trials that are judged one by
                                 * one, see trials.h. */
};

/* Returns the urgency, above 0 and at most 1, of a job that still needs
 * 'alone' seconds without competitors. */
double iteration_urgency(const struct iteration_need *, double alone);

/* Returns the weight of an iteration of 'busiest' seconds on its busiest port,
 * of a job that still needs 'alone' seconds without competitors; from
 * 1 / ORDER_MAX_WEIGHT to ORDER_MAX_WEIGHT.  If 'busiest' or the work of the
 * search is 0, the iteration counts as all of its search's work. */
double iteration_weight(const struct iteration_need *, double alone,
                        double busiest);

/* Returns the weight of the end of the early phase of a job, one of 'n_jobs'
 * of its stage, with iterations that need 'busiest' seconds of their busiest
 * port and 'all' seconds of all ports, see early-order.c.  The size of the
 * iteration over its work is a factor as in the weight of the end of the
 * search, so that a boost is the ratio of the values of both ends. */
double iteration_early_weight(const struct iteration_need *, size_t n_jobs,
                              double busiest, double all);

#endif /* order/problem/iteration-weight.h */
