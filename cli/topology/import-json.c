/* SPDX-License-Identifier: Apache-2.0 */

/* Writes an imported tree as a topology file, with what the source lacks from
 * files of lines of words. */

#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
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

static void
words_uninit(struct words *w)
{
    free(w->text);
    free(w->lines);
}

/* Reports an error in a line of 'w', which is another file than the one that
 * 'im' reads. */
static void
fail_at(struct import *im, const struct words *w, int line, const char *what)
{
    if (!im->error) {
        im->error = message("%s:%d: %s", w->file, line, what);
    }
}

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
            fail_at(im, w, line, rule);
        } else if (l.n) {
            w->lines = reallocate(w->lines, w->n + 1, sizeof *w->lines);
            w->lines[w->n++] = l;
        }
    }
}

/* Returns the IPv4 address of a host, or NULL.  Addresses of the machine
 * itself do not count. */
static const char *
find_address(const struct words *w, const char *name)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct words_line *l = &w->lines[i];
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

/* The files, and the port that each switch uses next. */
struct writer {
    struct import *im;
    const struct import_extra *extra;
    struct words addresses, switches, ports;
    uint32_t *next_port;        /* By switch. */
};

static void
add_rate(cJSON *object, int64_t rate)
{
    char *text =
        rate % 1000000000 == 0 ? message("%" PRId64 "Gbit", rate / 1000000000)
        : rate % 1000000 == 0  ? message("%" PRId64 "Mbit", rate / 1000000)
                               : message("%" PRId64 ".%03dkbit", rate / 1000,
                                         (int) (rate % 1000));

    cJSON_AddStringToObject(object, "capacity", text);
    free(text);
}

/* Returns {"switch", "port"}: the port of switch 'sw' that leads to
 * 'neighbour'. */
static cJSON *
make_port(struct writer *w, int sw, const char *neighbour)
{
    const char *name = w->im->switches[sw].name;
    uint32_t port = ++w->next_port[sw];
    cJSON *end = cJSON_CreateObject();

    if (w->extra->ports) {
        port = 0;
        for (size_t i = 0; i < w->ports.n; i++) {
            const struct words_line *l = &w->ports.lines[i];
            char *rest;

            if (!strcmp(l->words[0], name)
                && !strcmp(l->words[1], neighbour)) {
                unsigned long x = strtoul(l->words[2], &rest, 10);

                port = *rest || x < 1 || x > 65279 ? 0 : x;
                if (!port) {
                    fail_at(w->im, &w->ports, l->line, "the third word is not "
                            "a port, 1 to 65279 is allowed");
                }
            }
        }
        if (!port) {
            import_fail(w->im, w->im->switches[sw].line, "the port of switch "
                        "\"%s\" to \"%s\" is not in %s, each port is "
                        "required there", name, neighbour, w->extra->ports);
        }
    }
    cJSON_AddStringToObject(end, "switch", name);
    cJSON_AddNumberToObject(end, "port", port);
    return end;
}

static void
add_switch(struct writer *w, cJSON *list, const struct import_switch *sw)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddItemToArray(list, o);
    cJSON_AddStringToObject(o, "name", sw->name);
    for (size_t i = 0; i < w->switches.n; i++) {
        const struct words_line *l = &w->switches.lines[i];

        if (!strcmp(l->words[0], sw->name)) {
            cJSON_AddStringToObject(o, "target", l->words[1]);
            cJSON_AddStringToObject(o, "datapath", l->words[2]);
            return;
        }
    }
    import_fail(w->im, sw->line, "switch \"%s\" is not in %s, each switch is "
                "required there", sw->name, w->extra->switches);
}

static void
add_host(struct writer *w, cJSON *list, const struct import_host *host)
{
    const char *address = find_address(&w->addresses, host->name);
    cJSON *o = cJSON_CreateObject();

    cJSON_AddItemToArray(list, o);
    if (!address) {
        import_fail(w->im, host->line, "host \"%s\" has no IPv4 address in "
                    "%s, each host is required there (another file: "
                    "--addresses)", host->name, w->extra->addresses);
        return;
    }
    cJSON_AddStringToObject(o, "name", host->name);
    cJSON_AddStringToObject(o, "ip", address);
    cJSON_AddItemToObject(o, "at", make_port(w, host->parent, host->name));
    add_rate(o, w->extra->rate);
}

/* Returns the rate of the link from a switch to its parent, 0 if there is
 * none. */
static int64_t
uplink_rate(const struct writer *w, const struct import_switch *sw)
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

/* Adds the links from switch 'parent' to its children.  Ports at the children
 * come last, so they are made by add_uplinks(). */
static void
add_links(struct writer *w, cJSON *list, int parent)
{
    for (size_t i = 0; i < w->im->n_switches; i++) {
        const struct import_switch *sw = &w->im->switches[i];
        cJSON *o, *ends;

        if (sw->parent != parent) {
            continue;
        }
        if (!uplink_rate(w, sw)) {
            import_fail(w->im, sw->line, "switch \"%s\" has a parent, "
                        "--uplink-rate is required", sw->name);
        }
        o = cJSON_CreateObject();
        cJSON_AddItemToArray(list, o);
        ends = cJSON_AddArrayToObject(o, "ends");
        cJSON_AddItemToArray(ends, make_port(w, parent, sw->name));
        add_rate(o, uplink_rate(w, sw));
        cJSON_AddNumberToObject(o, "child", i);
    }
}

/* Adds the other end of each link. */
static void
add_uplinks(struct writer *w, cJSON *links)
{
    cJSON *link;

    cJSON_ArrayForEach (link, links) {
        cJSON *child = cJSON_DetachItemFromObjectCaseSensitive(link, "child");
        int i = child->valueint;

        cJSON_InsertItemInArray(
            cJSON_GetObjectItemCaseSensitive(link, "ends"), 0,
            make_port(w, i, w->im->switches[w->im->switches[i].parent].name));
        cJSON_Delete(child);
    }
}

/* Checks that the switches of single rates exist. */
static void
check_uplink_rates(const struct writer *w)
{
    for (size_t i = 0; i < w->extra->n_uplink_rates; i++) {
        const char *text = w->extra->uplink_rates[i];
        char *name = message("%.*s", (int) strcspn(text, "="), text);
        int sw = import_find_switch(w->im, name);

        if (!w->im->error && (sw < 0 || w->im->switches[sw].parent < 0)) {
            w->im->error = message("--uplink-rate: \"%s\" is not a switch "
                                   "with a parent, the name of one is "
                                   "allowed", name);
        }
        free(name);
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

    w.next_port = allocate(im->n_switches, sizeof *w.next_port);
    words_init(&w.addresses, im, extra->addresses, 1, MAX_WORDS,
               "not \"ADDRESS NAME...\", which is allowed");
    words_init(&w.switches, im, extra->switches, 3, 3,
               "not three words, \"NAME TARGET DATAPATH\" is allowed");
    if (extra->ports) {
        words_init(&w.ports, im, extra->ports, 3, 3,
                   "not three words, \"SWITCH NEIGHBOUR PORT\" is allowed");
    }
    check_uplink_rates(&w);
    for (size_t i = 0; !im->error && i < im->n_switches; i++) {
        add_switch(&w, switches, &im->switches[i]);
    }
    for (size_t i = 0; !im->error && i < im->n_hosts; i++) {
        add_host(&w, hosts, &im->hosts[i]);
    }
    for (size_t i = 0; !im->error && i < im->n_switches; i++) {
        add_links(&w, links, i);
    }
    if (!im->error) {
        add_uplinks(&w, links);
    }
    words_uninit(&w.addresses);
    words_uninit(&w.switches);
    words_uninit(&w.ports);
    free(w.next_port);
    if (im->error) {
        cJSON_Delete(top);
        return NULL;
    }
    return top;
}
