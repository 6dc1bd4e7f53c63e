/* SPDX-License-Identifier: Apache-2.0 */

/* The time until a loss depends on the number of iterations and on their
 * duration.  A comparison runs the real programs over loopback, one scheme
 * after the other, with emulated speeds of workers, and records the loss of
 * rank 0 against time.  The specification is an object with
 *
 *    schemes         array of what '--sync' takes, and of schemes without a
 *                    server, such as "adpsgd" or "prague,group=2"; required
 *    workers         default 8
 *    servers         default 1
 *    profile         file of a speed profile, from the specification's folder
 *    arguments       array of strings, the workers' options
 *    target_loss     validation loss at which a scheme ends
 *    iterations      or after this number of iterations; default 1000
 *    limit_s         or after this number of seconds; default 60 */

#include "trainer/compare/compare.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/directory.h"
#include "base/interrupt.h"
#include "base/json-check.h"
#include "base/memory.h"
#include "base/options.h"
#include "reporting/report.h"
#include "trainer/process/options.h"
#include "trainer/schemes/sync.h"
#include "trainer/search/launch.h"
#include "trainer/search/team.h"

#define MAX_SCHEMES 32
#define MAX_ARGUMENTS 40

struct spec {
    const char *name; /* Name of the file. */
    char **schemes, **arguments;
    size_t n_schemes, n_arguments;
    int64_t n_workers, n_servers;
    char *profile;      /* NULL if none. */
    double target_loss; /* NAN if none. */
    int64_t iterations;
    double limit_s;
};

static char **
read_strings(const struct json_at *array)
{
    char **strings = allocate(json_n(array) + 1, sizeof *strings);

    for (size_t i = 0; i < json_n(array); i++) {
        strings[i] = json_at_string(json_element(array, i));
    }
    return strings;
}

/* Returns the path of 'file' relative to the folder of 'name'. */
static char *
beside(const char *name, char *file)
{
    const char *slash = strrchr(name, '/');
    char *path;

    if (!file || *file == '/' || !slash) {
        return file;
    }
    path = message("%.*s/%s", (int) (slash - name), name, file);
    free(file);
    return path;
}

static void
check_schemes(const struct json_at *top, const struct spec *spec)
{
    for (size_t i = 0; i < spec->n_schemes; i++) {
        struct sync_spec sync;
        char *error = sync_spec_read(spec->schemes[i], &sync);

        error = error ? error : sync_spec_check(&sync, spec->n_workers);
        if (error) {
            json_fail(top, "schemes", "%s", error);
            free(error);
        }
    }
}

static void
read_spec(const struct json_at *top, struct spec *spec)
{
    const struct json_at *schemes = json_array(top, "schemes", 1, MAX_SCHEMES);
    const struct json_at *arguments =
        json_array_or_null(top, "arguments", 0, MAX_ARGUMENTS);

    json_ignore(top, "description");
    spec->schemes = read_strings(schemes);
    spec->n_schemes = json_n(schemes);
    spec->arguments = read_strings(arguments);
    spec->n_arguments = json_n(arguments);
    spec->n_workers = json_integer_or(top, "workers", 1, TEAM_MAX_WORKERS, 8);
    spec->n_servers = json_integer_or(top, "servers", 1, TEAM_MAX_SERVERS, 1);
    spec->profile = beside(spec->name, json_string_or(top, "profile", NULL));
    spec->target_loss = json_number_or(top, "target_loss", -1e9, 1e9, NAN);
    spec->iterations = json_integer_or(top, "iterations", 1, 1000000000, 1000);
    spec->limit_s = json_number_or(top, "limit_s", 0.1, 86400, 60);
}

static char *
read_file(const char *file, struct spec *spec)
{
    char *text, *error = json_read_file(file, &text);
    struct json_check *jc;

    if (error) {
        return error;
    }
    jc = json_check_open(file, text);
    spec->name = file;
    read_spec(json_check_top(jc), spec);
    if (json_ok(jc)) {
        check_schemes(json_check_top(jc), spec);
    }
    free(text);
    return json_check_close(jc);
}

static void
spec_uninit(struct spec *spec)
{
    free_strings(spec->schemes, spec->n_schemes);
    free_strings(spec->arguments, spec->n_arguments);
    free(spec->profile);
}

/* The training under one scheme. */
struct run {
    const struct spec *spec;
    struct report_policy *curve;
    bool reached; /* The last point has reached the target. */
    double began; /* Monotonic seconds, NAN before the begin. */
};

/* Returns the last evaluation under a scheme, or an empty one. */
static struct report_point
last_point(const struct report_policy *curve)
{
    const struct report_job *job = curve->jobs;

    return curve->n_jobs && job->n_points
               ? job->points[job->n_points - 1]
               : (struct report_point){ .time = NAN,
                                        .loss = NAN,
                                        .accuracy = NAN };
}

/* Stores an evaluation of rank 0. */
static void
add_point(void *run_, int rank, const cJSON *event)
{
    struct run *run = run_;
    double loss = team_number(event, "loss");

    if (rank
        || strcmp(cJSON_GetObjectItem(event, "event")->valuestring, "progress")
        || !isfinite(loss) || loss == last_point(run->curve).loss
        || isnan(run->began) || run->reached) {
        return;
    }
    report_progress(run->curve, run->spec->name, "rank 0",
                    clock_monotonic_s() - run->began,
                    team_number(event, "iteration"), loss,
                    team_number(event, "accuracy"));
    run->reached = loss <= run->spec->target_loss;
}

/* Trains until the target, the last iteration, or the limit. */
static char *
train(struct run *run, struct team *team)
{
    const struct spec *spec = run->spec;
    char *error = NULL;

    run->began = clock_monotonic_s();
    team_until(team, spec->iterations);
    while (!error && !run->reached && team_paused(team) < spec->iterations
           && clock_monotonic_s() - run->began < spec->limit_s
           && !interrupt_caught()) {
        error = team_run(team, 0.1);
    }
    return error ? error : team_end(team);
}

static bool
is_stopped(void *run)
{
    return interrupt_caught();
}

/* Trains under one scheme. */
static char *
train_scheme(const struct spec *spec, const char *scheme,
             struct report_policy *curve)
{
    const char *const servers[] = { "--sync", scheme, NULL };
    struct words workers = { .n = 0 };
    struct sync_spec sync;
    struct run run = { .spec = spec, .curve = curve, .began = NAN };
    struct team_config config = {
        .n_workers = spec->n_workers,
        .server_arguments = servers,
        .worker_arguments = (const char *const *) workers.words,
        .report = add_point,
        .reads_errors = true,
        .stopped = is_stopped,
        .aux = &run,
    };
    struct team *team;
    char *error;

    sync_spec_read(scheme, &sync); /* It has been checked. */
    if (sync.serverless) {
        sync_spec_peer_options(&sync, words_add_option, &workers);
    } else {
        config.n_servers = spec->n_servers;
    }
    if (spec->profile) {
        words_add(&workers, message("--speed-profile=%s", spec->profile));
    }
    for (size_t i = 0; i < spec->n_arguments; i++) {
        words_add(&workers, duplicate(spec->arguments[i]));
    }
    team = team_create(&config);
    team_start(team);
    error = team_await(team);
    error = error ? error : train(&run, team);
    team_destroy(team);
    words_uninit(&workers);
    if (error) {
        char *why = error;

        error = message("%s: %s", scheme, why);
        free(why);
    }
    return error;
}

/* Adds a policy for each scheme, in which rank 0 has a job of the
 * specification's name. */
static char *
run_all(const struct spec *spec, struct report *report)
{
    char *error = NULL;

    for (size_t i = 0; i < spec->n_schemes && !error && !interrupt_caught();
         i++) {
        const char *scheme = spec->schemes[i];
        struct report_policy *curve = report_add_policy(report, scheme);

        fprintf(stderr, "%s\n", scheme);
        report_stage_begin(curve, spec->name, 0, 0, 1);
        error = train_scheme(spec, scheme, curve);
        if (interrupt_caught()) {
            report_set(&curve->failure, "interrupted");
        } else {
            report_stage_end(curve, spec->name, 0, last_point(curve).time);
        }
    }
    report_finish(report);
    return error;
}

/* Returns the number of schemes that were not interrupted, which are the first
 * ones. */
static size_t
n_complete(const struct report *report)
{
    size_t n = 0;

    while (n < report->n_policies && !report->policies[n]->failure) {
        n++;
    }
    return n;
}

static double
iteration_s(struct report_point last)
{
    return last.iteration ? last.time / last.iteration : NAN;
}

static void
print_table(const struct spec *spec, const struct report *report)
{
    printf("%-36s %10s %10s %12s %8s %8s\n", "scheme", "seconds",
           "iterations", "s/iteration", "loss", "accuracy");
    for (size_t i = 0; i < n_complete(report); i++) {
        struct report_point last = last_point(report->policies[i]);

        printf("%-36s %9.2f%c %10lld %12.4f %8.4f %8.4f\n", spec->schemes[i],
               last.time, last.loss > spec->target_loss ? '*' : ' ',
               last.iteration, iteration_s(last), last.loss, last.accuracy);
    }
    if (isfinite(spec->target_loss)) {
        printf("Seconds to a loss of %g; * ended before.\n",
               spec->target_loss);
    }
}

static cJSON *
points_json(const struct report_policy *curve)
{
    cJSON *array = cJSON_CreateArray();

    for (size_t i = 0; curve->n_jobs && i < curve->jobs->n_points; i++) {
        const struct report_point *p = &curve->jobs->points[i];
        double row[] = { p->time, p->iteration, p->loss, p->accuracy };

        cJSON_AddItemToArray(array, cJSON_CreateDoubleArray(row, 4));
    }
    return array;
}

static void
print_json(const struct spec *spec, const struct report *report)
{
    cJSON *top = cJSON_CreateObject();
    cJSON *schemes = cJSON_AddArrayToObject(top, "schemes");
    char *text;

    cJSON_AddNumberToObject(top, "target_loss", spec->target_loss);
    for (size_t i = 0; i < n_complete(report); i++) {
        const struct report_policy *curve = report->policies[i];
        struct report_point last = last_point(curve);
        cJSON *scheme = cJSON_CreateObject();

        cJSON_AddStringToObject(scheme, "scheme", spec->schemes[i]);
        cJSON_AddNumberToObject(scheme, "seconds", last.time);
        cJSON_AddBoolToObject(scheme, "reached",
                              last.loss <= spec->target_loss);
        cJSON_AddNumberToObject(scheme, "iterations", last.iteration);
        cJSON_AddNumberToObject(scheme, "iteration_s", iteration_s(last));
        cJSON_AddNumberToObject(scheme, "loss", last.loss);
        cJSON_AddNumberToObject(scheme, "accuracy", last.accuracy);
        cJSON_AddItemToObject(scheme, "points", points_json(curve));
        cJSON_AddItemToArray(schemes, scheme);
    }
    text = cJSON_PrintUnformatted(top);
    puts(text);
    free(text);
    cJSON_Delete(top);
}

struct command {
    const char *html;
    bool json;
};

static const struct option_row rows[] = {
    { "format", OPTION_CHOICE, OPTION_AT(struct command, json),
      .value = "text|json", .deflt = "text",
      .help = "a table, or one object with all points" },
    { "html", OPTION_TEXT, OPTION_AT(struct command, html), .value = "FILE",
      .help = "write a page with charts of loss against time" },
    { .name = NULL },
};

static const struct option_table table = {
    .name = "stagecoach-trainer compare", .rows = rows,
    .usage = "usage: stagecoach-trainer compare SPEC.json [OPTION...]\n\n"
             "Train under several schemes on this machine, one after the "
             "other.\n",
    .operand = "SPEC.json", .min_operands = 1, .max_operands = 1,
};

int
compare_command(int argc, char *argv[])
{
    struct command c = { .html = NULL };
    struct spec spec = { .name = NULL };
    struct report *report;
    int file, status = option_table_command(&table, argc, argv, &c, &file);
    size_t n;
    char *error;

    if (status >= 0) {
        return status;
    }
    report = report_create(argv[file], "compare");
    error = output_file_check(c.html);
    error = error ? error : read_file(argv[file], &spec);
    if (!error) {
        interrupt_catch();
        error = run_all(&spec, report);
    }
    n = error ? 0 : n_complete(report);
    if (n && c.html) {
        error = report_write_html(report, c.html);
    }
    if (!error && n) {
        (c.json ? print_json : print_table)(&spec, report);
    }
    status = error                ? EXIT_FAILURE
             : n < spec.n_schemes ? interrupt_say(interrupt_caught(), n,
                                                  spec.n_schemes, "scheme")
                                  : EXIT_SUCCESS;
    if (error) {
        fprintf(stderr, "%s: %s\n", table.name, error);
        free(error);
    }
    report_destroy(report);
    spec_uninit(&spec);
    return status;
}
