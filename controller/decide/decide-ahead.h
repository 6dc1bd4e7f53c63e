/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DECIDE_AHEAD_H
#define DECIDE_AHEAD_H 1

/* Plans beside the decisions, in a thread of their own.
 *
 * A plan (order/lookahead/plan.h) takes longer than a decision may.  So a
 * decision uses the last plan that is ready, and leaves what it has seen for
 * the next one; it never waits.
 *
 *    decide_ahead_take(a, cluster, policy, now);
 *    ...a decision, with the 'factor' of each job...
 *    decide_ahead_offer(a, &dp, cluster, policy, now);
 *
 * The thread has the share of a processor that the policy's
 * "lookahead/core_share" is: the plan after one that took s seconds begins s /
 * share seconds after its begin.  A plan is in force for
 * AHEAD_MAX_AGE_MS.  If none has come until then, because the thread is late
 * or could not be started, or after a start of the controller, the key alone
 * decides: all factors are 1.  That also holds with more than AHEAD_MAX_JOBS
 * jobs, for which a plan would take too long.
 *
 * The main thread calls these functions.  The two threads exchange whole
 * outlooks, which only one of them has at a time. */

#include <stdbool.h>
#include <stdint.h>

struct cluster;
struct decide_ahead;
struct decide_problem;
struct policy;

#define AHEAD_MAX_AGE_MS 15000
#define AHEAD_MAX_JOBS 100

struct decide_ahead *decide_ahead_create(void);
void decide_ahead_destroy(struct decide_ahead *);

/* Sets the factors of all jobs.  Returns true if a plan is in force; none is
 * under a policy that does not look ahead. */
bool decide_ahead_take(struct decide_ahead *, struct cluster *,
                       const struct policy *, long long now);

/* Begins a plan, unless one is under way or the next is not due. */
void decide_ahead_offer(struct decide_ahead *, const struct decide_problem *,
                        const struct cluster *, const struct policy *,
                        long long now);

/* Counts since the start. */
struct decide_ahead_counts {
    uint64_t plans;
    uint64_t runs; /* Simulations. */
    double cpu_s;  /* Processor time. */
};

struct decide_ahead_counts decide_ahead_counts(const struct decide_ahead *);

#endif /* controller/decide/decide-ahead.h */
