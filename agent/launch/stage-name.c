/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/launch/stage-name.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/cgroup-path.h"

static bool
parse_rung(const char *s, int *rung)
{
    size_t n = strspn(s, "0123456789");

    if (!n || n > 4 || s[n] || atoi(s) > STAGE_NAME_MAX_RUNG) {
        return false;
    }
    *rung = atoi(s);
    return true;
}

char *
stage_name_parse(const char *place, const char *text, char separator,
                 struct stage_name *stage)
{
    const char *end = strchr(text, separator);
    size_t n = end ? end - text : strlen(text);
    struct stage_name parsed = { .rung = -1 };
    char *error;

    if (n < sizeof parsed.cojob) {
        memcpy(parsed.cojob, text, n);
    }
    if (cgroup_name_is_valid(parsed.cojob)
        && (!end || parse_rung(end + 1, &parsed.rung))) {
        *stage = parsed;
        return NULL;
    }
    if (asprintf(&error, "%s: \"%.60s\" is not a stage, COJOB or COJOB%cRUNG "
                 "is allowed: a name of "CGROUP_NAME_RULE", and a number from "
                 "0 to %d", place, text, separator, STAGE_NAME_MAX_RUNG) < 0) {
        abort();
    }
    return error;
}
