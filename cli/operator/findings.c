/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "cli/operator/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "openvswitch/json.h"
#include "util.h"

#define MAX_NAMED 5             /* Places that a line names. */

static const char *const levels[N_FINDING_LEVELS] = {
    [FINDING_ERROR] = "error", [FINDING_WARNING] = "warning",
    [FINDING_NOTE] = "note",
};

static struct finding *
find(struct findings *f, enum finding_level level, const char *remedy,
     const char *what)
{
    for (size_t i = 0; i < f->n; i++) {
        struct finding *row = &f->rows[i];

        if (row->level == level && !strcmp(row->what, what)
            && !strcmp(row->remedy, remedy)) {
            return row;
        }
    }
    return NULL;
}

void
findings_add(struct findings *f, enum finding_level level, const char *place,
             const char *remedy, const char *format, ...)
{
    struct finding *row;
    va_list args;
    char *what;

    va_start(args, format);
    what = xvasprintf(format, args);
    va_end(args);
    row = find(f, level, remedy, what);
    if (!row) {
        if (f->n >= f->allocated) {
            f->rows = x2nrealloc(f->rows, &f->allocated, sizeof *f->rows);
        }
        row = &f->rows[f->n++];
        *row = (struct finding) {
            .level = level, .places = SVEC_EMPTY_INITIALIZER,
            .what = what, .remedy = xstrdup(remedy),
        };
    } else {
        free(what);
    }
    svec_add(&row->places, place);
}

void
findings_destroy(struct findings *f)
{
    for (size_t i = 0; i < f->n; i++) {
        svec_destroy(&f->rows[i].places);
        free(f->rows[i].what);
        free(f->rows[i].remedy);
    }
    free(f->rows);
}

size_t
findings_count(const struct findings *f, enum finding_level level)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++) {
        n += f->rows[i].level == level;
    }
    return n;
}

static void
print_clean(const char *s)
{
    for (; *s; s++) {
        putchar((unsigned char) *s < ' ' || *s == 0x7f ? '?' : *s);
    }
}

static void
print_places(const struct svec *places)
{
    for (size_t i = 0; i < MIN(places->n, MAX_NAMED); i++) {
        fputs(i ? ", " : "", stdout);
        print_clean(places->names[i]);
    }
    if (places->n > MAX_NAMED) {
        printf(" and %"PRIuSIZE" others", places->n - MAX_NAMED);
    }
}

void
findings_print(const struct findings *f)
{
    for (int level = 0; level < N_FINDING_LEVELS; level++) {
        for (size_t i = 0; i < f->n; i++) {
            const struct finding *row = &f->rows[i];

            if (row->level == level) {
                printf("%-8s ", levels[level]);
                print_places(&row->places);
                fputs(": ", stdout);
                print_clean(row->what);
                printf("\n%8s ", "");
                print_clean(row->remedy);
                putchar('\n');
            }
        }
    }
}

struct json *
findings_to_json(const struct findings *f)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < f->n; i++) {
        const struct finding *row = &f->rows[i];
        struct json *places = json_array_create_empty();
        struct json *json = json_object_create();

        for (size_t k = 0; k < row->places.n; k++) {
            json_array_add(places, json_string_create(row->places.names[k]));
        }
        json_object_put_string(json, "level", levels[row->level]);
        json_object_put(json, "places", places);
        json_object_put_string(json, "what", row->what);
        json_object_put_string(json, "remedy", row->remedy);
        json_array_add(array, json);
    }
    return array;
}
