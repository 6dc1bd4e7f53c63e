/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FLUID_ORDERS_H
#define FLUID_ORDERS_H 1

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

#include <stdbool.h>

struct fluid;

/* If there are few enough orders, raises '*value' to the least weighted sum of
 * the times of searches, but for rounding, and returns true.  Returns false if
 * it needs more than 'work' multiplications. */
bool orders_bound(const struct fluid *, bool strict, double work,
                  double *value);

#endif /* order/fluid/orders.h */
