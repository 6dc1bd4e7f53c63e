/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/workload-open.h"

#include <stdbool.h>
#include <stdio.h>

#include "lab/scenario.h"
#include "sim/workload-coflow.h"
#include "sim/workload-training.h"

/* Returns true if 'file' begins like JSON; no trace does. */
static bool
is_json(const char *file)
{
    FILE *stream = fopen(file, "r");
    char c = '\0';

    if (stream) {
        if (fscanf(stream, " %c", &c) != 1) {
            c = '\0';
        }
        fclose(stream);
    }
    return c == '{';
}

char *
workload_open(const char *file, struct workload **wp,
              struct scenario **scenariop)
{
    struct scenario *scenario = NULL;
    char *error;

    *wp = NULL;
    if (!is_json(file)) {
        error = workload_coflow_from_file(file, wp);
    } else {
        error = scenario_from_file(file, &scenario);
        if (!error) {
            *wp = workload_training_create(scenario);
        }
    }
    if (scenariop) {
        *scenariop = scenario;
    } else {
        scenario_destroy(scenario);
    }
    return error;
}
