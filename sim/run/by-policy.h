/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_BY_POLICY_H
#define SIM_BY_POLICY_H 1

/* Simulates a workload under a policy: its order with all parameters, its
 * levels and their minimum share, its aging, and its weights.
 *
 *    struct sim_options options = sim_policy_options(policy);
 *    options.progress = ...
 *    simulate_by_policy(workload, policy, &options, &result);
 *
 * Levels are served as the data plane does, strictly and fairly inside, unless
 * 'options' say otherwise; NULL stands for the policy's.  The improvement of
 * an order takes as long as its moves do, whatever the policy's budget, so
 * that the same workload has the same result each time. */

#include "sim/run/simulate.h"

struct policy;
struct workload;

struct sim_options sim_policy_options(const struct policy *);
void simulate_by_policy(const struct workload *, const struct policy *,
                        const struct sim_options *options,
                        struct sim_result *);

#endif /* sim/run/by-policy.h */
