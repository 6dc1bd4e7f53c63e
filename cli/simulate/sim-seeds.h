/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_SEEDS_H
#define SIM_SEEDS_H 1

/* Simulates a random workload with each seed of a range, on all processors.
 *
 * Single seeds are far apart, so what a policy is worth is the mean over many
 * of them.  Each seed under each policy is one task of a thread.
 * The results are sorted by seed and policy, whichever thread had them.
 *
 *    struct sim_seeds args = {
 *        .setting = &setting, .policies = policies, .n_policies = 2,
 *        .csv = "stages.csv",
 *    };
 *    struct placements *results;
 *    size_t n_done;
 *    char *error = sim_seeds_run(&args, &results, &n_done);
 *
 *    if (!error && n_done) {
 *        placements_put_summary(results, stdout);
 *    }
 *    placements_destroy(results);
 *
 * After an interrupt (base/interrupt.h) there are the results of simulations
 * that had ended.  The threads end before sim_seeds_run() returns. */

#include <stddef.h>

struct placements;
struct policy;
struct sim_setting;

struct sim_seeds {
    const struct sim_setting *setting; /* With a range of seeds. */
    const struct policy *const *policies;
    size_t n_policies;
    const char *csv;  /* File of a line for each stage, or NULL. */
    size_t n_threads; /* 0 for one on each processor. */
};

/* Stores the results, which the caller must destroy, or NULL, and the number
 * of seeds that were simulated under all policies.  Returns NULL or a
 * malloc()'d message. */
char *sim_seeds_run(const struct sim_seeds *, struct placements **,
                    size_t *n_done);

#endif /* cli/simulate/sim-seeds.h */
