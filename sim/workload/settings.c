/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/workload/settings.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "order/problem/memory.h"
#include "sim/fabric/line-reader.h"

/* Returns true if 'name', which may be NULL, is the first 'length' characters
 * of 'text'. */
static bool
is_name(const char *name, const char *text, size_t length)
{
    return name && strlen(name) == length && !strncmp(name, text, length);
}

static char *
unknown_setting(const char *location, const char *name, size_t length,
                const struct setting settings[], size_t n)
{
    size_t size;
    char *error;
    FILE *stream = order_must(open_memstream(&error, &size));
    char *copy = order_must(strndup(name, length));

    fprintf(stream, "%s: \"%s\" is not one of", location,
            line_reader_shown(copy));
    free(copy);
    for (size_t i = 0; i < n; i++) {
        fprintf(stream, "%s \"%s=\"", i ? "," : "", settings[i].name);
    }
    fclose(stream);
    return error;
}

static char *
bad_value(const char *location, const struct setting *s, const char *value,
          size_t length)
{
    size_t size;
    char *error;
    FILE *stream = order_must(open_memstream(&error, &size));
    char *copy = order_must(strndup(value, length));

    fprintf(stream, "%s: %s: \"%s\" is not ", location, s->name,
            line_reader_shown(copy));
    free(copy);
    if (s->names) {
        fputs("one of", stream);
        for (size_t i = 0; s->names[i]; i++) {
            fprintf(stream, "%s \"%s\"", i ? "," : "", s->names[i]);
        }
    } else {
        fprintf(stream, "%s from %g to %g",
                s->integer ? "an integer" : "a number", s->min, s->max);
    }
    fclose(stream);
    return error;
}

/* Stores the value at 'text' of 'length' characters.  Returns false if 's'
 * does not allow it. */
static bool
store(const struct setting *s, const char *text, size_t length)
{
    char *end;
    double x;

    for (int i = 0; s->names && s->names[i]; i++) {
        if (is_name(s->names[i], text, length)) {
            *s->integer = i;
            return true;
        }
    }
    x = strtod(text, &end);
    if (s->names || !length || end != text + length
        || strspn(text, LINE_READER_DECIMAL) < length
        || !(x >= s->min && x <= s->max) || (s->integer && x != floor(x))) {
        return false;
    }
    if (s->integer) {
        *s->integer = x;
    } else {
        *s->number = x;
    }
    return true;
}

char *
settings_read(const char *location, const char *text,
              const struct setting settings[], size_t n)
{
    while (*text) {
        size_t name_length = strcspn(text, "=,");
        const char *value = text + name_length + (text[name_length] == '=');
        size_t length = strcspn(value, ",");
        size_t i = 0;

        while (i < n && !is_name(settings[i].name, text, name_length)) {
            i++;
        }
        if (i == n) {
            return unknown_setting(location, text, name_length, settings, n);
        }
        if (!store(&settings[i], value, length)) {
            return bad_value(location, &settings[i], value, length);
        }
        text = value + length + (value[length] == ',');
    }
    return NULL;
}
