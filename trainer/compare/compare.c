/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/compare/compare.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

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

        printf("%-36s %9.2f%c %10llu %12.4f %8.4f %8.4f\n", spec->schemes[i],
               last.seconds, curve->reached ? ' ' : '*',
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
    const char *file, *svg;
    bool json;
};

static char *
parse(int argc, char *argv[], struct command *c)
{
    for (int i = 0; i < argc; i++) {
        if (!strcmp(argv[i], "--svg") && i + 1 < argc) {
            c->svg = argv[++i];
        } else if (!strcmp(argv[i], "--format") && i + 1 < argc) {
            const char *format = argv[++i];

            c->json = !strcmp(format, "json");
            if (!c->json && strcmp(format, "text")) {
                return message("--format: \"%s\" is not one of text|json",
                               format);
            }
        } else if (*argv[i] == '-' || c->file) {
            return message("\"%s\" is not an option, and one file is "
                           "compared", argv[i]);
        } else {
            c->file = argv[i];
        }
    }
    return c->file ? NULL : message("a file that says what is compared is "
                                    "needed");
}

char *
compare_command(int argc, char *argv[], bool *usage)
{
    struct command c = { .json = false };
    struct compare_spec *spec = NULL;
    struct compare_curve *curves = NULL;
    char program[4096] = "";
    char *error = parse(argc, argv, &c);

    *usage = error != NULL;
    error = error ? error : compare_spec_from_file(c.file, &spec);
    if (!error
        && readlink("/proc/self/exe", program, sizeof program - 1) < 0) {
        error = message("/proc/self/exe: cannot be read");
    }
    error = error ? error : compare_run(spec, program, &curves);
    if (!error && c.svg) {
        error = compare_write_svg(spec, curves, c.svg);
    }
    if (!error) {
        (c.json ? print_json : print_table)(spec, curves);
    }
    if (spec) {
        compare_curves_destroy(spec, curves);
    }
    compare_spec_destroy(spec);
    return error;
}
