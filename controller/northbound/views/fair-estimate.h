/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FAIR_ESTIMATE_H
#define FAIR_ESTIMATE_H 1

/* When the stages of an order would end without one.
 *
 * A prediction, for people who ask whether the order helps: on each port all
 * jobs that need it share it equally until they have what they need, ports
 * know nothing of each other, and no job ends before it would alone.  A real
 * network that is shared fairly does no better, since there a job that waits
 * at one port leaves others idle: what the order gains by this is rather too
 * little than too much.  Pure computation. */

struct decide_rows;

/* Stores the mean completion time of the stages, in seconds, by the order's
 * own estimate and if all shared fairly; 0 if there are none. */
void fair_estimate(const struct decide_rows *, double *order_s,
                   double *fair_s);

#endif /* controller/northbound/views/fair-estimate.h */
