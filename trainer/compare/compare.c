/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/compare/compare.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/options.h"

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
    char *error;

    if (status >= 0) {
        return status;
    }
    error = compare_spec_from_file(argv[file], &spec);
    error = error ? error : compare_run(spec, NULL, &curves);
    if (!error && c.svg) {
        error = compare_write_svg(spec, curves, c.accuracy, c.svg);
    }
    if (!error) {
        (c.json ? print_json : print_table)(spec, curves);
    } else {
        fprintf(stderr, "%s: %s\n", table.name, error);
    }
    if (spec) {
        compare_curves_destroy(spec, curves);
    }
    compare_spec_destroy(spec);
    status = error ? EXIT_FAILURE : EXIT_SUCCESS;
    free(error);
    return status;
}
