/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/compare/compare-command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trainer/compare/compare.h"
#include "base/memory.h"

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
    if (!error) {
        error = compare_spec_from_file(c.file, &spec);
    }
    if (!error
        && readlink("/proc/self/exe", program, sizeof program - 1) < 0) {
        error = message("/proc/self/exe: cannot be read");
    }
    if (!error) {
        error = compare_run(spec, program, &curves);
    }
    if (!error && c.svg) {
        error = compare_write_svg(spec, curves, c.svg);
    }
    if (!error) {
        (c.json ? compare_print_json : compare_print)(spec, curves);
    }
    if (spec) {
        compare_curves_destroy(spec, curves);
    }
    compare_spec_destroy(spec);
    return error;
}
