/* SPDX-License-Identifier: Apache-2.0 */

#include "base/json-place.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Returns member 'member' of 'at' and notes that it was asked for; NULL if
 * there is none, which is an error if 'required'. */
static const struct json_at *
get(const struct json_at *at, const char *member, bool required)
{
    const cJSON *item;

    if (!at || !cJSON_IsObject(at->item)) {
        return NULL;
    }
    item = cJSON_GetObjectItemCaseSensitive(at->item, member);
    if (!item) {
        if (required) {
            json_fail(at, member, "required member is missing");
        }
        return NULL;
    }
    json_place_ask((struct json_at *) at, item);
    return json_place(at->jc, at, item, 0);
}

bool
json_has(const struct json_at *at, const char *member)
{
    return at && cJSON_IsObject(at->item)
        && cJSON_GetObjectItemCaseSensitive(at->item, member);
}

/* Returns true if 'member' is an object, for those that may be something else
 * as well. */
bool
json_has_object(const struct json_at *at, const char *member)
{
    return at && cJSON_IsObject(at->item)
        && cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(at->item, member));
}

void
json_ignore(const struct json_at *at, const char *member)
{
    get(at, member, false);
}

char *
json_string(const struct json_at *at, const char *member)
{
    return json_at_string(get(at, member, true));
}

char *
json_string_or(const struct json_at *at, const char *member,
               const char *deflt)
{
    const struct json_at *value = get(at, member, false);

    if (value) {
        return json_at_string(value);
    }
    return deflt ? json_must(strdup(deflt)) : NULL;
}

double
json_number(const struct json_at *at, const char *member,
            double min, double max)
{
    return json_at_number(get(at, member, true), min, max);
}

double
json_number_or(const struct json_at *at, const char *member,
               double min, double max, double deflt)
{
    const struct json_at *value = get(at, member, false);

    return value ? json_at_number(value, min, max) : deflt;
}

int64_t
json_integer(const struct json_at *at, const char *member,
             int64_t min, int64_t max)
{
    return json_at_integer(get(at, member, true), min, max);
}

int64_t
json_integer_or(const struct json_at *at, const char *member,
                int64_t min, int64_t max, int64_t deflt)
{
    const struct json_at *value = get(at, member, false);

    return value ? json_at_integer(value, min, max) : deflt;
}

bool
json_bool_or(const struct json_at *at, const char *member, bool deflt)
{
    const struct json_at *value = get(at, member, false);

    if (value && !cJSON_IsBool(value->item)) {
        json_place_refuse(value, "true or false");
        return deflt;
    }
    return value ? cJSON_IsTrue(value->item) : deflt;
}

static int
enum_value(const struct json_at *value, const char *const names[], int deflt)
{
    size_t size;
    char *allowed;
    FILE *stream;

    if (!value) {
        return deflt;
    }
    for (int i = 0; cJSON_IsString(value->item) && names[i]; i++) {
        if (!strcmp(names[i], value->item->valuestring)) {
            return i;
        }
    }
    stream = json_must(open_memstream(&allowed, &size));
    fputs("one of", stream);
    for (int i = 0; names[i]; i++) {
        fprintf(stream, "%s \"%s\"", i ? "," : "", names[i]);
    }
    fclose(stream);
    json_place_refuse(value, allowed);
    free(allowed);
    return deflt;
}

int
json_enum(const struct json_at *at, const char *member,
          const char *const names[])
{
    return enum_value(get(at, member, true), names, 0);
}

int
json_enum_or(const struct json_at *at, const char *member,
             const char *const names[], int deflt)
{
    return enum_value(get(at, member, false), names, deflt);
}

int64_t
json_rate(const struct json_at *at, const char *member)
{
    static const struct {
        const char *unit;
        double bps;
    } units[] = {
        { "kbit", 1e3 }, { "Mbit", 1e6 }, { "Gbit", 1e9 },
    };
    const struct json_at *value = get(at, member, true);
    char *end;

    if (!value) {
        return 0;
    }
    if (cJSON_IsString(value->item)
        && isdigit((unsigned char) value->item->valuestring[0])) {
        double x = strtod(value->item->valuestring, &end);

        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
            double bps = x * units[i].bps;

            if (!strcmp(end, units[i].unit) && bps >= 1e3 && bps <= 1e13) {
                return bps;
            }
        }
    }
    json_place_refuse(value, "a rate from \"1kbit\" to \"10000Gbit\", "
                      "such as \"50Mbit\"");
    return 0;
}

char *
json_name(const struct json_at *at, const char *member)
{
    return json_at_name(get(at, member, true));
}

/* Places inside. */

static const struct json_at *
object_value(const struct json_at *value)
{
    if (value && !cJSON_IsObject(value->item)) {
        json_place_refuse(value, "an object");
        return NULL;
    }
    return value;
}

const struct json_at *
json_object(const struct json_at *at, const char *member)
{
    return object_value(get(at, member, true));
}

const struct json_at *
json_object_or_null(const struct json_at *at, const char *member)
{
    return object_value(get(at, member, false));
}

static const struct json_at *
array_value(const struct json_at *value, size_t min_n, size_t max_n)
{
    size_t n;

    if (!value) {
        return NULL;
    }
    if (!cJSON_IsArray(value->item)) {
        json_place_refuse(value, "an array");
        return NULL;
    }
    n = json_n(value);
    if (n < min_n || n > max_n) {
        json_fail_at(value, "%zu elements, %zu to %zu are allowed",
                     n, min_n, max_n);
        return NULL;
    }
    return value;
}

const struct json_at *
json_array(const struct json_at *at, const char *member,
           size_t min_n, size_t max_n)
{
    return array_value(get(at, member, true), min_n, max_n);
}

const struct json_at *
json_array_or_null(const struct json_at *at, const char *member,
                   size_t min_n, size_t max_n)
{
    return array_value(get(at, member, false), min_n, max_n);
}

size_t
json_n(const struct json_at *at)
{
    return at ? cJSON_GetArraySize(at->item) : 0;
}

const struct json_at *
json_element(const struct json_at *at, size_t index)
{
    const cJSON *item = at ? cJSON_GetArrayItem(at->item, index) : NULL;

    return item ? json_place(at->jc, at, item, index) : NULL;
}

const struct json_at *
json_element_object(const struct json_at *at, size_t index)
{
    return object_value(json_element(at, index));
}

const struct json_at *
json_member(const struct json_at *at, size_t index, const char **namep)
{
    const struct json_at *value;
    const cJSON *item;

    if (!at || !cJSON_IsObject(at->item)) {
        return NULL;
    }
    item = cJSON_GetArrayItem(at->item, index);
    if (!item) {
        return NULL;
    }
    value = get(at, item->string, false);
    if (!json_is_name(item->string)) {
        json_fail_at(value, "its name is not " JSON_NAME);
    }
    *namep = item->string;
    return value;
}
