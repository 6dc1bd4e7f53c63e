/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/compare/compare.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/directory.h"
#include "base/interrupt.h"
#include "base/json-check.h"
#include "base/memory.h"
#include "base/options.h"
#include "trainer/process/options.h"
#include "trainer/schemes/sync.h"
#include "trainer/train/team.h"

#define MAX_SCHEMES 32
#define MAX_ARGUMENTS 40
#define MAX_ARGV 64

/* The plot. */
#define WIDTH 760
#define HEIGHT 420
#define LEFT 60
#define RIGHT 200 /* Space for the names. */
#define TOP 20
#define BOTTOM 50
#define N_TICKS 5

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
check_schemes(const struct json_at *top, const struct compare_spec *spec)
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
read_spec(const struct json_at *top, struct compare_spec *spec)
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

char *
compare_spec_from_string(const char *name, const char *text,
                         struct compare_spec **specp)
{
    struct compare_spec *spec = allocate(1, sizeof *spec);
    struct json_check *jc = json_check_open(name, text);
    char *error;

    spec->name = duplicate(name);
    read_spec(json_check_top(jc), spec);
    if (json_ok(jc)) {
        check_schemes(json_check_top(jc), spec);
    }
    error = json_check_close(jc);
    if (error) {
        compare_spec_destroy(spec);
        spec = NULL;
    }
    *specp = spec;
    return error;
}

char *
compare_spec_from_file(const char *file, struct compare_spec **specp)
{
    char *text, *error;

    *specp = NULL;
    error = json_read_file(file, &text);
    if (!error) {
        error = compare_spec_from_string(file, text, specp);
        free(text);
    }
    return error;
}

void
compare_spec_destroy(struct compare_spec *spec)
{
    if (spec) {
        free(spec->name);
        free_strings(spec->schemes, spec->n_schemes);
        free_strings(spec->arguments, spec->n_arguments);
        free(spec->profile);
        free(spec);
    }
}

/* The training under one scheme. */
struct run {
    const struct compare_spec *spec;
    struct compare_curve *curve;
    double began; /* Monotonic seconds, NAN before the begin. */
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
        .loss = number(event, "loss"),
        .accuracy = number(event, "accuracy"),
    };
    bool fresh = !curve->n_points
                 || point.loss != curve->points[curve->n_points - 1].loss;

    if (rank
        || strcmp(cJSON_GetObjectItem(event, "event")->valuestring, "progress")
        || !isfinite(point.loss) || !fresh || isnan(run->began)
        || curve->reached) {
        return;
    }
    curve->points = grow(curve->points, curve->n_points, &curve->max_points,
                         sizeof *curve->points);
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
        .n_workers = spec->n_workers,
        .server_arguments = servers,
        .worker_arguments = workers,
        .report = add_point,
        .stopped = is_stopped,
        .aux = &run,
    };
    struct team *team;
    char *error;
    int n = 0;

    sync_spec_read(scheme, &sync); /* It has been checked. */
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
compare_run(struct compare_spec *spec, const char *program,
            struct compare_curve **curvesp)
{
    struct compare_curve *curves = allocate(spec->n_schemes, sizeof *curves);
    char *error = NULL;
    size_t n = 0;

    while (n < spec->n_schemes && !error && !interrupt_caught()) {
        fprintf(stderr, "%s\n", spec->schemes[n]);
        error = train_scheme(spec, program, spec->schemes[n], &curves[n]);
        n += !interrupt_caught();
    }
    while (!error && spec->n_schemes > n) {
        free(curves[--spec->n_schemes].points);
        free(spec->schemes[spec->n_schemes]);
    }
    if (error) {
        compare_curves_destroy(spec, curves);
        curves = NULL;
    }
    *curvesp = curves;
    return error;
}

static const char *const colours[] = {
    "#1b6ca8", "#d1495b", "#2e933c", "#8e5aa8",
    "#e08e0b", "#4d4d4d", "#00a6a6", "#a0522d",
};

struct plot {
    FILE *file;
    bool accuracy; /* Instead of the loss. */
    double max_s, least, most;
};

static double
value_of(const struct plot *p, const struct compare_point *point)
{
    return p->accuracy ? point->accuracy : point->loss;
}

static double
x_of(const struct plot *p, double seconds)
{
    return LEFT + seconds / p->max_s * (WIDTH - LEFT - RIGHT);
}

static double
y_of(const struct plot *p, double value)
{
    return HEIGHT - BOTTOM
           - (value - p->least) / (p->most - p->least)
                 * (HEIGHT - TOP - BOTTOM);
}

static void
find_ranges(struct plot *p, const struct compare_spec *spec,
            const struct compare_curve *curves)
{
    p->max_s = 1e-3;
    p->least = INFINITY;
    p->most = -INFINITY;
    for (size_t i = 0; i < spec->n_schemes; i++) {
        for (size_t j = 0; j < curves[i].n_points; j++) {
            const struct compare_point *point = &curves[i].points[j];

            p->max_s = fmax(p->max_s, point->seconds);
            p->least = fmin(p->least, value_of(p, point));
            p->most = fmax(p->most, value_of(p, point));
        }
    }
    if (!(p->most > p->least)) {
        p->least = 0;
        p->most = 1;
    }
}

static void
draw_axes(const struct plot *p)
{
    for (int i = 0; i <= N_TICKS; i++) {
        double s = p->max_s * i / N_TICKS;
        double value = p->least + (p->most - p->least) * i / N_TICKS;

        fprintf(p->file,
                "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>\n"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.3g"
                "</text>\n",
                LEFT, y_of(p, value), WIDTH - RIGHT, LEFT - 6,
                y_of(p, value) + 4, value, x_of(p, s), HEIGHT - BOTTOM + 18,
                s);
    }
    fprintf(p->file,
            "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">seconds"
            "</text>\n<text x=\"14\" y=\"%d\">%s</text>\n",
            (WIDTH - RIGHT + LEFT) / 2, HEIGHT - 12, TOP - 6,
            p->accuracy ? "accuracy" : "loss");
}

static void
draw_curve(const struct plot *p, const struct compare_curve *curve,
           const char *scheme, size_t index)
{
    const char *colour = colours[index % (sizeof colours / sizeof colours[0])];
    int y = TOP + 14 + 18 * index;

    fprintf(p->file,
            "<polyline fill=\"none\" stroke=\"%s\" "
            "stroke-width=\"1.6\" points=\"",
            colour);
    for (size_t i = 0; i < curve->n_points; i++) {
        fprintf(p->file, "%.1f,%.1f ", x_of(p, curve->points[i].seconds),
                y_of(p, value_of(p, &curve->points[i])));
    }
    fprintf(p->file, "\"/>\n<text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n",
            WIDTH - RIGHT + 12, y, colour, scheme);
}

/* Names of schemes contain no special characters of XML. */
char *
compare_write_svg(const struct compare_spec *spec,
                  const struct compare_curve *curves, bool accuracy,
                  const char *file)
{
    struct plot p = { .file = fopen(file, "w"), .accuracy = accuracy };

    if (!p.file) {
        return message("%s: %s", file, strerror(errno));
    }
    find_ranges(&p, spec, curves);
    fprintf(p.file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n<rect width=\"%d\" height=\"%d\" "
            "fill=\"#fff\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    draw_axes(&p);
    for (size_t i = 0; i < spec->n_schemes; i++) {
        draw_curve(&p, &curves[i], spec->schemes[i], i);
    }
    fputs("</svg>\n", p.file);
    return fclose(p.file) ? message("%s: %s", file, strerror(errno)) : NULL;
}

void
compare_curves_destroy(const struct compare_spec *spec,
                       struct compare_curve *curves)
{
    for (size_t i = 0; curves && i < spec->n_schemes; i++) {
        free(curves[i].points);
    }
    free(curves);
}

/* Returns the last point, or an empty one. */
static struct compare_point
last_point(const struct compare_curve *curve)
{
    struct compare_point none = {
        .seconds = NAN, .loss = NAN, .accuracy = NAN,
    };

    return curve->n_points ? curve->points[curve->n_points - 1] : none;
}

static double
iteration_s(const struct compare_curve *curve)
{
    struct compare_point last = last_point(curve);

    return last.iteration ? last.seconds / last.iteration : NAN;
}

static void
print_table(const struct compare_spec *spec,
            const struct compare_curve *curves)
{
    printf("%-36s %10s %10s %12s %8s %8s\n", "scheme", "seconds",
           "iterations", "s/iteration", "loss", "accuracy");
    for (size_t i = 0; i < spec->n_schemes; i++) {
        const struct compare_curve *curve = &curves[i];
        struct compare_point last = last_point(curve);
        bool missed = isfinite(spec->target_loss) && !curve->reached;

        printf("%-36s %9.2f%c %10llu %12.4f %8.4f %8.4f\n", spec->schemes[i],
               last.seconds, missed ? '*' : ' ',
               (unsigned long long) last.iteration,
               iteration_s(curve), last.loss, last.accuracy);
    }
    if (isfinite(spec->target_loss)) {
        printf("Seconds to a loss of %g; * ended before.\n",
               spec->target_loss);
    }
}

static cJSON *
points_json(const struct compare_curve *curve)
{
    cJSON *array = cJSON_CreateArray();

    for (size_t i = 0; i < curve->n_points; i++) {
        const struct compare_point *p = &curve->points[i];
        double row[] = { p->seconds, p->iteration, p->loss, p->accuracy };

        cJSON_AddItemToArray(array, cJSON_CreateDoubleArray(row, 4));
    }
    return array;
}

static void
print_json(const struct compare_spec *spec, const struct compare_curve *curves)
{
    cJSON *top = cJSON_CreateObject();
    cJSON *schemes = cJSON_AddArrayToObject(top, "schemes");
    char *text;

    cJSON_AddNumberToObject(top, "target_loss", spec->target_loss);
    for (size_t i = 0; i < spec->n_schemes; i++) {
        const struct compare_curve *curve = &curves[i];
        struct compare_point last = last_point(curve);
        cJSON *scheme = cJSON_CreateObject();

        cJSON_AddStringToObject(scheme, "scheme", spec->schemes[i]);
        cJSON_AddNumberToObject(scheme, "seconds", last.seconds);
        cJSON_AddBoolToObject(scheme, "reached", curve->reached);
        cJSON_AddNumberToObject(scheme, "iterations", last.iteration);
        cJSON_AddNumberToObject(scheme, "iteration_s", iteration_s(curve));
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
    const char *svg;
    bool json, accuracy;
};

static const struct option_row rows[] = {
    { "format", OPTION_CHOICE, OPTION_AT(struct command, json),
      .value = "text|json", .deflt = "text",
      .help = "a table, or one object with all points" },
    { "svg", OPTION_TEXT, OPTION_AT(struct command, svg), .value = "FILE",
      .help = "write a plot of loss against time" },
    { "plot", OPTION_CHOICE, OPTION_AT(struct command, accuracy),
      .value = "loss|accuracy", .deflt = "loss",
      .help = "what --svg plots, of the validation samples" },
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
    struct command c = { .svg = NULL };
    struct compare_spec *spec = NULL;
    struct compare_curve *curves = NULL;
    int file, status = option_table_command(&table, argc, argv, &c, &file);
    size_t n = 0, n_all = 0;
    char *error;

    if (status >= 0) {
        return status;
    }
    error = output_file_check(c.svg);
    error = error ? error : compare_spec_from_file(argv[file], &spec);
    if (!error) {
        n_all = spec->n_schemes;
        interrupt_catch();
        error = compare_run(spec, NULL, &curves);
        n = spec->n_schemes;
    }
    if (!error && n && c.svg) {
        error = compare_write_svg(spec, curves, c.accuracy, c.svg);
    }
    if (!error && n) {
        (c.json ? print_json : print_table)(spec, curves);
    } else if (error) {
        fprintf(stderr, "%s: %s\n", table.name, error);
    }
    if (spec) {
        compare_curves_destroy(spec, curves);
    }
    compare_spec_destroy(spec);
    status = error ? EXIT_FAILURE
             : n < n_all
                 ? interrupt_say(interrupt_caught(), n, n_all, "scheme")
                 : EXIT_SUCCESS;
    free(error);
    return status;
}
