/* SPDX-License-Identifier: Apache-2.0 */

/* Slurm's topology.conf for topology/tree. */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json-check.h"
#include "base/memory.h"
#include "cli/topology/import.h"

#define BLANKS " \t\r\v\f"
#define MAX_FILES 64

/* What a line may have. */
enum { SWITCH_NAME, SWITCHES, NODES, LINK_SPEED, N_PARAMETERS };

static const char *const names[] = { "SwitchName", "Switches", "Nodes",
                                     "LinkSpeed" };

static void
set_parameter(struct import *im, const char *key, char *value,
              char *values[N_PARAMETERS])
{
    int i = 0;

    while (i < N_PARAMETERS && strcasecmp(key, names[i])) {
        i++;
    }
    if (i == N_PARAMETERS) {
        import_fail(im, im->at,
                    "\"%.32s\" is not supported; expected "
                    "SwitchName, Switches, Nodes or LinkSpeed",
                    key);
    } else if (values[i]) {
        import_fail(im, im->at, "%s is there twice; expected it once", key);
    } else {
        values[i] = value;
    }
}

/* Splits "Key=Value Key=\"Value\" ..." in place. */
static void
read_parameters(struct import *im, char *next, char *values[N_PARAMETERS])
{
    while (*(next += strspn(next, BLANKS)) && import_ok(im)) {
        char *key = next, *end = key + strcspn(key, "=" BLANKS), *value;
        bool assigns, quoted;

        next = end + strspn(end, BLANKS);
        assigns = *next == '=' && end > key;
        *end = '\0';
        next += assigns;
        next += strspn(next, BLANKS);
        quoted = *next == '"';
        value = next + quoted;
        next = value + strcspn(value, quoted ? "\"" : BLANKS);
        if (!assigns || next == value || (quoted && !*next)) {
            import_fail(im, im->at,
                        "\"%.32s\" has no value; expected KEY=VALUE", key);
            return;
        }
        if (*next) {
            *next++ = '\0';
        }
        set_parameter(im, key, value, values);
    }
}

/* Reads the file 'name', which is relative to the folder of this one. */
static void
include(struct import *im, const char *name)
{
    const struct import_place at = im->at;
    const char *slash = strrchr(at.file, '/');
    int folder = *name != '/' && slash ? slash + 1 - at.file : 0;
    char *file = message("%.*s%s", folder, at.file, name);
    char *text, *error = json_read_file(file, &text);

    if (error || im->n_files == MAX_FILES) {
        import_fail(im, at, "%s",
                    error ? error : "one file too many; expected 64 at most");
    } else {
        import_enter(im, file);
        import_slurm(im, text);
        im->at = at;
    }
    free(error);
    free(text);
    free(file);
}

static void
read_line(struct import *im, char *text)
{
    char *values[N_PARAMETERS] = { NULL };
    int sw;

    text += strspn(text, BLANKS);
    if (!strncasecmp(text, "Include", 7) && strspn(text + 7, BLANKS)) {
        text += 7 + strspn(text + 7, BLANKS);
        text[strcspn(text, BLANKS)] = '\0';
        include(im, text);
    } else if (*text) {
        read_parameters(im, text, values);
        if (!values[SWITCH_NAME] || (!values[SWITCHES] && !values[NODES])) {
            import_fail(im, im->at, "no %s; expected \"SwitchName=a Nodes=b\"",
                        values[SWITCH_NAME] ? "Switches or Nodes"
                                            : "SwitchName");
        }
        sw = import_ok(im) ? import_switch(im, values[SWITCH_NAME]) : -1;
        import_children(im, sw, values[SWITCHES], false);
        import_children(im, sw, values[NODES], true);
    }
}

/* Cuts the comment from 'line', and the backslash at its end.  Returns true if
 * there was one, so that it is continued. */
static bool
cut_line(char *line)
{
    size_t n = 0; /* Backslashes before 'p'. */
    char *p;

    for (p = line; *p && (*p != '#' || n % 2); p++) {
        n = *p == '\\' ? n + 1 : 0;
    }
    *p = '\0';
    while (p > line && isspace((unsigned char) p[-1])) {
        p--;
    }
    for (n = 0; p > line && p[-1] == '\\'; p--) {
        n++;
    }
    if (n % 2) {
        p[n - 1] = '\0';
    }
    return n % 2;
}

/* Removes each backslash that makes the next character an ordinary one. */
static void
unescape(char *text)
{
    char *to = text;

    for (; *text; text++) {
        text += *text == '\\' && text[1];
        *to++ = *text;
    }
    *to = '\0';
}

void
import_slurm(struct import *im, const char *text)
{
    char *copy = duplicate(text), *next = copy;
    int line = 1;

    while (next && import_ok(im)) {
        char *joined = next, *end = joined;
        bool more = true;

        im->at.line = line;
        for (; more && next; line++) {
            char *piece = strsep(&next, "\n");

            more = cut_line(piece);
            memmove(end, piece, strlen(piece) + 1);
            end += strlen(end);
        }
        unescape(joined);
        read_line(im, joined);
    }
    free(copy);
}
