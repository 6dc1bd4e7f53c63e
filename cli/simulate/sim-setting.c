/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/simulate/sim-setting.h"

#include <limits.h>

#include "reporting/report.h"
#include "sim/run/by-policy.h"
#include "sim/workload/workload-survivors.h"
#include "sim/workload/workload.h"

char *
sim_setting_open(const struct sim_setting *setting, const uint64_t *seed,
                 struct workload_input *input)
{
    char *error =
        setting->seeds.n
            ? seed_range_open(setting->what, *seed, &setting->network, input)
            : workload_open(setting->what, seed, &setting->network, input);

    if (!error && setting->survivors) {
        error = workload_keep_as(input->workload, setting->survivors);
    }
    if (!error && setting->offline) {
        workload_make_offline(input->workload);
    }
    return error;
}

struct sim_options
sim_setting_options(const struct sim_setting *setting,
                    const struct workload_input *input,
                    const struct policy *policy)
{
    struct sim_options options = sim_policy_options(policy);

    if (setting->n_levels) {
        options.order.n_levels = setting->n_levels;
    } else if (!input->levels) {
        options.service = SIM_SERVICE_EXACT;
        options.order.n_levels = INT_MAX;
    }
    if (input->levels && !setting->ideal) {
        sim_options_like_lab(&options, input->seed);
    }
    return options;
}

void
sim_setting_report(const struct workload *w, const struct sim_result *result,
                   struct report_policy *rp)
{
    for (size_t i = 0; i < w->n_cojobs; i++) {
        report_search_begin(rp, w->cojobs[i].name, w->cojobs[i].arrival);
    }
    for (size_t i = 0; i < result->n_stages; i++) {
        const struct sim_stage *stage = &result->stages[i];
        const struct workload_cojob *cojob = &w->cojobs[stage->cojob];

        report_stage_begin(rp, cojob->name, stage->rung, stage->begin,
                           cojob->rungs[stage->rung].n_jobs);
        rp->stages[rp->n_stages - 1].end = stage->end;
        if (stage->rung == cojob->n_rungs - 1) {
            report_search_end(rp, cojob->name, stage->end, NULL);
        }
    }
}
