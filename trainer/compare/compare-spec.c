/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "base/memory.h"
#include "trainer/compare/compare.h"
#include "trainer/process/limits.h"
#include "trainer/schemes/sync.h"

#define MAX_SCHEMES 32
#define MAX_ARGUMENTS 40

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
