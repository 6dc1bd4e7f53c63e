/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/operator/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct table {
    size_t n_columns;
    char **cells;               /* Headings, then the cells of each row. */
    size_t n, allocated;
};

/* Returns 'p', or ends the program if memory allocation has failed. */
static void *
check_memory(void *p)
{
    if (!p) {
        abort();
    }
    return p;
}

static void
add_cell(struct table *t, char *text)
{
    if (t->n >= t->allocated) {
        t->allocated = t->allocated ? t->allocated * 2 : 64;
        t->cells = check_memory(realloc(t->cells,
                                        t->allocated * sizeof *t->cells));
    }
    t->cells[t->n++] = text;
}

/* Creates a table with the given headings, the last argument being NULL. */
struct table *
table_create(const char *heading, ...)
{
    struct table *t = check_memory(calloc(1, sizeof *t));
    va_list args;

    va_start(args, heading);
    for (; heading; heading = va_arg(args, const char *)) {
        add_cell(t, check_memory(strdup(heading)));
        t->n_columns++;
    }
    va_end(args);
    return t;
}

/* Adds the next cell. */
void
table_add(struct table *t, const char *format, ...)
{
    va_list args;
    char *text;
    int n;

    va_start(args, format);
    n = vasprintf(&text, format, args);
    va_end(args);
    add_cell(t, n < 0 ? check_memory(NULL) : text);
}

static size_t
column_width(const struct table *t, size_t column)
{
    size_t width = 0;

    for (size_t i = column; i < t->n; i += t->n_columns) {
        size_t n = strlen(t->cells[i]);

        width = n > width ? n : width;
    }
    return width;
}

static int
is_number(const char *s)
{
    return *s && strspn(s, "0123456789.+-") == strlen(s);
}

void
table_print(const struct table *t, FILE *stream)
{
    for (size_t i = 0; i < t->n; i++) {
        size_t column = i % t->n_columns;
        int width = column_width(t, column);
        int last = column + 1 == t->n_columns;

        if (is_number(t->cells[i])) {
            fprintf(stream, "%*s", width, t->cells[i]);
        } else {
            fprintf(stream, "%-*s", last ? 0 : width, t->cells[i]);
        }
        fputs(last ? "\n" : "  ", stream);
    }
}

void
table_destroy(struct table *t)
{
    if (t) {
        for (size_t i = 0; i < t->n; i++) {
            free(t->cells[i]);
        }
        free(t->cells);
        free(t);
    }
}
