/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/topology/host-list.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define MAX_DIGITS 9

struct host_list {
    char **names;
    size_t n, max;
};

static char *
add_name(struct host_list *list, const char *name)
{
    if (!*name) {
        return message("a name is empty, names such as node[01-16,20] are "
                       "allowed");
    }
    if (strlen(name) > HOST_LIST_MAX_NAME) {
        return message("a name is longer than %d characters, which are "
                       "allowed", HOST_LIST_MAX_NAME);
    }
    if (list->n == list->max) {
        return message("more than %zu names, as many are allowed", list->max);
    }
    list->names = reallocate(list->names, list->n + 1, sizeof *list->names);
    list->names[list->n++] = duplicate(name);
    return NULL;
}

/* Reads "7" or "07-12" at '*textp' and moves it to the end.  Returns the
 * number of digits of the first number, 0 if the text is not a range. */
static int
read_range(const char **textp, unsigned long *first, unsigned long *last)
{
    const char *text = *textp;
    int n = strspn(text, "0123456789"), n_last;

    if (!n || n > MAX_DIGITS) {
        return 0;
    }
    *first = *last = strtoul(text, NULL, 10);
    text += n;
    if (*text == '-') {
        text++;
        n_last = strspn(text, "0123456789");
        if (!n_last || n_last > MAX_DIGITS) {
            return 0;
        }
        *last = strtoul(text, NULL, 10);
        text += n_last;
    }
    *textp = text;
    return *first <= *last ? n : 0;
}

/* Adds all names that begin with 'prefix' and continue as 'text', one element
 * of a list. */
static char *
expand(struct host_list *list, const char *prefix, const char *text)
{
    const char *open = strchr(text, '['), *close, *next;
    char *error = NULL;

    if (strlen(prefix) > HOST_LIST_MAX_NAME || !open) {
        char *name = message("%s%s", prefix, text);

        if (!open && strchr(name, ']')) {
            error = message("\"%.64s\" has \"]\" without \"[\", names such as "
                            "node[01-16,20] are allowed", name);
        } else {
            error = add_name(list, name);
        }
        free(name);
        return error;
    }
    close = strchr(open, ']');
    next = open + 1;
    while (!error) {
        unsigned long first, last;
        int digits = read_range(&next, &first, &last);

        if (!close || !digits || (*next != ',' && next != close)) {
            return message("\"%.64s\" is not a list of numbers, such as "
                           "[01-16,20] with at most %d digits is allowed",
                           open, MAX_DIGITS);
        }
        for (unsigned long i = first; !error && i <= last; i++) {
            char *begin = message("%s%.*s%0*lu", prefix, (int) (open - text),
                                  text, digits, i);

            error = expand(list, begin, close + 1);
            free(begin);
        }
        if (next++ == close) {
            break;
        }
    }
    return error;
}

/* Returns the end of the first element of 'text': its comma outside brackets,
 * or its end. */
static const char *
element_end(const char *text)
{
    bool inside = false;

    for (; *text && (inside || *text != ','); text++) {
        inside = *text == '[' || (inside && *text != ']');
    }
    return text;
}

char *
host_list_expand(const char *text, size_t max, char ***namesp, size_t *np)
{
    struct host_list list = { .max = max };
    char *error = NULL;

    for (;;) {
        const char *end = element_end(text);
        char *element = message("%.*s", (int) (end - text), text);

        error = expand(&list, "", element);
        free(element);
        if (error || !*end) {
            break;
        }
        text = end + 1;
    }
    *namesp = list.names;
    *np = list.n;
    return error;
}
