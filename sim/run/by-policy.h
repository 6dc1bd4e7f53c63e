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
 * that the same workload has the same result each time.  An interrupt that the
 * program catches (base/interrupt.h) ends the simulation without a result. */

#include "sim/run/simulate.h"

struct policy;
struct workload;

struct sim_options sim_policy_options(const struct policy *);

/* Adds the delays, the jitter and the headers of a lab on one machine, as
 * measured: orders reach the hosts 40 ms after a change (bench
 * control-fanout), jobs need 0.5 s for their processes and first parameters,
 * and an iteration takes 6 ms more than its transfers and its emulated
 * computing (both by the lab's times of iterations), and TCP, its
 * acknowledgements and gaps take 3 % of a link (by fair sharing at the first
 * two placements of the quickstart).  'seed' decides the jitter. */
void sim_options_like_lab(struct sim_options *, uint64_t seed);

void simulate_by_policy(const struct workload *, const struct policy *,
                        const struct sim_options *options,
                        struct sim_result *);

#endif /* sim/run/by-policy.h */
