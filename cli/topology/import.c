/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/topology/import.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/name.h"

/* Limits of the topology file, and of what a list may expand to. */
#define MAX_SWITCHES 256
#define MAX_HOSTS 4096
#define MAX_LIST_NAME 255
#define MAX_DIGITS 9

struct import *
import_create(const char *file)
{
    struct import *im = allocate(1, sizeof *im);

    import_enter(im, file);
    return im;
}

char *
import_destroy(struct import *im)
{
    char *error = im->error;

    for (size_t i = 0; i < im->n; i++) {
        free(im->nodes[i].name);
    }
    free(im->nodes);
    free_strings(im->files, im->n_files);
    free(im);
    return error;
}

bool
import_ok(const struct import *im)
{
    return !im->error;
}

void
import_enter(struct import *im, const char *file)
{
    im->files = reallocate(im->files, im->n_files + 1, sizeof *im->files);
    im->files[im->n_files] = duplicate(file);
    im->at = (struct import_place){ im->files[im->n_files++], 1 };
}

void
import_fail(struct import *im, struct import_place at, const char *format, ...)
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
    im->error = message("%s:%d: %s", at.file, at.line, what);
    free(what);
}

/* Checks that the topology file allows the name. */
static bool
check_name(struct import *im, const char *name)
{
    bool good = name_is_valid(name);

    if (!good) {
        import_fail(im, im->at, "\"%.64s\" is not " NAME_RULE, name);
    }
    return good;
}

int
import_find(const struct import *im, const char *name, bool is_host)
{
    for (size_t i = 0; i < im->n; i++) {
        if (im->nodes[i].is_host == is_host
            && !strcmp(im->nodes[i].name, name)) {
            return i;
        }
    }
    return -1;
}

/* Returns the index of a host or a switch, which it creates if necessary, or
 * -1 after an error. */
static int
get_node(struct import *im, const char *name, bool is_host)
{
    int i = import_find(im, name, is_host);
    size_t max = is_host ? MAX_HOSTS : MAX_SWITCHES;

    if (im->error || i >= 0 || !check_name(im, name)) {
        return im->error ? -1 : i;
    }
    if ((is_host ? im->n_hosts : im->n - im->n_hosts) == max) {
        import_fail(im, im->at, "more than %zu %s; expected as many at most",
                    max, is_host ? "hosts" : "switches");
        return -1;
    }
    im->nodes = reallocate(im->nodes, im->n + 1, sizeof *im->nodes);
    im->nodes[im->n] = (struct import_node){
        .name = duplicate(name), .is_host = is_host, .at = im->at, .parent = -1
    };
    im->n_hosts += is_host;
    return im->n++;
}

int
import_switch(struct import *im, const char *name)
{
    int i = get_node(im, name, false);

    if (i >= 0 && im->nodes[i].added) {
        import_fail(im, im->at, "\"%s\" is in line %d too; expected once",
                    name, im->nodes[i].at.line);
        return -1;
    }
    if (i >= 0) {
        im->nodes[i].added = true;
        im->nodes[i].at = im->at;
    }
    return i;
}

void
import_child(struct import *im, int parent, const char *name, bool is_host)
{
    int i = parent < 0 ? -1 : get_node(im, name, is_host), above;

    if (i < 0) {
        return;
    }
    above = im->nodes[i].parent;
    if (above >= 0 && above != parent) {
        import_fail(im, im->at, "\"%s\" is below \"%s\" too; expected one",
                    name, im->nodes[above].name);
    }
    for (above = parent; above >= 0; above = im->nodes[above].parent) {
        if (above == i) {
            import_fail(im, im->at, "\"%s\" is below itself; expected a tree",
                        name);
            return;
        }
    }
    im->nodes[i].parent = parent;
}

/* Reads a number, unless it has too many digits or none.  Returns its end. */
static const char *
read_number(const char *text, unsigned long *value, int *digits)
{
    *digits = strspn(text, "0123456789");
    *digits = *digits <= MAX_DIGITS ? *digits : 0;
    *value = strtoul(text, NULL, 10);
    return text + *digits;
}

/* Adds all names that begin with 'prefix' and continue as 'text', an element
 * of a list. */
static void
add_names(struct import *im, int parent, const char *prefix, const char *text,
          bool is_host)
{
    const char *open = text + strcspn(text, "["), *close = strchr(text, ']');
    char *begin = message("%s%.*s", prefix, (int) (open - text), text);
    bool good = !close == !*open && strlen(begin) <= MAX_LIST_NAME;
    const char *next = open;

    if (good && !*open) {
        import_child(im, parent, begin, is_host);
    }
    while (good && *next && next != close && import_ok(im)) {
        unsigned long first, last;
        int digits, more = 1;

        next = read_number(next + 1, &first, &digits);
        last = first;
        if (*next == '-') {
            next = read_number(next + 1, &last, &more);
        }
        good = (digits && more && first <= last
                && (*next == ',' || next == close));
        for (; good && import_ok(im) && first <= last; first++) {
            char *name = message("%s%0*lu", begin, digits, first);

            add_names(im, parent, name, close + 1, is_host);
            free(name);
        }
    }
    if (!good) {
        import_fail(im, im->at,
                    "\"%.32s%.32s\" is no list; expected node[01-16,20], %d "
                    "digits and %d characters at most",
                    prefix, text, MAX_DIGITS, MAX_LIST_NAME);
    }
    free(begin);
}

void
import_children(struct import *im, int parent, const char *list, bool is_host)
{
    const char *next = list ? list : "";

    while (*next && import_ok(im)) {
        const char *begin = next;
        bool inside = false;
        char *element;

        for (; *next && (inside || !strchr(", \t", *next)); next++) {
            inside = *next == '[' || (inside && *next != ']');
        }
        element = message("%.*s", (int) (next - begin), begin);
        if (*element) {
            add_names(im, parent, "", element, is_host);
        }
        free(element);
        next += *next != '\0';
    }
}

void
import_finish(struct import *im)
{
    if (im->n == im->n_hosts) {
        import_fail(im, im->at, "no switch; expected at least one");
    }
    for (size_t i = 0; i < im->n; i++) {
        const struct import_node *node = &im->nodes[i];

        if (!node->is_host && !node->added) {
            import_fail(im, node->at,
                        "no switch \"%s\"; expected one of the file",
                        node->name);
        }
    }
}
