/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WORKLOAD_VIEW_H
#define WORKLOAD_VIEW_H 1

/* Some cojobs of a workload, or the same ones with other weights.
 *
 * A policy that multiplies weights, and a search for a policy that learns from
 * one part of a workload and is tested on the other, both want a workload that
 * differs a little.  Transfers are most of a workload, so they are not copied.
 *
 *    struct workload *view = workload_view_weighted(w, policy);
 *    view->cojobs[0].weight *= 2;
 *    simulate(view, ...);
 *    workload_view_destroy(view);
 *
 * A view owns its array of cojobs, and shares all that these point to with the
 * workload that it is of, which must outlive it.  Only what stands in the
 * array itself, such as weights and arrivals, may be changed. */

struct policy;
struct workload;

void workload_view_destroy(struct workload *);

/* All cojobs, weighted by the policy. */
struct workload *workload_view_weighted(const struct workload *,
                                        const struct policy *);

/* The first 'share' of the cojobs by arrival, and the others; neither is empty
 * if there are two cojobs. */
void workload_view_split(const struct workload *, double share,
                         struct workload **first, struct workload **rest);

#endif /* sim/workload/workload-view.h */
