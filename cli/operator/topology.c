/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach topology: makes topology files. */

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/rate.h"
#include "cli/topology/import.h"
#include "controller/southbound/topology/topology.h"

#define COMMAND "stagecoach topology import"

enum source { FROM_SLURM, FROM_TOPOGRAPH, FROM_VOLCANO };

struct topology_args {
    enum source from;
    const char *tree, *nodes;
    struct import_extra extra;
};

/* Parses "RATE" or "SWITCH=RATE". */
static char *
parse_uplink_rate(const char *text, void *args_)
{
    struct topology_args *args = args_;
    struct import_extra *extra = &args->extra;
    const char *equals = strchr(text, '=');
    int64_t rate;
    char *error = rate_option(equals ? equals + 1 : text, &rate);

    if (!error && equals) {
        extra->uplink_rates = reallocate(extra->uplink_rates,
                                         extra->n_uplink_rates + 1,
                                         sizeof *extra->uplink_rates);
        extra->uplink_rates[extra->n_uplink_rates++] = duplicate(text);
    } else if (!error) {
        extra->uplink_rate = rate;
    }
    return error;
}

#define AT(MEMBER) OPTION_AT(struct topology_args, MEMBER)

static const struct option_row option_rows[] = {
    { "from", OPTION_CHOICE, AT(from), .value = "slurm|topograph|volcano",
      .required = true, .help = "format of FILE" },
    { "tree", OPTION_TEXT, AT(tree), .value = "NAME",
      .help = "name of the topology to read, if topology.yaml has several "
              "(topograph)" },
    { "nodes", OPTION_TEXT, AT(nodes), .value = "FILE",
      .help = "nodes of the cluster, by \"kubectl get nodes -o json\", for "
              "HyperNodes that select them by expressions or labels "
              "(volcano)" },
    { "rate", OPTION_CUSTOM, AT(extra.rate), .value = "RATE", .required = true,
      .parse = rate_option, .help = "rate of hosts' links, such as 100Gbit" },
    { "uplink-rate", OPTION_CUSTOM, .value = "[SWITCH=]RATE", .repeated = true,
      .parse = parse_uplink_rate,
      .help = "rate of all cables together from a switch to its parent, for "
              "one switch or for all others" },
    { "switches", OPTION_TEXT, AT(extra.switches), .value = "FILE",
      .required = true,
      .help = "lines \"NAME TARGET DATAPATH\": OpenFlow address and datapath "
              "id of each switch" },
    { "addresses", OPTION_TEXT, AT(extra.addresses), .value = "FILE",
      .deflt = "/etc/hosts",
      .help = "lines \"ADDRESS NAME...\": IPv4 addresses of hosts" },
    { "ports", OPTION_TEXT, AT(extra.ports), .value = "FILE",
      .help = "lines \"SWITCH NEIGHBOUR PORT\": OpenFlow ports; without it, "
              "ports are numbered from 1: hosts, children, parent" },
    { .name = NULL },
};

static const struct option_table option_table = {
    .name = COMMAND, .rows = option_rows,
    .usage =
        "usage: stagecoach topology import FILE --from FORMAT --rate RATE\n"
        "       --switches FILE [--uplink-rate [SWITCH=]RATE...] [OPTION...]\n"
        "\n"
        "Prints a topology file for the controller, from Slurm's "
        "topology.conf\n"
        "(slurm), the tree of a topology.yaml (topograph), or HyperNodes of\n"
        "Volcano in JSON or YAML (volcano).\n",
    .operand = "files", .min_operands = 1, .max_operands = 1,
};

/* Returns the topology, or NULL and an error.  The controller's reader checks
 * it. */
static cJSON *
import(const struct topology_args *args, const char *file, char **errorp)
{
    char *text, *nodes = NULL;
    struct topology *topology;
    cJSON *top = NULL;
    struct import *im;

    *errorp = json_read_file(file, &text);
    if (!*errorp && args->nodes) {
        *errorp = json_read_file(args->nodes, &nodes);
    }
    if (*errorp) {
        free(text);
        return NULL;
    }
    im = import_create(file);
    if (args->from == FROM_SLURM) {
        import_slurm(im, text);
    } else if (args->from == FROM_TOPOGRAPH) {
        import_topograph(im, text, args->tree);
    } else {
        import_volcano(im, text, nodes);
    }
    free(text);
    free(nodes);
    import_finish(im);
    if (import_ok(im)) {
        top = import_to_json(im, &args->extra);
    }
    *errorp = import_destroy(im);
    if (top) {
        text = must(cJSON_Print(top));
        *errorp = topology_parse(COMMAND": topology", text, &topology);
        topology_destroy(topology);
        free(text);
    }
    return top;
}

static int
run_import(int argc, char *argv[])
{
    struct topology_args args = { .from = FROM_SLURM };
    int first;
    int status = option_table_command(&option_table, argc, argv, &args,
                                      &first);

    if (status < 0 && args.tree && args.from != FROM_TOPOGRAPH) {
        fputs(COMMAND": --tree requires --from topograph\n", stderr);
        status = EXIT_USAGE;
    } else if (status < 0 && args.nodes && args.from != FROM_VOLCANO) {
        fputs(COMMAND ": --nodes requires --from volcano\n", stderr);
        status = EXIT_USAGE;
    }
    if (status < 0) {
        char *error;
        cJSON *top = import(&args, argv[first], &error);

        if (error) {
            status = command_fail(NULL, error);
            cJSON_Delete(top);
        } else {
            command_print_json(top);
            status = fflush(stdout) ? EXIT_NO : EXIT_OK;
        }
    }
    free_strings(args.extra.uplink_rates, args.extra.n_uplink_rates);
    return status;
}

int
cmd_topology(int argc, char *argv[])
{
    static const struct command commands[] = {
        { "import", "FILE --from slurm|topograph|volcano [OPTION...]",
          "Make a topology file from that of another system.", run_import },
        { NULL, NULL, NULL, NULL },
    };

    return command_dispatch(commands, "stagecoach topology", argc - 1,
                            argv + 1);
}
