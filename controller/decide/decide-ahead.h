/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DECIDE_AHEAD_H
#define DECIDE_AHEAD_H 1

/* Plans, bounds and the plain network beside the decisions, in a thread of
 * their own.
 *
 * A plan (order/lookahead/plan.h) takes longer than a decision may, and so do
 * a bound (order/fluid/fluid.h) and the simulation of the network without an
 * order (order/lookahead/plain-network.h).  So a decision uses the last ones
 * that are ready, and leaves what it has seen for the next ones; it never
 * waits.
 *
 *    decide_ahead_take(a, cluster, policy, now);
 *    ...a decision, with the 'factor' of each job...
 *    decide_ahead_offer(a, &dp, cluster, policy, ends, now);
 *    decide_ahead_bound(a, now, &bound);
 *
 * The thread has the share of a processor that the policy's
 * "lookahead/core_share" is: the plan after one that took s seconds begins s /
 * share seconds after its begin.  A plan is in force for
 * AHEAD_MAX_AGE_MS.  If none has come until then, because the thread is late
 * or could not be started, or after a start of the controller, the key alone
 * decides: all factors are 1.  That also holds with more than AHEAD_MAX_JOBS
 * jobs, for which a plan would take too long.
 *
 * Bounds come with any policy that orders weighted iterations.  They are of
 * the stages that run, until their ends, so which jobs survive does not
 * matter; the computing time of jobs is what the controller predicts.  They
 * have about AHEAD_BOUND_SHARE of a processor, and there are none of more than
 * AHEAD_MAX_JOBS jobs.  The same holds for the plain network, which follows
 * the stages under any policy: decide_ahead_take() sets their 'plain'.
 *
 * The main thread calls these functions.  The two threads exchange whole
 * outlooks, which only one of them has at a time. */

#include <stdbool.h>
#include <stdint.h>

#include "order/fluid/fluid.h"

struct cluster;
struct decide_ahead;
struct decide_problem;
struct policy;

#define AHEAD_MAX_AGE_MS 15000
#define AHEAD_MAX_JOBS 100
#define AHEAD_BOUND_SHARE 0.01
#define AHEAD_BOUND_MAX_AGE_MS 60000

struct decide_ahead *decide_ahead_create(void);
void decide_ahead_destroy(struct decide_ahead *);

/* Sets the factors of all jobs and the plain times of all stages that the last
 * simulation had.  Returns true if a plan is in force; none is
 * under a policy that does not look ahead. */
bool decide_ahead_take(struct decide_ahead *, struct cluster *,
                       const struct policy *, long long now);

/* Begins what is due, unless something is under way.
 * 'ends' are the seconds until each stage ends, as predicted. */
void decide_ahead_offer(struct decide_ahead *, const struct decide_problem *,
                        const struct cluster *, const struct policy *,
                        const double ends[], long long now);

/* Counts since the start. */
struct decide_ahead_counts {
    uint64_t plans;
    uint64_t runs; /* Simulations. */
    double cpu_s;  /* Processor time. */
};

struct decide_ahead_counts decide_ahead_counts(const struct decide_ahead *);

/* Weighted sums of the seconds until the stages end. */
struct decide_ahead_bound {
    double estimate; /* As predicted. */
    struct fluid_bound bound;
};

/* Stores the last bound.  Returns false if it is older than
 * AHEAD_BOUND_MAX_AGE_MS. */
bool decide_ahead_bound(const struct decide_ahead *, long long now,
                        struct decide_ahead_bound *);

#endif /* controller/decide/decide-ahead.h */
