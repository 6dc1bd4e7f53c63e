/* SPDX-License-Identifier: Apache-2.0 */

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/compare/compare.h"
#include "trainer/schemes/sync.h"
#include "trainer/train/team.h"

#define MAX_ARGV 64

/* The training under one scheme. */
struct run {
    const struct compare_spec *spec;
    struct compare_curve *curve;
    double began;               /* Monotonic seconds, NAN before the begin. */
};

static double
number(const cJSON *event, const char *name)
{
    const cJSON *value = cJSON_GetObjectItem(event, name);

    return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

/* Stores an evaluation of rank 0. */
static void
add_point(void *run_, int rank, const cJSON *event)
{
    const struct run *run = run_;
    struct compare_curve *curve = run->curve;
    struct compare_point point = {
        .seconds = clock_monotonic_s() - run->began,
        .iteration = number(event, "iteration"),
        .loss = number(event, "loss"), .accuracy = number(event, "accuracy"),
    };
    bool fresh = !curve->n_points
                 || point.loss != curve->points[curve->n_points - 1].loss;

    if (rank || strcmp(cJSON_GetObjectItem(event, "event")->valuestring,
                       "progress")
        || !isfinite(point.loss) || !fresh || isnan(run->began)
        || curve->reached) {
        return;
    }
    if (curve->n_points == curve->max_points) {
        curve->max_points = 2 * curve->max_points + 64;
        curve->points = reallocate(curve->points, curve->max_points,
                                   sizeof *curve->points);
    }
    curve->points[curve->n_points++] = point;
    curve->reached = point.loss <= run->spec->target_loss;
}

/* Trains until the target, the last iteration, or the limit. */
static char *
train(struct run *run, struct team *team)
{
    const struct compare_spec *spec = run->spec;
    char *until = message("until %lld\n", (long long) spec->iterations);
    char *error = NULL;

    run->began = clock_monotonic_s();
    team_say(team, until);
    free(until);
    while (!error && !run->curve->reached
           && team_paused(team) < spec->iterations
           && clock_monotonic_s() - run->began < spec->limit_s) {
        error = team_run(team, 0.1);
    }
    return error ? error : team_end(team);
}

/* Appends the options of a scheme without a server to a list. */
static void
add_option(void *argv_, const char *name, char *value)
{
    char **argv = argv_;

    while (*argv) {
        argv++;
    }
    argv[0] = duplicate(name);
    argv[1] = value;
}

/* Trains under one scheme. */
static char *
train_scheme(const struct compare_spec *spec, const char *program,
             const char *scheme, struct compare_curve *curve)
{
    const char *const servers[] = { "--sync", scheme, NULL };
    char *peers[MAX_ARGV] = { NULL };
    const char *workers[MAX_ARGV];
    struct sync_spec sync;
    struct run run = { .spec = spec, .curve = curve, .began = NAN };
    struct team_config config = {
        .program = program,
        .n_workers = spec->n_workers, .server_arguments = servers,
        .worker_arguments = workers, .report = add_point, .aux = &run,
    };
    struct team *team;
    char *error;
    int n = 0;

    sync_spec_read(scheme, &sync);      /* It has been checked. */
    if (sync.serverless) {
        sync_spec_peer_options(&sync, add_option, peers);
    } else {
        config.n_servers = spec->n_servers;
    }
    for (size_t i = 0; peers[i]; i++) {
        workers[n++] = peers[i];
    }
    if (spec->profile) {
        workers[n++] = "--speed-profile";
        workers[n++] = spec->profile;
    }
    for (size_t i = 0; i < spec->n_arguments; i++) {
        workers[n++] = spec->arguments[i];
    }
    workers[n] = NULL;
    error = team_start(&config, &team);
    error = error ? error : train(&run, team);
    team_destroy(team);
    for (size_t i = 0; peers[i]; i++) {
        free(peers[i]);
    }
    if (error) {
        char *why = error;

        error = message("%s: %s", scheme, why);
        free(why);
    }
    return error;
}

char *
compare_run(const struct compare_spec *spec, const char *program,
            struct compare_curve **curvesp)
{
    struct compare_curve *curves = allocate(spec->n_schemes, sizeof *curves);
    char *error = NULL;

    for (size_t i = 0; i < spec->n_schemes && !error; i++) {
        fprintf(stderr, "%s\n", spec->schemes[i]);
        error = train_scheme(spec, program, spec->schemes[i], &curves[i]);
    }
    if (error) {
        compare_curves_destroy(spec, curves);
        curves = NULL;
    }
    *curvesp = curves;
    return error;
}
