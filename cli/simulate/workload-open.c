/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/simulate/workload-open.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gzip-file.h"
#include "base/json-check.h"
#include "base/memory.h"
#include "order/problem/memory.h"
#include "scenario/scenario.h"
#include "sim/fabric/line-reader.h"
#include "sim/workload/job-trace.h"
#include "sim/workload/settings.h"
#include "sim/workload/workload-coflow.h"
#include "sim/workload/workload-generate.h"
#include "sim/workload/workload-jobs.h"
#include "sim/workload/workload-recording.h"
#include "sim/workload/workload-scenario.h"
#include "sim/workload/workload-training.h"
#include "sim/workload/workload.h"

#define GENERATE "generate:"
#define MAX_SEEDS 10000

static bool
has_member(const char *text, const char *member)
{
    struct json_check *jc = json_check_open("", text);
    bool has = json_has(json_check_top(jc), member);

    free(json_check_close(jc));
    return has;
}

static char *
open_lab_scenario(const char *file, const char *text, const uint64_t *seed,
                  struct workload_input *input)
{
    int64_t value = seed ? *seed : 0;
    struct scenario *scenario;
    char *error = scenario_from_string(file, text, seed ? &value : NULL,
                                       &scenario);

    if (!error && scenario->n_cojobs) {
        error =
            message("%s: /cojobs: commands cannot be simulated; expected only "
                    "searches",
                    file);
    }
    if (!error) {
        input->workload = workload_training_create(scenario);
        input->levels = true;
        input->seeded = seed;
        input->seed = scenario->seed;
        input->n_policies = scenario->n_policies;
        input->policies = scenario->policies;
        scenario->policies = NULL;
        scenario->n_policies = 0;
    }
    scenario_destroy(scenario);
    return error;
}

static char *
open_json(const char *file, const uint64_t *seed, struct workload_input *input)
{
    char *text;
    char *error = json_read_file(file, &text);

    if (!error) {
        if (has_member(text, "cojobs") && !has_member(text, "policies")) {
            error = workload_scenario_from_string(file, text,
                                                  &input->workload);
        } else if (has_member(text, "stages")) {
            error = workload_recording_from_string(file, text,
                                                   &input->workload);
        } else {
            error = open_lab_scenario(file, text, seed, input);
        }
        free(text);
    }
    return error;
}

static char *
open_generated(const char *text, const uint64_t *seed,
               struct workload_input *input)
{
    struct generate_options options;
    char *error = generate_options_parse(text, &options);

    if (!error && seed) {
        char *other = message("%"PRIu64"%s", *seed,
                              text + strcspn(text, ","));

        error = generate_options_parse(other, &options);
        free(other);
    }
    if (!error) {
        input->workload = workload_generate(&options);
        input->seeded = true;
    }
    return error;
}

/* Opens the trace of jobs 'file'. */
static char *
open_jobs(const char *file, FILE *stream, const char *settings,
          const uint64_t *seed, struct workload_input *input)
{
    struct jobs_options options = JOBS_OPTIONS_INIT;
    char *error = jobs_options_parse(settings, &options);

    options.seed = seed ? *seed : options.seed;
    input->seeded = true;
    if (!error) {
        error = workload_jobs_read(file, stream, &options, &input->workload);
    }
    return error;
}

/* Returns the length of the file's name in 'what': up to the first comma that
 * precedes a setting. */
static size_t
file_length(const char *what)
{
    for (const char *c = what; *c; c++) {
        size_t n = strspn(c + 1, "abcdefghijklmnopqrstuvwxyz");

        if (*c == ',' && n && c[1 + n] == '=') {
            return c - what;
        }
    }
    return strlen(what);
}

/* Opens 'file' by its format.  'line' is its first line that is not blank;
 * 'stream' is at its begin. */
static char *
open_by_format(const char *file, const char *line, FILE *stream,
               const uint64_t *seed, struct workload_input *input)
{
    if (*line == '{') {
        return open_json(file, seed, input);
    } else if (job_trace_begins(line)) {
        return open_jobs(file, stream, "", seed, input);
    } else if (isdigit((unsigned char) *line)) {
        return workload_coflow_read(file, stream, 0, &input->workload);
    }
    return message("%s: no known format; expected JSON, coflow-benchmark's "
                   "\"PORTS COFLOWS\", " JOB_TRACE_FORMATS,
                   file);
}

/* Opens "FILE" or "FILE,NAME=VALUE...".  The first 'n' characters are the
 * name. */
static char *
open_file(const char *what, size_t n, const uint64_t *seed,
          struct workload_input *input)
{
    char *file = order_must(strndup(what, n));
    struct line_reader lr = { .name = file };
    FILE *stream = gzip_file_open(file);
    char *error = stream ? NULL : message("%s: %s", file, strerror(errno));

    if (!error) {
        const char *line = "";

        if (line_reader_next(&lr, stream)) {
            line = lr.at + strspn(lr.at, " \t");
        }
        rewind(stream);
        error = (lr.error  ? lr.error
                 : what[n] ? open_jobs(file, stream, what + n + 1, seed, input)
                           : open_by_format(file, line, stream, seed, input));
        line_reader_uninit(&lr);
        fclose(stream);
    }
    free(file);
    return error;
}

char *
workload_open(const char *what, const uint64_t *seed,
              const struct workload_network *network,
              struct workload_input *input)
{
    char *error;

    *input = (struct workload_input) { .workload = NULL };
    error = (!strncmp(what, GENERATE, strlen(GENERATE))
                 ? open_generated(what + strlen(GENERATE), seed, input)
                 : open_file(what, file_length(what), seed, input));
    return error ? error : workload_set_network(input->workload, network);
}

void
workload_input_uninit(struct workload_input *input)
{
    free_strings(input->policies, input->n_policies);
    workload_destroy(input->workload);
}

char *
seed_range_parse(const char *text, void *range_)
{
    struct seed_range *range = range_;
    uint64_t first = 0, last = 0;
    int n = 0;

    if (text[strspn(text, "0123456789-")]
        || sscanf(text, "%9" SCNu64 "-%9" SCNu64 "%n", &first, &last, &n) != 2
        || text[n] || first > last || last - first >= MAX_SEEDS) {
        return message(
            "\"%s\" is not a range of seeds; expected FIRST-LAST such as "
            "\"1-60\" with at most %d seeds",
            text, MAX_SEEDS);
    }
    *range = (struct seed_range){ .first = first, .n = last - first + 1 };
    return NULL;
}

char *
seed_range_open(const char *what, uint64_t seed,
                const struct workload_network *network,
                struct workload_input *input)
{
    char *error = workload_open(what, &seed, network, input);

    if (!error && !input->seeded) {
        error = message("%s: nothing in it is random, --seeds requires "
                        "\"generate:SEED\", a trace of jobs or a scenario "
                        "with a seed",
                        what);
    }
    return error;
}

static char *
open_leaf_spine(const char *text, struct workload *w)
{
    int leaf = 16;
    double over = 1;
    const struct setting settings[] = {
        { .name = "leaf", .integer = &leaf, .min = 1, .max = 10000 },
        { .name = "over", .number = &over, .min = 0.1, .max = 1000 },
    };
    char *error = settings_read("--fabric", text, settings, 2);

    if (!error) {
        workload_set_fabric(w, sim_fabric_create_leaf_spine(
            w->fabric->n_hosts, leaf, w->fabric->capacity[0], over));
    }
    return error;
}

static char *
open_topology(const char *file, const char *text, struct workload *w)
{
    double over = 1;
    const struct setting settings[] = {
        { .name = "over", .number = &over, .min = 0.1, .max = 1000 },
    };
    struct sim_fabric *fabric;
    char *error = settings_read("--fabric", text, settings, 1);

    if (!error) {
        error = sim_fabric_from_csv(file, w->fabric->capacity[0], over,
                                    &fabric);
    }
    if (!error && fabric->n_hosts < w->fabric->n_hosts) {
        error = message("%s: %d hosts, at least the workload's %d are needed",
                        file, fabric->n_hosts, w->fabric->n_hosts);
        sim_fabric_destroy(fabric);
    } else if (!error) {
        workload_set_fabric(w, fabric);
    }
    return error;
}

static bool
is_csv(const char *name)
{
    size_t n = strlen(name);

    return n > 4 && !strcmp(name + n - 4, ".csv");
}

static char *
open_fabric(const char *text, struct workload *w)
{
    size_t n = strcspn(text, ",");
    const char *rest = text + n + (text[n] == ',');
    char *name = order_must(strndup(text, n));
    char *error = NULL;

    if (!strcmp(text, "switch")) {
        workload_set_fabric(w, sim_fabric_create(w->fabric->n_hosts,
                                                 w->fabric->capacity[0]));
    } else if (!strcmp(name, "leaf-spine")) {
        error = open_leaf_spine(rest, w);
    } else if (is_csv(name)) {
        error = open_topology(name, rest, w);
    } else {
        error = message("--fabric: \"%s\" is not one of \"switch\", "
                        "\"leaf-spine,leaf=N,over=X\", \"FILE.csv,over=X\"",
                        line_reader_shown(name));
    }
    free(name);
    return error;
}

char *
workload_set_network(struct workload *w,
                     const struct workload_network *network)
{
    if (network->rate_bps) {
        workload_set_fabric(
            w, sim_fabric_scale(w->fabric, network->rate_bps / 8.0
                                               / w->fabric->capacity[0]));
    }
    return network->fabric ? open_fabric(network->fabric, w) : NULL;
}
