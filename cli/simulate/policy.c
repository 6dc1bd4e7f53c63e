/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach policy: checks, compares and tunes policies. */

#include "cli/simulate/policy.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "cli/command.h"
#include "cli/simulate/policy-args.h"
#include "policies/policy.h"
#include "wire/log-spec.h"

static const struct policy_syntax syntax = {
    .name = "stagecoach policy show",
    .usage =
        "usage: stagecoach policy show NAME|FILE [--format table|json]\n\n"
        "Shows every member of a policy with its value and its origin: the\n"
        "file or the default.\n",
    .options = POLICY_FORMAT, .n_names = 1, .n_policies = 1, .max_policies = 1,
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
show(struct policy_args *args)
{
    struct policy_rows rows;

    policy_rows_init(&rows, args->policies[0]);
    (args->json ? print_json : print_table)(&rows);
    policy_rows_uninit(&rows);
    return EXIT_OK;
}

static int
policy_show(int argc, char *argv[])
{
    return policy_command(&syntax, argc, argv, show);
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

/* Checks 'file' and prints the result.  Returns true if it is valid. */
static bool
check(const char *file)
{
    char *text;
    char *errors = json_read_file(file, &text);
    bool schema = text && is_schema(text);
    bool good;

    if (text && !schema) {
        errors = is_readers(text) ? readers_error(file, text)
                 : policy_errors(file, text);
    }
    good = !errors;
    if (errors) {
        puts(errors);
    } else {
        printf("%s: %s\n", file, schema ? "skipped, a JSON schema" : "ok");
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
              "for log readers,\nand prints all errors.\n",
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

static const struct command commands[] = {
    { "check", "FILE...", "Check that each file is a valid policy.",
      policy_check },
    { "show", "NAME|FILE", "Show every member of a policy.",
      policy_show },
    { "diff", "A B",
      "Show the differences between two policies and their effect.",
      policy_diff },
    { "whatif", "--trace T --policy A --policy B",
      "Simulate a workload under two policies.", policy_whatif },
    { "tune", "--trace T [OPTION...]",
      "Search for better parameters of a policy.", policy_tune },
    { NULL, NULL, NULL, NULL },
};

int
cmd_policy(int argc, char *argv[])
{
    return command_dispatch(commands, "stagecoach policy", argc - 1, argv + 1);
}
