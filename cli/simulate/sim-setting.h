/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_SETTING_H
#define SIM_SETTING_H 1

/* The arguments of "stagecoach sim" that decide the results, which are the
 * same for one simulation and for many.
 *
 *    struct workload_input input;
 *    char *error = sim_setting_open(&setting, &seed, &input);
 *
 *    if (!error) {
 *        struct sim_options options = sim_setting_options(&setting, &input,
 *                                                         policy);
 *
 *        simulate_by_policy(input.workload, policy, &options, &result);
 *        sim_setting_report(input.workload, &result, rp);
 *    }
 *    workload_input_uninit(&input);
 *
 * Plain data that is only read: threads may share a setting. */

#include <stdbool.h>
#include <stdint.h>

#include "cli/simulate/workload-open.h"
#include "sim/run/simulate.h"

struct policy;
struct report_policy;

struct sim_setting {
    const char *what;                /* Workload argument. */
    struct workload_network network; /* Arguments of --fabric and --rate. */
    struct seed_range seeds;         /* Argument of --seeds. */
    const char *survivors;           /* Report of the lab, or NULL. */
    bool offline;                    /* Everything arrives at time 0. */
    bool ideal;                      /* A lab scenario without delays. */
    int n_levels;                    /* Number of strict levels, 0 for the
                                      * default. */
};

/* Opens the workload, with '*seed' unless 'seed' is NULL.  With --seeds, the
 * seed must change it.  Returns NULL or a malloc()'d message.  The caller must
 * call workload_input_uninit() in both cases. */
char *sim_setting_open(const struct sim_setting *, const uint64_t *seed,
                       struct workload_input *);

/* Returns the options by which 'policy' is simulated, without bounds and
 * callbacks. */
struct sim_options sim_setting_options(const struct sim_setting *,
                                       const struct workload_input *,
                                       const struct policy *policy);

/* Adds the searches and the stages of a simulation to a report. */
void sim_setting_report(const struct workload *, const struct sim_result *,
                        struct report_policy *);

#endif /* cli/simulate/sim-setting.h */
