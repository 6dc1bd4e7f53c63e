/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/topology/import.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/topology/host-list.h"

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
