/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach policy check: checks policies, and rules for log readers. */

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/log-spec.h"
#include "cli/command.h"
#include "cli/simulate/policy.h"
#include "base/json-check.h"
#include "policies/policy.h"

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
int
policy_check(int argc, char *argv[])
{
    bool help = argc == 2 && !strcmp(argv[1], "--help");
    int status = EXIT_OK;

    if (help || argc < 2 || argv[1][0] == '-') {
        fputs("usage: stagecoach policy check FILE...\n\n"
              "Says of each file that it is a policy, or rules for the "
              "readers of logs,\nor all that is wrong with it.\n",
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
