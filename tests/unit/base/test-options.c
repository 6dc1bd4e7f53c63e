/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "tests/unit/unit-test.h"

#define MAX_ARGS 32

enum color { RED, GREEN };

struct args {
    bool fast;
    const char *file;
    char *copy;
    const char *word;
    enum color color;
    bool json;
    uint16_t port;
    int64_t size;
    double ratio;
    int n_names;
};

static char *
add_name(const char *text, void *n)
{
    ++*(int *) n;
    return strcmp(text, "bad") ? NULL : strdup("\"bad\" is not a name");
}

static const struct option_row rows[] = {
    { "fast", OPTION_FLAG, OPTION_AT(struct args, fast), .letter = 'f',
      .help = "skip what takes long" },
    { "file", OPTION_TEXT, OPTION_AT(struct args, file), .value = "FILE",
      .required = true, .help = "input" },
    { "copy", OPTION_COPY, OPTION_AT(struct args, copy), .value = "TEXT",
      .deflt = "none", .help = "text" },
    { "word", OPTION_WORD, OPTION_AT(struct args, word), .value = "on|off",
      .help = "switch" },
    { "color", OPTION_CHOICE, OPTION_AT(struct args, color),
      .value = "red|green", .deflt = "green", .help = "color of the page" },
    { "format", OPTION_CHOICE, OPTION_AT(struct args, json),
      .value = "table|json", .help = "output format" },
    { "port", OPTION_INTEGER, OPTION_AT(struct args, port), .letter = 'p',
      .min = 1, .max = 65535, .value = "PORT", .deflt = "80",
      .help = "port to listen on, which is described at such a length that "
              "the text does not fit into one line" },
    { "size", OPTION_INTEGER, OPTION_AT(struct args, size), .min = -5,
      .max = 9007199254740991, .value = "BYTES", .modes = 2,
      .help = "size in bytes" },
    { "ratio", OPTION_REAL, OPTION_AT(struct args, ratio), .min = 0, .max = 1,
      .value = "X", .shown = "half", .help = "share" },
    { "name", OPTION_CUSTOM, OPTION_AT(struct args, n_names), .value = "NAME",
      .repeated = true, .parse = add_name, .help = "name" },
    { .name = NULL },
};

static struct option_table table = {
    .name = "test", .version = "test 1.0", .rows = rows,
    .usage = "usage: test [OPTION...]\n", .footer = "Exit status: 0.\n",
};

/* Splits 'line' at spaces and parses it. */
static char *
parse(const char *line, struct args *args, struct option_outcome *outcome)
{
    static char copy[512];
    char *argv[MAX_ARGS] = { (char *) "test" };
    int argc = 1;

    free(args->copy);
    memset(args, 0, sizeof *args);
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        argv[argc++] = word;
    }
    return option_table_parse(&table, argc, argv, args, outcome);
}

UNIT_TEST(stores_each_kind_of_value)
{
    struct option_outcome outcome;
    struct args args = { .copy = NULL };

    assert_null(parse("--file a", &args, &outcome));
    assert_string_equal(args.file, "a");
    assert_string_equal(args.copy, "none");
    assert_int_equal(args.color, GREEN);
    assert_int_equal(args.port, 80);
    assert_false(args.fast || args.json || args.n_names);
    assert_true(outcome.seen[1]);
    assert_false(outcome.seen[6]);

    assert_null(parse("-fp 65535 --file=b --copy c --copy d --word off "
                      "--color red --form json --size -5 --ratio .5 "
                      "--name x --name y", &args, &outcome));
    assert_true(args.fast && args.json);
    assert_string_equal(args.file, "b");
    assert_string_equal(args.copy, "d");
    assert_string_equal(args.word, "off");
    assert_int_equal(args.color, RED);
    assert_int_equal(args.port, 65535);
    assert_int_equal(args.size, -5);
    assert_float_equal(args.ratio, .5, 0);
    assert_int_equal(args.n_names, 2);
    assert_null(outcome.text[0]);
    assert_string_equal(outcome.text[2], "d");
    assert_string_equal(outcome.text[7], "-5");
    free(args.copy);
}

UNIT_TEST(names_the_option_at_fault)
{
    static const struct {
        const char *line, *error;
    } cases[] = {
        { "", "--file: required option is missing" },
        { "--file", "--file: needs a value, FILE" },
        { "--file=", "--file: \"\" is not FILE" },
        { "--speed=3", "--speed: unknown option, --help lists them" },
        { "-fx", "-x: unknown option, --help lists them" },
        { "-p", "--port: needs a value, PORT" },
        { "--fast=1", "--fast: \"1\" is too much, it takes no value" },
        { "--file a x", "\"x\": unexpected argument, there are only options" },
        { "--word maybe", "--word: \"maybe\" is not one of \"on\", \"off\"" },
        { "--format j", "--format: \"j\" is not one of \"table\", \"json\"" },
        { "--port 0", "--port: \"0\" is not an integer from 1 to 65535" },
        { "--port 1.5", "--port: \"1.5\" is not an integer from 1 to 65535" },
        { "--port 5m", "--port: \"5m\" is not an integer from 1 to 65535" },
        { "--port 0x10",
          "--port: \"0x10\" is not an integer from 1 to 65535" },
        { "--ratio nan", "--ratio: \"nan\" is not a number from 0 to 1" },
        { "--ratio 1.1", "--ratio: \"1.1\" is not a number from 0 to 1" },
        { "--name bad", "--name: \"bad\" is not a name" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct option_outcome outcome;
        struct args args = { .copy = NULL };

        assert_is(parse(cases[i].line, &args, &outcome), cases[i].error);
        free(args.copy);
    }
}

UNIT_TEST(a_mode_has_only_its_own_options)
{
    struct option_outcome outcome;
    struct args args = { .copy = NULL };
    char *error;

    table.modes = 1;
    error = parse("--file a --size 3", &args, &outcome);
    assert_is(error, "--size: not an option of \"test\"");
    table.modes = 3;
    assert_null(parse("--file a --size 3", &args, &outcome));
    table.modes = 0;
    free(args.copy);
}

UNIT_TEST(help_and_version_end_the_checks)
{
    struct option_outcome outcome;
    struct args args = { .copy = NULL };

    assert_null(parse("-h --bad", &args, &outcome));
    assert_true(outcome.help);
    assert_null(parse("--version", &args, &outcome));
    assert_true(outcome.version);
    free(args.copy);
}

UNIT_TEST(operands_move_behind_the_options_unless_in_order)
{
    struct option_outcome outcome;
    struct args args = { .copy = NULL };
    char *error;

    table.operand = "CAPTURE";
    table.min_operands = table.max_operands = 1;
    assert_null(parse("x --file a", &args, &outcome));
    assert_int_equal(outcome.operand, 3);
    error = parse("--file a", &args, &outcome);
    assert_is(error, "CAPTURE: required argument is missing");
    error = parse("--file a x y", &args, &outcome);
    assert_is(error, "\"y\": unexpected argument");
    table.max_operands = -1;
    table.in_order = true;
    assert_null(parse("--file a x --bad", &args, &outcome));
    assert_int_equal(outcome.operand, 3);
    table.min_operands = table.max_operands = 0;
    table.in_order = false;
    free(args.copy);
}

/* A subject with options of another mode only is left out. */
UNIT_TEST(help_has_a_heading_for_each_subject)
{
    static const struct option_row some[] = {
        { "a", OPTION_FLAG, OPTION_AT(struct args, fast), .modes = 1,
          .subject = "First", .help = "one" },
        { "b", OPTION_FLAG, OPTION_AT(struct args, fast), .modes = 2,
          .help = "two" },
        { "c", OPTION_FLAG, OPTION_AT(struct args, fast), .modes = 1,
          .subject = "Second", .help = "three" },
        { "d", OPTION_FLAG, OPTION_AT(struct args, fast), .modes = 2,
          .subject = "Third", .help = "four" },
        { .name = NULL },
    };
    char text[4096] = "";
    FILE *stream = fmemopen(text, sizeof text, "w");

    option_table_help(&(struct option_table) {
        .rows = some, .usage = "usage: test\n", .modes = 2,
    }, stream);
    fclose(stream);
    assert_string_equal(text,
        "usage: test\n"
        "\n"
        "First:\n"
        "  --b                   two\n"
        "\n"
        "Third:\n"
        "  --d                   four\n"
        "\n"
        "  -h, --help            print this help\n");
}

UNIT_TEST(help_has_ranges_defaults_and_no_old_names)
{
    char text[4096] = "";
    FILE *stream = fmemopen(text, sizeof text, "w");

    table.modes = 1;
    option_table_help(&table, stream);
    table.modes = 0;
    fclose(stream);
    assert_string_equal(text,
        "usage: test [OPTION...]\n"
        "\n"
        "  -f, --fast            skip what takes long\n"
        "  --file FILE           input (required)\n"
        "  --copy TEXT           text (default none)\n"
        "  --word on|off         switch\n"
        "  --color red|green     color of the page (default green)\n"
        "  --format table|json   output format\n"
        "  -p, --port PORT       port to listen on, which is described at "
        "such "
        "a length\n"
        "                        that the text does not fit into one line "
        "(1 to 65535,\n"
        "                        default 80)\n"
        "  --ratio X             share (0 to 1, default half)\n"
        "  --name NAME           name (may be repeated)\n"
        "  -h, --help            print this help\n"
        "  -V, --version         print the version\n"
        "\n"
        "Exit status: 0.\n");
}
