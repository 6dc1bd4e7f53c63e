/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "wire/progress-datagram.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/name.h"
#include "util.h"

/* Returns true if the object is flat.  Deeper objects are never valid and are
 * not parsed. */
static bool
is_flat(const char *data, size_t size)
{
    bool quoted = false;
    int depth = 0;

    for (size_t i = 0; i < size; i++) {
        if (quoted) {
            if (data[i] == '\\') {
                i++;
            } else if (data[i] == '"') {
                quoted = false;
            }
        } else if (data[i] == '"') {
            quoted = true;
        } else if (data[i] == '{' || data[i] == '[') {
            if (++depth > 1) {
                return false;
            }
        }
    }
    return true;
}

static char *
read_name(const cJSON *top, const char *member, const char **namep)
{
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(top, member);

    if (!cJSON_IsString(at) || !name_is_valid(at->valuestring)) {
        return xasprintf("/%s: not " NAME_RULE, member);
    }
    *namep = at->valuestring;
    return NULL;
}

/* Stores integer 'member' in '*valuep', which is not changed if there is no
 * such member and it is not 'required'. */
static char *
read_integer(const cJSON *top, const char *member, bool required,
             int64_t *valuep)
{
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(top, member);

    if (!at && !required) {
        return NULL;
    }
    if (!cJSON_IsNumber(at) || !(at->valuedouble >= 0)
        || at->valuedouble > PROGRESS_MAX_INTEGER
        || at->valuedouble != floor(at->valuedouble)) {
        return xasprintf("/%s: not an integer, 0 to 2^53 is allowed", member);
    }
    *valuep = at->valuedouble;
    return NULL;
}

static char *
read_value(const cJSON *top, struct progress *p)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(top, "value");
    const char *metric = "";
    char *error = cJSON_GetObjectItemCaseSensitive(top, "metric")
                  ? read_name(top, "metric", &metric) : NULL;

    if (error) {
        return error;
    }
    ovs_strlcpy(p->metric, metric, sizeof p->metric);
    /* A diverged loss is null or infinite; the iteration still counts. */
    if (cJSON_IsNumber(value) && isfinite(value->valuedouble)) {
        p->value = value->valuedouble;
        p->has_value = true;
    } else if (value && !cJSON_IsNull(value) && !cJSON_IsNumber(value)) {
        return xstrdup("/value: neither number nor null");
    }
    return NULL;
}

static char *
read_control_port(const cJSON *top, struct progress *p)
{
    int64_t port = 0;
    char *error = read_integer(top, "control_port", false, &port);

    if (error || port > 65535
        || (!port && cJSON_GetObjectItemCaseSensitive(top, "control_port"))) {
        free(error);
        return xstrdup("/control_port: not a port, 1 to 65535 is allowed");
    }
    p->control_port = port;
    return NULL;
}

static char *
read_object(const cJSON *top, char *name, struct progress *p)
{
    const char *cojob = NULL;
    const char *job = NULL;
    char *error;

    if (!cJSON_IsObject(top)) {
        return xstrdup("/: not an object");
    }
    error = read_name(top, "cojob", &cojob);
    error = error ? error : read_name(top, "job", &job);
    error = error ? error : read_control_port(top, p);
    error = error ? error : read_integer(top, "iteration", !p->control_port,
                                         &p->iteration);
    error = error ? error : read_integer(top, "stage", false, &p->stage);
    error = error ? error : read_integer(top, "time", false, &p->time);
    error = error ? error : read_value(top, p);
    if (!error) {
        snprintf(name, PROGRESS_NAME_SIZE, "%s/%s", cojob, job);
    }
    return error;
}

/* Parses the datagram of 'size' bytes at 'data'.  Returns NULL and stores the
 * job in 'name' and its progress in '*progress', or returns a malloc()'d
 * message and changes neither. */
char *
progress_parse(const char *data, size_t size, char name[PROGRESS_NAME_SIZE],
               struct progress *progress)
{
    struct progress p = { .iteration = -1, .stage = -1 };
    char *error;
    cJSON *top;

    if (size > PROGRESS_MAX_BYTES) {
        return xasprintf("/: more than %d bytes", PROGRESS_MAX_BYTES);
    }
    if (!is_flat(data, size)) {
        return xstrdup("/: an object in an object, only plain members are "
                       "allowed");
    }
    top = cJSON_ParseWithLength(data, size);
    if (!top) {
        return xstrdup("/: not valid JSON");
    }
    error = read_object(top, name, &p);
    cJSON_Delete(top);
    if (!error) {
        *progress = p;
    }
    return error;
}
