/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "wire/progress-datagram.h"

#include <stdio.h>

#include <cjson/cJSON.h>

#include "base/name.h"
#include "util.h"
#include "wire/progress-json.h"

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

static char *
read_object(const cJSON *top, char *name, struct progress *p)
{
    const char *cojob = NULL;
    const char *job = NULL;
    char *error = cJSON_IsObject(top) ? read_name(top, "cojob", &cojob) : NULL;

    error = error || !cojob ? error : read_name(top, "job", &job);
    error = error ? error : progress_json_read(top, p);
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
    struct progress p;
    char *error;
    cJSON *top;

    if (size > PROGRESS_MAX_BYTES) {
        return xasprintf("/: more than %d bytes", PROGRESS_MAX_BYTES);
    }
    top = progress_json_parse(data, size);
    error = read_object(top, name, &p);
    cJSON_Delete(top);
    if (!error) {
        *progress = p;
    }
    return error;
}
