/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/launch/pod-labels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The file pod-labels, as embed.py makes it. */
extern const unsigned char pod_labels_table[];
extern const size_t pod_labels_table_size;

#define MAX_LABEL 317 /* A prefix of 253 characters, and a name. */

/* With space for one character too many. */
struct row {
    char role[8];
    char label[MAX_LABEL + 2];
    char with[MAX_LABEL + 2]; /* "" for none. */
};

static struct row *rows;
static size_t n_rows;

static bool
is_label(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789"
                            "ABCDEFGHIJKLMNOPQRSTUVWXYZ._-/");

    return n <= MAX_LABEL && !text[n];
}

/* Reads 'line' as '*row'; the role is empty if the line has only a comment.
 * Returns false if it is invalid. */
static bool
parse_row(const char *line, struct row *row)
{
    char rest[2];
    int n;

    memset(row, 0, sizeof *row);
    n = sscanf(line, "%7s%318s%318s%1s", row->role, row->label, row->with,
               rest);
    return (n < 1
            || ((n == 2 || n == 3)
                && (!strcmp(row->role, "job") || !strcmp(row->role, "search"))
                && is_label(row->label) && is_label(row->with)));
}

/* Puts the rows of 'stream' before all others. */
static char *
add_rows(const char *path, FILE *stream)
{
    char *line = NULL, *error = NULL;
    size_t size = 0, n_new = 0;

    for (int i = 1; !error && getline(&line, &size, stream) >= 0; i++) {
        bool has_mark = i == 1 && !strncmp(line, "\xef\xbb\xbf", 3);
        char *text = line + (has_mark ? 3 : 0);
        struct row row;

        text[strcspn(text, "#\r\n")] = '\0';
        if (!parse_row(text, &row)) {
            error = message("%s:%d: \"%.80s\"; expected \"job LABEL\", \"job "
                            "LABEL WITH\" or \"search LABEL\", such as \"job "
                            "example.com/job-name\"",
                            path, i, text);
        } else if (row.role[0]) {
            rows = reallocate(rows, n_rows + 1, sizeof *rows);
            memmove(&rows[n_new + 1], &rows[n_new],
                    (n_rows++ - n_new) * sizeof *rows);
            rows[n_new++] = row;
        }
    }
    if (!error && ferror(stream)) {
        error = message("%s: cannot be read (%s); expected a file of labels",
                        path, strerror(errno));
    }
    free(line);
    return make_printable(error);
}

/* Reads the table's own rows, once. */
static void
begin(void)
{
    if (!rows) {
        FILE *stream = must(
            fmemopen((void *) pod_labels_table, pod_labels_table_size, "r"));

        free(add_rows("pod-labels", stream));
        fclose(stream);
    }
}

char *
pod_labels_add(const char *path)
{
    FILE *stream = fopen(path, "re");
    char *error;

    if (!stream) {
        return message("%s: cannot be opened (%s); expected a file of labels",
                       path, strerror(errno));
    }
    begin();
    error = add_rows(path, stream);
    fclose(stream);
    return error;
}

/* Returns the value of 'key', NULL if it is missing, empty or not a string. */
static const char *
get(const json_t *labels, const json_t *annotations, const char *key)
{
    const json_t *in[] = { labels, annotations };
    const char *value = NULL;

    for (int i = 0; i < 2 && (!value || !value[0]); i++) {
        value = json_string_value(json_object_get(in[i], key));
    }
    return value && value[0] ? value : NULL;
}

const char *
pod_labels_find(const char *role, const json_t *labels,
                const json_t *annotations, bool annotated)
{
    begin();
    for (const struct row *row = rows; row < rows + n_rows; row++) {
        const char *value =
            (strcmp(row->role, role) ? NULL
                                     : get(labels, annotations, row->label));

        if (value
            && (!row->with[0] || annotated
                || get(labels, annotations, row->with))) {
            return value;
        }
    }
    return NULL;
}
