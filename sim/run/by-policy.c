/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/run/by-policy.h"

#include <math.h>

#include "base/interrupt.h"
#include "order/problem/memory.h"
#include "policies/policy.h"
#include "sim/workload/workload.h"

struct sim_options
sim_policy_options(const struct policy *policy)
{
    struct sim_options options = {
        .order = policy->order,
        .service = SIM_SERVICE_LEVELS,
        .min_share = policy->min_share,
        .refresh_s = policy->refresh_ms / 1000.0,
        .lookahead_runs = policy->lookahead_runs,
        .aging_s = policy->aging_s,
        .aging_slowdown = policy->aging_slowdown,
        .latest = policy->objective_latest,
        .owner_memory_s = policy->owner_memory_s,
        .stopped = interrupt_caught,
        .early = {
            .samples = policy->early_samples < PROGRESS_WINDOW
                       ? policy->early_samples : PROGRESS_WINDOW,
            .boot_s = policy->early_boot_s,
            .period_s = policy->early_period_s,
        },
    };

    if (options.order.improve_s > 0) {
        options.order.improve_s = INFINITY;
    }
    return options;
}

void
sim_options_like_lab(struct sim_options *options, uint64_t seed)
{
    options->late_s = 0.04;
    options->start_s = 0.5;
    options->jitter_s = 0.006;
    options->efficiency = 0.97;
    options->seed = seed;
}

/* Returns the workload with the policy's weights.  It shares all but its array
 * of cojobs, which the caller frees, with 'w': transfers are most of it. */
static struct workload
weighted(const struct workload *w, const struct policy *policy)
{
    struct workload copy = *w;

    copy.cojobs = order_alloc(w->n_cojobs, sizeof *copy.cojobs);
    for (size_t i = 0; i < w->n_cojobs; i++) {
        copy.cojobs[i] = w->cojobs[i];
        copy.cojobs[i].weight *=
            policy_weight(policy, w->cojobs[i].user, w->cojobs[i].name);
    }
    return copy;
}

void
simulate_by_policy(const struct workload *w, const struct policy *policy,
                   const struct sim_options *options,
                   struct sim_result *result)
{
    struct workload copy = weighted(w, policy);
    struct sim_options own = sim_policy_options(policy);

    simulate(&copy, options ? options : &own, result);
    free(copy.cojobs);
}
