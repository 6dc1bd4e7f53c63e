/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/options.h"

#include <string.h>

#include "wire/shim-protocol.h"
#include "shim/option-rows.h"
#include "shim/ports/port-driver.h"

static const struct option_row *
find_row(const char *name, size_t length)
{
    for (const struct option_row *row = option_rows; row->name; row++) {
        if (strlen(row->name) == length
            && !strncmp(row->name, name, length)) {
            return row;
        }
    }
    return NULL;
}

/* Parses the option 'argv[*i]', with its argument after '=' or in the next
 * element, and moves '*i' to the last element of it. */
static char *
parse_one(int argc, char *argv[], int *i, bool *seen, struct options *o)
{
    const char *word = argv[*i], *equals = strchr(word, '=');
    size_t length = equals ? (size_t) (equals - word) : strlen(word);
    const struct option_row *row = find_row(word, length);
    const char *argument = equals ? equals + 1 : NULL;

    if (!row) {
        return option_message("%.*s: unknown option, --help lists them",
                              (int) length, word);
    }
    if (!row->argument && argument) {
        return option_message("%s: \"%s\" is too much, it takes no argument",
                              row->name, argument);
    }
    if (row->argument && !argument) {
        if (*i + 1 >= argc) {
            return option_message("%s: needs an argument, %s", row->name,
                                  row->argument);
        }
        argument = argv[++*i];
    }
    seen[row - option_rows] = true;
    return row->parse(row, argument, o);
}

/* Do the ports go together, and with the MTU?  Congestion control sees all
 * flows, so it has one thread. */
static char *
check_together(const struct options *o)
{
    const struct port_driver *smaller =
        o->host.driver->max_mtu < o->uplink.driver->max_mtu
        ? o->host.driver : o->uplink.driver;

    if (o->mtu > smaller->max_mtu) {
        return option_message("--mtu: %u is too much for %s, at most %u is "
                              "allowed", o->mtu, smaller->name,
                              smaller->max_mtu);
    }
    if (o->poll == LOOP_INTERRUPT) {
        const struct port_driver *deaf =
            port_driver_tells(o->host.driver) ? o->uplink.driver
                                              : o->host.driver;

        if (!port_driver_tells(deaf)) {
            return option_message("--poll: %s has no receive interrupt, auto, "
                                  "busy or nap is needed", deaf->name);
        }
    }
    if (port_spec_same(&o->host, &o->uplink)) {
        return option_message("--uplink: \"%s:%s\" is the host's port, "
                              "another is needed", o->uplink.driver->name,
                              o->uplink.what);
    }
    return NULL;
}

/* Checks an option against the others: a replay has some of its own and needs
 * none of a shim's. */
static char *
check_row(const struct option_row *row, bool seen, const struct options *o)
{
    bool replays = (row->need == OPTION_REPLAY_MAY
                    || row->need == OPTION_REPLAY_MUST);

    if (!seen
        && row->need == (o->replay ? OPTION_REPLAY_MUST : OPTION_MUST)) {
        return option_message("%s: required option is missing", row->name);
    }
    if (seen && replays && !o->replay) {
        return option_message("%s: only a --replay has it", row->name);
    }
    return NULL;
}

char *
options_parse(int argc, char *argv[], struct options *o)
{
    bool seen[OPTION_MAX_ROWS] = { false };
    bool runs;

    *o = (struct options) {
        .mtu = 1500, .huge = HUGE_AUTO, .tag = true,
        .late_us = 500, .max_flows = SHIM_DEFAULT_FLOWS, .flow_timeout_s = 600,
        .n_lanes = 1,
    };
    for (int i = 1; i < argc; i++) {
        char *error = parse_one(argc, argv, &i, seen, o);

        if (error) {
            return error;
        }
    }
    o->host.keep_offload = o->uplink.keep_offload = o->keep_offload;
    o->host.n_queues = o->uplink.n_queues = o->n_lanes;
    runs = !o->show && !o->help && !o->version;
    for (size_t i = 0; option_rows[i].name && runs; i++) {
        char *error = check_row(&option_rows[i], seen[i], o);

        if (error) {
            return error;
        }
    }
    return runs && !o->replay ? check_together(o) : NULL;
}

void
options_usage(FILE *stream)
{
    fprintf(stream, "usage: stagecoach-shim OPTION...\n\n"
            "Forwards one host's packets, in the controller's order.\n\n");
    for (const struct option_row *row = option_rows; row->name; row++) {
        fprintf(stream, "  %s%s%s%s\n      %s\n", row->name,
                row->argument ? " " : "", row->argument ? row->argument : "",
                row->need == OPTION_MUST ? "  (required)" : "", row->help);
    }
    fputs("\nPorts:\n", stream);
    for (const struct port_driver *d = port_drivers; d->name; d++) {
        bool bare = d->argument == PORT_ARG_NONE;

        fprintf(stream, "  %s%s%s\n      %s\n", d->name, bare ? "" : ":",
                bare ? "" : d->example, d->help);
    }
}
