/* SPDX-License-Identifier: Apache-2.0 */

/* Slurm's topology.conf for topology/tree. */

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "cli/topology/import.h"

struct slurm_line {
    char *name, *switches, *nodes;      /* Values, NULL if missing. */
};

/* Stores the value of a parameter.  LinkSpeed is ignored, as by Slurm. */
static void
set_parameter(struct import *im, int line, struct slurm_line *l,
              const char *key, char *value)
{
    char **place = !strcasecmp(key, "SwitchName") ? &l->name
                   : !strcasecmp(key, "Switches") ? &l->switches
                   : !strcasecmp(key, "Nodes") ? &l->nodes
                   : NULL;

    if (!strcasecmp(key, "LinkSpeed")) {
        return;
    }
    if (!place) {
        import_fail(im, line, "\"%.32s\" is not a parameter of topology/tree, "
                    "SwitchName, Switches, Nodes and LinkSpeed are allowed",
                    key);
    } else if (*place) {
        import_fail(im, line, "%s is there twice, once is allowed", key);
    } else {
        *place = value;
    }
}

/* Splits "Key=Value Key=\"Value\" ..." in place. */
static void
read_parameters(struct import *im, int line, char *text, struct slurm_line *l)
{
    char *next = text + strspn(text, " \t");

    while (*next && import_ok(im)) {
        char *key = next, *value, *end;

        next += strcspn(next, "= \t");
        if (*next != '=') {
            import_fail(im, line, "\"%.32s\" has no value, KEY=VALUE is "
                        "allowed", key);
            return;
        }
        *next++ = '\0';
        value = next + (*next == '"');
        end = value + strcspn(value, *next == '"' ? "\"" : " \t");
        if (*next == '"' && !*end) {
            import_fail(im, line, "the value of %.32s has no closing quote, "
                        "\"VALUE\" is allowed", key);
            return;
        }
        next = *end ? end + 1 : end;
        *end = '\0';
        if (!*value) {
            import_fail(im, line, "%.32s is empty, a value is required", key);
            return;
        }
        set_parameter(im, line, l, key, value);
        next += strspn(next, " \t");
    }
}

static void
read_line(struct import *im, int line, char *text)
{
    struct slurm_line l = { .name = NULL };
    int sw;

    text[strcspn(text, "#\r")] = '\0';
    if (!text[strspn(text, " \t")]) {
        return;
    }
    read_parameters(im, line, text, &l);
    if (!import_ok(im)) {
        return;
    }
    if (!l.name || (!l.switches && !l.nodes)) {
        import_fail(im, line, "%s is missing, SwitchName with Switches or "
                    "Nodes is allowed",
                    l.name ? "Switches or Nodes" : "SwitchName");
        return;
    }
    sw = import_switch(im, l.name, line);
    if (l.switches) {
        import_children(im, sw, l.switches, false, line);
    }
    if (l.nodes) {
        import_children(im, sw, l.nodes, true, line);
    }
}

/* Replaces each backslash at the end of a line, and that end, by spaces.
 * Returns the number of lines that the first line of 'text' takes. */
static int
join_lines(char *text)
{
    int n = 1;

    for (char *p = text; *p && *p != '\n'; p++) {
        if (p[0] == '\\' && p[1] == '\n') {
            p[0] = p[1] = ' ';
            p++;
            n++;
        }
    }
    return n;
}

void
import_slurm(struct import *im, const char *text)
{
    char *copy = duplicate(text), *next = copy;

    for (int line = 1; next && import_ok(im); ) {
        int n = join_lines(next);

        read_line(im, line, strsep(&next, "\n"));
        line += n;
    }
    free(copy);
}
