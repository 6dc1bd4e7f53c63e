/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FAIR_ESTIMATE_H
#define FAIR_ESTIMATE_H 1

/* Predicts the completion times of the last order's stages with fair sharing.
 *
 * The model: all jobs that need a port share it equally until their demand is
 * served, ports are independent of each other, and no job ends before its
 * isolated time.  A real network with fair sharing is not faster, because a
 * job that waits at one port leaves others idle.  The order's advantage is
 * therefore underestimated.  Pure computation. */

struct decide_rows;

/* Stores the mean completion time of the stages, in seconds, as estimated for
 * the order and with fair sharing; 0 without stages. */
void fair_estimate(const struct decide_rows *, double *order_s,
                   double *fair_s);

#endif /* controller/northbound/views/fair-estimate.h */
