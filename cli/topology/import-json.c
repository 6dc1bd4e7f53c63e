/* SPDX-License-Identifier: Apache-2.0 */

/* Writes an imported tree as a topology file, with what the source lacks from
 * files of lines of words. */

#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "base/memory.h"
#include "cli/topology/import.h"

#define MAX_WORDS 64

/* A file of lines of words; "#" begins a comment. */
struct words_line {
    int line;
    size_t n;
    char *words[MAX_WORDS];     /* In the text of the file. */
};

struct words {
    const char *file;
    char *text;
    struct words_line *lines;
    size_t n;
};

/* Reads 'file'.  A line must have 'min' to 'max' words, as 'rule' describes.
 */
static void
words_init(struct words *w, struct import *im, const char *file, size_t min,
           size_t max, const char *rule)
{
    char *next, *error;

    *w = (struct words) { .file = file };
    error = im->error ? NULL : json_read_file(file, &w->text);
    if (error) {
        im->error = error;
    }
    next = w->text;
    for (int line = 1; next && !im->error; line++) {
        char *text = strsep(&next, "\n"), *save = NULL;
        struct words_line l = { .line = line };

        text[strcspn(text, "#")] = '\0';
        for (char *word = strtok_r(text, " \t\r", &save);
             word && l.n < MAX_WORDS; word = strtok_r(NULL, " \t\r", &save)) {
            l.words[l.n++] = word;
        }
        if (l.n && (l.n < min || l.n > max)) {
            import_fail(im, (struct import_place){ file, line }, "%s", rule);
        } else if (l.n) {
            w->lines = reallocate(w->lines, w->n + 1, sizeof *w->lines);
            w->lines[w->n++] = l;
        }
    }
}

/* Returns the line that begins with 'first' and, unless that is null,
 * 'second', or NULL. */
static const struct words_line *
find_line(const struct words *w, const char *first, const char *second)
{
    for (const struct words_line *l = w->lines; l < w->lines + w->n; l++) {
        if (!strcmp(l->words[0], first)
            && (!second || !strcmp(l->words[1], second))) {
            return l;
        }
    }
    return NULL;
}

/* Returns the IPv4 address of a host, or NULL.  Addresses of the machine
 * itself do not count. */
static const char *
find_address(const struct words *w, const char *name)
{
    for (const struct words_line *l = w->lines; l < w->lines + w->n; l++) {
        struct in_addr addr;

        for (size_t j = 1; j < l->n; j++) {
            if (!strcmp(l->words[j], name)
                && inet_pton(AF_INET, l->words[0], &addr) == 1
                && ntohl(addr.s_addr) >> 24 != 127) {
                return l->words[0];
            }
        }
    }
    return NULL;
}

/* Indexes of files. */
enum { ADDRESSES, SWITCHES, PORTS };

struct writer {
    struct import *im;
    const struct import_extra *extra;
    struct words files[3];
    uint32_t *last_port; /* By node. */
};

static void
add_rate(cJSON *object, int64_t rate)
{
    char *text = (rate % 1000000000 ? message("%.15gkbit", rate / 1e3)
                                    : message("%.15gGbit", rate / 1e9));

    cJSON_AddStringToObject(object, "capacity", text);
    free(text);
}

/* Returns {"switch", "port"}: the port of switch 'sw' that leads to
 * 'neighbour'. */
static cJSON *
make_port(struct writer *w, int sw, const char *neighbour)
{
    const struct import_node *node = &w->im->nodes[sw];
    const struct words_line *l =
        find_line(&w->files[PORTS], node->name, neighbour);
    cJSON *end = cJSON_CreateObject();
    char none[] = "", *rest = none;
    unsigned long port =
        l ? strtoul(l->words[2], &rest, 10) : ++w->last_port[sw];

    if (!l && w->extra->ports) {
        import_fail(w->im, node->at,
                    "no port of \"%s\" to \"%s\" in %s; expected all",
                    node->name, neighbour, w->extra->ports);
    } else if (*rest || port < 1 || port > 65279) {
        import_fail(w->im,
                    (struct import_place){ w->files[PORTS].file, l->line },
                    "\"%.32s\" is no port; expected 1 to 65279", l->words[2]);
    }
    cJSON_AddStringToObject(end, "switch", node->name);
    cJSON_AddNumberToObject(end, "port", port);
    return end;
}

static void
add_switch(struct writer *w, cJSON *list, const struct import_node *sw)
{
    const struct words_line *l =
        find_line(&w->files[SWITCHES], sw->name, NULL);
    cJSON *o = cJSON_CreateObject();

    cJSON_AddItemToArray(list, o);
    if (l) {
        cJSON_AddStringToObject(o, "name", sw->name);
        cJSON_AddStringToObject(o, "target", l->words[1]);
        cJSON_AddStringToObject(o, "datapath", l->words[2]);
    } else {
        import_fail(w->im, sw->at, "switch \"%s\" is not in %s; expected all",
                    sw->name, w->extra->switches);
    }
}

static void
add_host(struct writer *w, cJSON *list, const struct import_node *host)
{
    const char *address = find_address(&w->files[ADDRESSES], host->name);
    cJSON *o = cJSON_CreateObject();

    cJSON_AddItemToArray(list, o);
    if (!address) {
        import_fail(w->im, host->at,
                    "no address of \"%s\" in %s; expected all, by --addresses",
                    host->name, w->extra->addresses);
        return;
    }
    cJSON_AddStringToObject(o, "name", host->name);
    cJSON_AddStringToObject(o, "ip", address);
    cJSON_AddItemToObject(o, "at", make_port(w, host->parent, host->name));
    add_rate(o, w->extra->rate);
}

/* Returns the rate of a switch's link to its parent, or 0. */
static int64_t
uplink_rate(const struct writer *w, const struct import_node *sw)
{
    size_t n = strlen(sw->name);

    for (size_t i = 0; i < w->extra->n_uplink_rates; i++) {
        const char *text = w->extra->uplink_rates[i];

        if (!strncmp(text, sw->name, n) && text[n] == '=') {
            return json_rate_parse(text + n + 1);
        }
    }
    return w->extra->uplink_rate;
}

/* Adds the link from switch 'sw' to its parent, with the parent's port. */
static void
add_link(struct writer *w, cJSON *list, const struct import_node *sw)
{
    cJSON *o = cJSON_CreateObject();

    if (!uplink_rate(w, sw)) {
        import_fail(w->im, sw->at,
                    "\"%s\" has a parent; expected --uplink-rate", sw->name);
    }
    cJSON_AddItemToArray(list, o);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(o, "ends"),
                         make_port(w, sw->parent, sw->name));
    add_rate(o, uplink_rate(w, sw));
}

/* Checks that the switches of single rates exist. */
static void
check_uplink_rates(const struct writer *w)
{
    for (size_t i = 0; i < w->extra->n_uplink_rates; i++) {
        const char *text = w->extra->uplink_rates[i];
        char *name = message("%.*s", (int) strcspn(text, "="), text);
        int sw = import_find(w->im, name, false);

        if (!w->im->error && (sw < 0 || w->im->nodes[sw].parent < 0)) {
            w->im->error = message("--uplink-rate: \"%s\" is not a switch "
                                   "with a parent; expected the name of one",
                                   name);
        }
        free(name);
    }
}

/* Adds what needs no port of a parent, then links, then their other ends: the
 * port of a switch to its parent is its last one. */
static void
add_nodes(struct writer *w, cJSON *switches, cJSON *links, cJSON *hosts)
{
    const struct import *im = w->im;

    for (int phase = 0; phase < 3; phase++) {
        cJSON *link = links->child;

        for (size_t i = 0; i < im->n && !im->error; i++) {
            const struct import_node *node = &im->nodes[i];

            if (!phase && node->is_host) {
                add_host(w, hosts, node);
            } else if (!phase) {
                add_switch(w, switches, node);
            } else if (phase == 1 && !node->is_host && node->parent >= 0) {
                add_link(w, links, node);
            } else if (!node->is_host && node->parent >= 0) {
                cJSON_InsertItemInArray(
                    cJSON_GetObjectItemCaseSensitive(link, "ends"), 0,
                    make_port(w, i, im->nodes[node->parent].name));
                link = link->next;
            }
        }
    }
}

cJSON *
import_to_json(struct import *im, const struct import_extra *extra)
{
    struct writer w = { .im = im, .extra = extra };
    cJSON *top = cJSON_CreateObject();
    cJSON *switches = cJSON_AddArrayToObject(top, "switches");
    cJSON *links = cJSON_AddArrayToObject(top, "links");
    cJSON *hosts = cJSON_AddArrayToObject(top, "hosts");

    w.last_port = allocate(im->n, sizeof *w.last_port);
    words_init(&w.files[ADDRESSES], im, extra->addresses, 1, MAX_WORDS,
               "no \"ADDRESS NAME...\", which is expected");
    words_init(&w.files[SWITCHES], im, extra->switches, 3, 3,
               "not three words; expected \"NAME TARGET DATAPATH\"");
    if (extra->ports) {
        words_init(&w.files[PORTS], im, extra->ports, 3, 3,
                   "not three words; expected \"SWITCH NEIGHBOUR PORT\"");
    }
    check_uplink_rates(&w);
    add_nodes(&w, switches, links, hosts);
    for (struct words *each = w.files; each < w.files + 3; each++) {
        free(each->text);
        free(each->lines);
    }
    free(w.last_port);
    if (im->error) {
        cJSON_Delete(top);
        return NULL;
    }
    return top;
}
