/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "cli/operator/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "openvswitch/dynamic-string.h"
#include "svec.h"
#include "util.h"

struct table {
    size_t n_columns;
    struct svec cells;          /* Headings, then the cells of each row. */
};

/* Adds the cells of 'text', and frees it. */
static void
add_cells(struct table *t, char *text)
{
    char *rest = text, *cell;

    while ((cell = strsep(&rest, "\t"))) {
        svec_add(&t->cells, cell);
    }
    free(text);
}

struct table *
table_create(const char *headings)
{
    struct table *t = xzalloc(sizeof *t);

    add_cells(t, xstrdup(headings));
    t->n_columns = t->cells.n;
    return t;
}

void
table_add(struct table *t, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add_cells(t, xvasprintf(format, args));
    va_end(args);
}

static size_t
column_width(const struct table *t, size_t column)
{
    size_t width = 0;

    for (size_t i = column; i < t->cells.n; i += t->n_columns) {
        width = MAX(width, strlen(t->cells.names[i]));
    }
    return width;
}

static bool
is_number(const char *s)
{
    return *s && strspn(s, "0123456789.+-") == strlen(s);
}

void
table_put(struct table *t, struct ds *out)
{
    for (size_t i = 0; i < t->cells.n; i++) {
        const char *cell = t->cells.names[i];
        size_t column = i % t->n_columns;
        int width = column_width(t, column);
        bool last = column + 1 == t->n_columns;

        if (is_number(cell)) {
            ds_put_format(out, "%*s", width, cell);
        } else {
            ds_put_format(out, "%-*s", last ? 0 : width, cell);
        }
        ds_put_cstr(out, last ? "\n" : "  ");
    }
    svec_destroy(&t->cells);
    free(t);
}

void
table_finish(struct table *t)
{
    struct ds text = DS_EMPTY_INITIALIZER;

    table_put(t, &text);
    fputs(ds_cstr(&text), stdout);
    ds_destroy(&text);
}
