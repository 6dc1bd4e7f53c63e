/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach policy: checks, shows, compares and exports policies. */

#include "cli/simulate/policy.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "cli/command.h"
#include "cli/data-file.h"
#include "policies/policy.h"
#include "wire/log-spec.h"

struct show_options {
    bool json;
};

static void
print_table(const struct policy_rows *rows)
{
    size_t width = strlen("member");

    for (size_t i = 0; i < rows->n; i++) {
        size_t n = strlen(rows->rows[i].member);

        width = n > width ? n : width;
    }
    printf("%-*s  %-7s  value\n", (int) width, "member", "origin");
    for (size_t i = 0; i < rows->n; i++) {
        const struct policy_row *row = &rows->rows[i];

        printf("%-*s  %-7s  %s\n", (int) width, row->member,
               row->given ? "file" : "default", row->value);
    }
}

static void
print_json(const struct policy_rows *rows)
{
    cJSON *top = cJSON_CreateObject();
    cJSON *members = cJSON_AddArrayToObject(top, "members");

    for (size_t i = 0; i < rows->n; i++) {
        const struct policy_row *row = &rows->rows[i];
        cJSON *o = cJSON_CreateObject();

        cJSON_AddStringToObject(o, "member", row->member);
        cJSON_AddStringToObject(o, "origin", row->given ? "file" : "default");
        cJSON_AddRawToObject(o, "value", row->value);
        cJSON_AddItemToArray(members, o);
    }
    command_print_json(top);
}

static int
policy_show(int argc, char *argv[])
{
    static const struct option_row option_rows[] = {
        FORMAT_ROW(struct show_options, json), { .name = NULL }
    };
    static const struct option_table table = {
        .name = "stagecoach policy show",
        .usage =
            "usage: stagecoach policy show NAME|FILE [--format table|json]\n\n"
            "Shows every member of a policy with its value and its origin: "
            "the\nfile or the default.\n",
        .rows = option_rows,
        .operand = "NAME|FILE",
        .min_operands = 1,
        .max_operands = 1,
    };
    struct show_options o = { .json = false };
    struct policy *policy;
    struct policy_rows rows;
    int first, status = option_table_command(&table, argc, argv, &o, &first);
    char *error;

    if (status >= 0) {
        return status;
    }
    error = policy_open(argv[first], &policy);
    if (error) {
        return command_fail(NULL, error);
    }
    policy_rows_init(&rows, policy);
    (o.json ? print_json : print_table)(&rows);
    policy_rows_uninit(&rows);
    policy_destroy(policy);
    return fflush(stdout) ? EXIT_NO : EXIT_OK;
}

/* Returns true if 'text' is a JSON schema, such as the installed schema of
 * policies. */
static bool
is_schema(const char *text)
{
    static const char begin[] = "https://json-schema.org/";
    cJSON *json = cJSON_Parse(text);
    const char *schema = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(json, "$schema"));
    bool result = schema && !strncmp(schema, begin, sizeof begin - 1);

    cJSON_Delete(json);
    return result;
}

/* Returns true if 'text' contains rules for log readers, valid or not. */
static bool
is_readers(const char *text)
{
    cJSON *json = cJSON_Parse(text);
    bool result = cJSON_HasObjectItem(json, "readers");

    cJSON_Delete(json);
    return result;
}

static char *
readers_error(const char *file, const char *text)
{
    struct log_rules *rules;
    char *error = log_rules_parse(file, text, &rules);

    log_rules_destroy(rules);
    return error;
}

/* Prints the warnings of the valid policy in 'text'. */
static void
print_warnings(const char *file, const char *text)
{
    struct policy *policy;
    char *warnings = NULL;

    free(policy_from_string(file, text, &policy));
    if (policy) {
        warnings = policy_warnings(file, policy);
    }
    if (warnings) {
        puts(warnings);
    }
    free(warnings);
    policy_destroy(policy);
}

/* Checks 'file' and prints the result.  Returns true if it is valid. */
static bool
check(const char *file)
{
    char *text;
    char *errors = json_read_file(file, &text);
    bool schema = text && is_schema(text);
    bool readers = text && is_readers(text);
    bool good;

    if (text && !schema) {
        errors =
            readers ? readers_error(file, text) : policy_errors(file, text);
    }
    good = !errors;
    if (errors) {
        puts(errors);
    } else {
        printf("%s: %s\n", file, schema ? "skipped, a JSON schema" : "ok");
        if (!schema && !readers) {
            print_warnings(file, text);
        }
    }
    free(errors);
    free(text);
    return good;
}

/* Checks all files, also after an invalid one. */
static int
policy_check(int argc, char *argv[])
{
    bool help = argc == 2 && !strcmp(argv[1], "--help");
    int status = EXIT_OK;

    if (help || argc < 2 || argv[1][0] == '-') {
        fputs("usage: stagecoach policy check FILE...\n\n"
              "Checks that each file is a valid policy, or valid rules "
              "for log readers,\nand prints all errors and warnings.\n",
              help ? stdout : stderr);
        return help ? EXIT_OK : EXIT_USAGE;
    }
    for (int i = 1; i < argc; i++) {
        if (!check(argv[i])) {
            status = EXIT_NO;
        }
    }
    return status;
}

/* Prints the name and the description of each installed policy. */
static int
policy_list(int argc, char *argv[])
{
    bool help = argc == 2 && !strcmp(argv[1], "--help");
    char **names;
    int status = EXIT_OK;

    if (help || argc > 1) {
        fputs(
            "usage: stagecoach policy list\n\n"
            "Lists the installed policies, by which every command that takes "
            "a policy\nknows them.\n",
            help ? stdout : stderr);
        return help ? EXIT_OK : EXIT_USAGE;
    }
    names = policy_names();
    for (size_t i = 0; names[i]; i++) {
        struct policy *policy;
        char *error = policy_open(names[i], &policy);

        if (error) {
            status = command_fail(NULL, error);
        } else {
            printf("%-13s %s\n", names[i], policy->description);
        }
        policy_destroy(policy);
        free(names[i]);
    }
    free(names);
    return status;
}

static const struct command commands[] = {
    { "check", "FILE...", "Check that each file is a valid policy.",
      policy_check },
    { "list", "", "List the installed policies.", policy_list },
    { "show", "NAME|FILE", "Show every member of a policy.", policy_show },
    { "whatif", "--trace T --policy A --policy B",
      "Simulate a workload under two policies.", policy_whatif },
    { "export", "P --to sonic|cumulus|openconfig --ports PORT,...",
      "Print a policy's levels as configuration of a switch.", policy_export },
    { NULL, NULL, NULL, NULL },
};

int
cmd_policy(int argc, char *argv[])
{
    return command_dispatch(commands, "stagecoach policy", argc - 1, argv + 1);
}
