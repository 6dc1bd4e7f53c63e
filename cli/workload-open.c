/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/workload-open.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lab/scenario.h"
#include "sim/workload-coflow.h"
#include "sim/workload-generate.h"
#include "sim/workload-training.h"

#define GENERATE "generate:"

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

static char *
open_generated(const char *text, struct workload **wp)
{
    struct generate_options options;
    char *error = generate_options_parse(text, &options);

    if (!error) {
        *wp = workload_generate(&options);
    }
    return error;
}

char *
workload_open(const char *file, struct workload **wp,
              struct scenario **scenariop)
{
    struct scenario *scenario = NULL;
    char *error;

    *wp = NULL;
    if (!strncmp(file, GENERATE, strlen(GENERATE))) {
        error = open_generated(file + strlen(GENERATE), wp);
    } else if (!is_json(file)) {
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
