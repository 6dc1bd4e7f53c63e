/* SPDX-License-Identifier: Apache-2.0 */

#ifndef JOB_ENDS_H
#define JOB_ENDS_H 1

/* Predicts when jobs that iterate end, if a strict order serves them.
 *
 * A job alone does an iteration in its period, in which it computes and then
 * exchanges.  In the order, its pace is the least of that and, over its ports,
 * what the jobs before it leave of the port divided by what an iteration
 * needs of it.  Paces change only when a job ends, so the prediction goes from
 * end to end.  Jobs that begin later are not known to it.
 *
 * The order of iterations changes while jobs make progress: a job that lets
 * others pass becomes urgent.  A good input is therefore not the order of the
 * moment but the order of the stages by what their searches need relative to
 * their weights, and within a stage the longest job first.  At all decisions
 * of simulated searches, compared with the ends that the simulator finds, the
 * mean error of what a stage still needs is 0.20, 0.18, 0.22 and 0.25 (10
 * seeds of the families spread, one, 16_load1 and 16_load2 of
 * order-iterating), with the order of the moment 0.41, 0.26, 2.0 and 2.5, and
 * 0.28, 0.24, 0.34 and 0.38 if stages are added up port by port.
 *
 * 128 jobs of 16 ports each take 0.7 ms.  The time grows with the square of
 * the number of jobs, so beyond JOB_ENDS_MAX a caller should add up ports.
 * Pure function. */

#include <stddef.h>

#define JOB_ENDS_MAX 128

struct order_demand;

struct job_end {
    double iterations;          /* Left. */
    double period;              /* Seconds of an iteration alone. */
    const struct order_demand *demands; /* Of an iteration, by port. */
    size_t n_demands;
    double end;                 /* Output: seconds from now. */
};

/* Sets 'end' of the 'n' 'jobs', which go in this order.  Demands are of ports
 * below 'n_ports'.  A job without period and demands ends at once. */
void job_ends_predict(struct job_end *jobs, size_t n, int n_ports);

#endif /* order/result/job-ends.h */
