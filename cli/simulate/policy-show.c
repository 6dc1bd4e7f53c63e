/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach policy show: shows every member of a policy. */

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/simulate/policy-args.h"
#include "cli/simulate/policy.h"
#include "policies/policy-json.h"

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
    char *text;

    for (size_t i = 0; i < rows->n; i++) {
        const struct policy_row *row = &rows->rows[i];
        cJSON *o = cJSON_CreateObject();

        cJSON_AddStringToObject(o, "member", row->member);
        cJSON_AddStringToObject(o, "origin", row->given ? "file" : "default");
        cJSON_AddRawToObject(o, "value", row->value);
        cJSON_AddItemToArray(members, o);
    }
    text = cJSON_Print(top);
    if (!text) {
        abort();
    }
    puts(text);
    cJSON_free(text);
    cJSON_Delete(top);
}

int
policy_show(int argc, char *argv[])
{
    struct policy_args args;
    int status = policy_args_parse(&syntax, argc, argv, &args);
    struct policy_rows rows;
    char *error;

    if (status >= 0) {
        return status;
    }
    error = policy_args_open(&args);
    if (error) {
        status = policy_args_fail(error);
    } else {
        policy_rows_init(&rows, args.policies[0]);
        if (args.json) {
            print_json(&rows);
        } else {
            print_table(&rows);
        }
        policy_rows_uninit(&rows);
        status = fflush(stdout) ? EXIT_NO : EXIT_OK;
    }
    policy_args_uninit(&args);
    return status;
}
