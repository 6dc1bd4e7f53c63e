/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "wire/progress-json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "util.h"
#include "wire/progress-datagram.h"

static const char *const tokens[] = { "NaN", "Infinity", "-Infinity" };

/* Replaces the tokens outside of texts by empty texts. */
static void
replace_tokens(char *p)
{
    bool quoted = false;

    for (; *p; p++) {
        if (*p == '\\' && p[1]) {
            p++;
        } else if (*p == '"') {
            quoted = !quoted;
        }
        for (size_t i = 0; i < ARRAY_SIZE(tokens) && !quoted; i++) {
            size_t n = strlen(tokens[i]);

            if (!strncmp(p, tokens[i], n)) {
                memset(p, ' ', n);
                p[0] = p[1] = '"';
                p += n - 1;
            }
        }
    }
}

cJSON *
progress_json_parse(const char *text, size_t size)
{
    char *copy;
    cJSON *top;

    if (!memmem(text, size, tokens[0], strlen(tokens[0]))
        && !memmem(text, size, tokens[1], strlen(tokens[1]))) {
        return cJSON_ParseWithLength(text, size);
    }
    copy = xmemdup0(text, size);
    replace_tokens(copy);
    top = cJSON_ParseWithLength(copy, size);
    free(copy);
    return top;
}

/* Reads an optional integer from 'min' to 'max'.  Returns its item, or
 * NULL. */
static const cJSON *
read_integer(const cJSON *top, const char *member, int64_t min, int64_t max,
             struct progress *p, int64_t *valuep)
{
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(top, member);

    if (cJSON_IsNumber(at) && at->valuedouble >= min && at->valuedouble <= max
        && at->valuedouble == floor(at->valuedouble)) {
        *valuep = at->valuedouble;
    } else if (at) {
        p->left_out = true;
    }
    return at;
}

static void
read_value(const cJSON *top, struct progress *p)
{
    const cJSON *metric = cJSON_GetObjectItemCaseSensitive(top, "metric");
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(top, "value");
    const char *name = cJSON_GetStringValue(metric);

    if (metric && !(name && name_is_valid_metric(name))) {
        p->left_out = true;
        return;
    }
    ovs_strlcpy(p->metric, name ? name : "", sizeof p->metric);
    if (cJSON_IsNumber(value) && isfinite(value->valuedouble)) {
        p->value = value->valuedouble;
        p->has_value = true;
    } else if (value) {
        p->left_out = true;
    }
}

char *
progress_json_read(const cJSON *top, struct progress *p)
{
    const cJSON *iteration, *control_port;
    int64_t port = 0;

    *p = (struct progress){
        .iteration = -1, .stage = -1, .sent = -1, .received = -1, .counted = -1
    };
    if (!cJSON_IsObject(top)) {
        return xstrdup(top ? "/: not an object" : "/: not valid JSON");
    }
    control_port = read_integer(top, "control_port", 1, 65535, p, &port);
    p->control_port = port;
    iteration = read_integer(top, "iteration", 0, PROGRESS_MAX_INTEGER, p,
                             &p->iteration);
    read_integer(top, "sent", 0, PROGRESS_MAX_INTEGER, p, &p->sent);
    read_integer(top, "received", 0, PROGRESS_MAX_INTEGER, p, &p->received);
    read_integer(top, "posted", 0, PROGRESS_MAX_INTEGER, p, &p->posted);
    read_integer(top, "counted", 0, PROGRESS_MAX_INTEGER, p, &p->counted);
    if (control_port && !port && !iteration) {
        return xstrdup("/control_port: not a port; expected 1 to 65535");
    } else if (p->iteration < 0 && (iteration || (!port && p->sent < 0))) {
        return xstrdup("/iteration: not an integer; expected 0 to 2^53");
    }
    read_integer(top, "stage", 0, PROGRESS_MAX_INTEGER, p, &p->stage);
    read_integer(top, "time", 0, PROGRESS_MAX_INTEGER, p, &p->time);
    read_value(top, p);
    return NULL;
}
