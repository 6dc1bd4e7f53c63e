/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/by-policy.h"

#include "policies/policy.h"
#include "sim/simulate.h"
#include "sim/workload-view.h"

void
simulate_by_policy(const struct workload *w, const struct policy *policy,
                   const struct sim_options *options,
                   struct sim_result *result)
{
    struct workload *view = workload_view_weighted(w, policy);
    struct sim_options by_policy = options ? *options
                                           : (struct sim_options) { 0 };

    by_policy.order = policy->order;
    by_policy.guard_share = policy->guard_share;
    by_policy.aging_s = policy->aging_s;
    simulate(view, &by_policy, result);
    workload_view_destroy(view);
}
