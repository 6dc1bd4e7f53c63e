/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the reader of lab scenarios with searches: it rejects the file with a
 * message of one line, or all trials are valid for their searches and the
 * simulator accepts the scenario. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "scenario/scenario.h"
#include "sim/workload/workload-training.h"
#include "sim/workload/workload.h"
#include "tests/fuzz/must.h"
#include "trainer/search/spec.h"

/* Maximum number of transfers of a workload; more are valid, but slow. */
#define MAX_TRANSFERS 100000

/* Returns the number of transfers of the search in the simulator. */
static size_t
check_search(const struct search_spec *spec)
{
    size_t n = 0;

    for (int i = 0; i < spec->n_trials; i++) {
        struct search_trial trial = search_spec_trial(spec, i);
        size_t n_parameters = search_model_n_parameters(&spec->model,
                                                        trial.width);

        must(trial.learning_rate >= 1e-9 && trial.learning_rate <= 1e3);
        must(trial.batch >= 1 && trial.width >= 1);
        must(n_parameters >= 1 && n_parameters <= SHAPE_MAX_PARAMETERS);
        n += 2 * trial.placement->n_workers * trial.placement->n_servers;
    }
    return n;
}

static void
check_scenario(const struct scenario *s)
{
    size_t n = 0;

    must(s->n_hosts >= 1 && s->n_hosts <= SCENARIO_MAX_HOSTS);
    must(s->rate_bps > 0 && s->n_policies && s->n_searches);
    for (size_t i = 0; i < s->n_searches; i++) {
        n += check_search(s->searches[i].spec);
    }
    if (n <= MAX_TRANSFERS) {
        workload_destroy(workload_training_create(s));
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size);
    struct scenario *scenario;
    char *error;

    error = scenario_from_string("f", text, NULL, &scenario);
    must(!error == !!scenario);
    if (scenario) {
        check_scenario(scenario);
    } else {
        must_be_message(error, "f:");
    }
    scenario_destroy(scenario);
    free(error);
    free(text);
    return 0;
}
