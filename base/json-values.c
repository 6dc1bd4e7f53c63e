/* SPDX-License-Identifier: Apache-2.0 */

#include "base/json-place.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAME 31             /* Characters of a cojob's, job's or host's. */
#define MAX_EXACT 9007199254740992.0    /* 2^53: integers are exact so far. */

bool
json_at_is_string(const struct json_at *at)
{
    return at && cJSON_IsString(at->item);
}

bool
json_at_is_number(const struct json_at *at)
{
    return at && cJSON_IsNumber(at->item);
}

bool
json_at_is_object(const struct json_at *at)
{
    return at && cJSON_IsObject(at->item);
}

char *
json_at_string(const struct json_at *at)
{
    if (at && !cJSON_IsString(at->item)) {
        json_place_refuse(at, "a string");
        at = NULL;
    }
    return json_must(strdup(at ? at->item->valuestring : ""));
}

bool
json_is_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz"
                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    return isalnum((unsigned char) s[0]) && !s[n] && n <= MAX_NAME;
}

char *
json_at_name(const struct json_at *at)
{
    char *s = json_at_string(at);

    if (at && cJSON_IsString(at->item) && !json_is_name(s)) {
        json_place_refuse(at, JSON_NAME);
    }
    return s;
}

double
json_at_number(const struct json_at *at, double min, double max)
{
    if (!at) {
        return min;
    }
    if (!cJSON_IsNumber(at->item) || !(at->item->valuedouble >= min)
        || !(at->item->valuedouble <= max)) {
        char *allowed = json_message("a number from %g to %g", min, max);

        json_place_refuse(at, allowed);
        free(allowed);
        return min;
    }
    return at->item->valuedouble;
}

int64_t
json_at_integer(const struct json_at *at, int64_t min, int64_t max)
{
    double x;

    if (!at) {
        return min;
    }
    x = cJSON_IsNumber(at->item) ? at->item->valuedouble : NAN;
    if (!(x >= min && x <= max && fabs(x) <= MAX_EXACT) || x != floor(x)) {
        char *allowed = json_message("an integer from %"PRId64" to %"PRId64,
                                min, max);

        json_place_refuse(at, allowed);
        free(allowed);
        return min;
    }
    return x;
}
