/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/topology/import.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Lists of host names as Slurm writes them: "login,node[01-16,20]".
 *
 * A number keeps the width of the first one of its range: "[08-10]" is 08, 09,
 * 10.  A name may have several brackets.
 *
 *    error = host_list_expand("node[1-3]", 4096, &names, &n);
 *    free_strings(names, n);
 */

/* Longest name that results. */
#define HOST_LIST_MAX_NAME 255

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
                       "allowed",
                       HOST_LIST_MAX_NAME);
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
                            "node[01-16,20] are allowed",
                            name);
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

/* Stores the names in '*namesp', which the caller frees, also after an error.
 * Returns NULL or a message, for example for more than 'max' names. */
static char *
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

/* Limits of the topology file. */
#define MAX_NAME 31
#define MAX_SWITCHES 256
#define MAX_HOSTS 4096

struct import *
import_create(const char *file)
{
    struct import *im = allocate(1, sizeof *im);

    im->file = duplicate(file);
    return im;
}

char *
import_destroy(struct import *im)
{
    char *error = im->error;

    for (size_t i = 0; i < im->n_switches; i++) {
        free(im->switches[i].name);
    }
    for (size_t i = 0; i < im->n_hosts; i++) {
        free(im->hosts[i].name);
    }
    free(im->switches);
    free(im->hosts);
    free(im->file);
    free(im);
    return error;
}

bool
import_ok(const struct import *im)
{
    return !im->error;
}

void
import_fail(struct import *im, int line, const char *format, ...)
{
    char *what;
    va_list args;

    if (im->error) {
        return;
    }
    va_start(args, format);
    what = message_args(format, args);
    va_end(args);
    for (char *p = what; *p; p++) {     /* A message is one line. */
        *p = iscntrl((unsigned char) *p) ? '?' : *p;
    }
    im->error = message("%s:%d: %s", im->file, line, what);
    free(what);
}

/* Checks that the topology file allows the name. */
static bool
check_name(struct import *im, const char *name, int line)
{
    size_t n = strlen(name);
    bool good = n >= 1 && n <= MAX_NAME && isalnum((unsigned char) *name);

    for (size_t i = 0; good && i < n; i++) {
        good = isalnum((unsigned char) name[i]) || strchr("._-", name[i]);
    }
    if (!good) {
        import_fail(im, line, "\"%.64s\" is not a name, 1 to %d letters, "
                    "digits and \"._-\" are allowed, a letter or digit first",
                    name, MAX_NAME);
    }
    return good;
}

int
import_find_switch(const struct import *im, const char *name)
{
    for (size_t i = 0; i < im->n_switches; i++) {
        if (!strcmp(im->switches[i].name, name)) {
            return i;
        }
    }
    return -1;
}

/* Returns the index of switch 'name', which it creates if necessary, or -1
 * after an error. */
static int
get_switch(struct import *im, const char *name, int line)
{
    int i;

    if (im->error || !check_name(im, name, line)) {
        return -1;
    }
    i = import_find_switch(im, name);
    if (i >= 0) {
        return i;
    }
    if (im->n_switches == MAX_SWITCHES) {
        import_fail(im, line, "more than %d switches, as many are allowed",
                    MAX_SWITCHES);
        return -1;
    }
    im->switches = reallocate(im->switches, im->n_switches + 1,
                              sizeof *im->switches);
    im->switches[im->n_switches] = (struct import_switch) {
        .name = duplicate(name), .line = line, .parent = -1,
    };
    return im->n_switches++;
}

int
import_switch(struct import *im, const char *name, int line)
{
    int i = get_switch(im, name, line);

    if (i >= 0 && im->switches[i].added) {
        import_fail(im, line, "switch \"%s\" is in line %d too, each switch "
                    "once is allowed", name, im->switches[i].line);
        return -1;
    }
    if (i >= 0) {
        im->switches[i].added = true;
        im->switches[i].line = line;
    }
    return i;
}

static void
add_host(struct import *im, int parent, const char *name, int line)
{
    for (size_t i = 0; i < im->n_hosts; i++) {
        if (!strcmp(im->hosts[i].name, name)) {
            import_fail(im, line, "host \"%s\" is at switch \"%s\" too, one "
                        "switch is allowed", name,
                        im->switches[im->hosts[i].parent].name);
            return;
        }
    }
    if (im->n_hosts == MAX_HOSTS) {
        import_fail(im, line, "more than %d hosts, as many are allowed",
                    MAX_HOSTS);
    } else if (check_name(im, name, line)) {
        im->hosts = reallocate(im->hosts, im->n_hosts + 1, sizeof *im->hosts);
        im->hosts[im->n_hosts++] = (struct import_host) {
            .name = duplicate(name), .line = line, .parent = parent,
        };
    }
}

void
import_child(struct import *im, int parent, const char *name, bool is_host,
             int line)
{
    int i;

    if (im->error || parent < 0) {
        return;
    }
    if (is_host) {
        add_host(im, parent, name, line);
        return;
    }
    i = get_switch(im, name, line);
    if (i < 0) {
        return;
    }
    if (im->switches[i].parent >= 0) {
        import_fail(im, line, "switch \"%s\" is below \"%s\" too, one parent "
                    "is allowed", name,
                    im->switches[im->switches[i].parent].name);
        return;
    }
    im->switches[i].parent = parent;
}

void
import_children(struct import *im, int parent, const char *list, bool is_host,
                int line)
{
    char **names;
    size_t n;
    char *error;

    if (im->error) {
        return;
    }
    error = host_list_expand(list, MAX_HOSTS, &names, &n);
    if (error) {
        import_fail(im, line, "%s", error);
        free(error);
    }
    for (size_t i = 0; i < n; i++) {
        import_child(im, parent, names[i], is_host, line);
    }
    free_strings(names, n);
}

void
import_finish(struct import *im)
{
    if (!im->error && !im->n_switches) {
        import_fail(im, 1, "no switch, at least one is required");
    }
    for (size_t i = 0; i < im->n_switches; i++) {
        const struct import_switch *sw = &im->switches[i];
        size_t n_above = 0;

        if (!sw->added) {
            import_fail(im, sw->line, "switch \"%s\" is not in the file, a "
                        "name of one of its switches is allowed", sw->name);
        }
        for (int j = sw->parent; j >= 0 && n_above <= im->n_switches; ) {
            j = im->switches[j].parent;
            n_above++;
        }
        if (n_above > im->n_switches) {
            import_fail(im, sw->line, "switch \"%s\" is below itself, a tree "
                        "is allowed", sw->name);
        }
    }
}
