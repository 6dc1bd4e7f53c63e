/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the specifications of logs: the rules of an operator, and the
 * argument of "stagecoach run --log". */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "tests/fuzz/must.h"
#include "wire/log-spec.h"

static void
check(const struct log_spec *s)
{
    char *path = log_spec_path(s, "asha/t0");
    char *text = log_spec_to_text(s), *again;
    struct log_spec copy;

    must(path[0] == '/');
    must(!s->keys[LOG_NAME] || name_is_valid_metric(s->keys[LOG_NAME]));
    must(s->keys[LOG_ITERATION] || s->format == LOG_MLFLOW);
    must(!log_spec_parse("text", text, &copy));
    again = log_spec_to_text(&copy);
    must(!strcmp(text, again));
    log_spec_uninit(&copy);
    free(again);
    free(text);
    free(path);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size), *error;
    struct log_rules *rules;
    struct log_spec spec;

    error = log_rules_parse("rules", text, &rules);
    if (error) {
        must(!rules && !strncmp(error, "rules", 5));
        free(error);
    } else {
        for (size_t i = 0; i < rules->n; i++) {
            check(&rules->rules[i].spec);
        }
    }
    log_rules_destroy(rules);

    error = log_spec_parse("log", text, &spec);
    if (error) {
        must(!strncmp(error, "log", 3));
        free(error);
    } else {
        check(&spec);
        log_spec_uninit(&spec);
    }
    free(text);
    return 0;
}
