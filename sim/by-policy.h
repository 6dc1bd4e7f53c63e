/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_BY_POLICY_H
#define SIM_BY_POLICY_H 1

/* Simulates a workload as a policy says: its order with all numbers, its
 * levels and their floor, its aging, and its weights by user and cojob.
 *
 * What else there is in struct sim_options, such as 'service' and 'progress',
 * comes from 'options'.  Without them, NULL, levels are served as the data
 * plane does, strictly and fairly inside. */

struct policy;
struct sim_options;
struct sim_result;
struct workload;

void simulate_by_policy(const struct workload *, const struct policy *,
                        const struct sim_options *options,
                        struct sim_result *);

#endif /* sim/by-policy.h */
