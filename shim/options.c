/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/name.h"
#include "base/options.h"
#include "shim/ports/port-spec.h"
#include "wire/shim-protocol.h"

static char *
parse_rate(const char *text, void *bps)
{
    static const struct {
        const char *unit;
        double factor;
    } units[] = {
        { "bit", 1 }, { "kbit", 1e3 }, { "mbit", 1e6 }, { "gbit", 1e9 },
    };
    char *unit;
    double number = strtod(text, &unit);

    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        double value = number * units[i].factor;

        if (isdigit((unsigned char) *text) && !strcasecmp(unit, units[i].unit)
            && value >= SHIM_MIN_RATE && value <= SHIM_MAX_RATE) {
            *(uint64_t *) bps = value + 0.5;
            return NULL;
        }
    }
    return message("\"%s\" is not a rate, such as 50Mbit", text);
}

static char *
parse_port(const char *text, void *port)
{
    return port_spec_parse(text, port);
}

static char *
parse_name(const char *text, void *name)
{
    if (!name_is_valid(text)) {
        return message("\"%s\" is not " NAME_RULE, text);
    }
    *(const char **) name = text;
    return NULL;
}

static char *
parse_cpus(const char *text, void *cpus)
{
    if (!isdigit((unsigned char) *text) || text[strspn(text, "0123456789,-")]
        || !isdigit((unsigned char) text[strlen(text) - 1])) {
        return message("\"%s\" is not a list of CPUs, such as 0-1", text);
    }
    *(const char **) cpus = text;
    return NULL;
}

static char *
parse_huge(const char *text, void *huge)
{
    (void) text;
    *(enum huge_pages *) huge = HUGE_YES;
    return NULL;
}

static char *
parse_no_huge(const char *text, void *huge)
{
    (void) text;
    *(enum huge_pages *) huge = HUGE_NO;
    return NULL;
}

static char *
parse_control_port(const char *text, void *options)
{
    struct options *o = options;
    char *end;
    long port = strtol(text, &end, 10);

    if (end == text || *end || port < 1 || port > 65535) {
        return message("\"%s\" is not an integer from 1 to 65535", text);
    }
    if (o->n_control_ports == CC_MAX_CONTROL_PORTS) {
        return message("%s is one too many; expected at most %d", text,
                       CC_MAX_CONTROL_PORTS);
    }
    o->control_ports[o->n_control_ports++] = port;
    return NULL;
}

static char *
parse_tunnel(const char *text, void *options)
{
    struct options *o = options;

    if (o->tunnels.n == PREFIX_LIST_MAX) {
        return message("%s is one too many; expected at most %d", text,
                       PREFIX_LIST_MAX);
    }
    if (!prefix_parse(text, &o->tunnels.prefixes[o->tunnels.n])) {
        return message(
            "\"%s\" is not an address; expected ADDRESS or ADDRESS/BITS",
            text);
    }
    o->tunnels.n++;
    return NULL;
}

#define AT(MEMBER) OPTION_AT(struct options, MEMBER)

/* The first N_REQUIRED rows are required unless --show or --replay is given,
 * the first N_REPLAY_REQUIRED rows after --replay with --replay. */
enum {
    N_REQUIRED = 5,
    REPLAY = N_REQUIRED,
    N_REPLAY_REQUIRED = 2,
    N_REPLAY = 3,
};

static const struct option_row rows[] = {
    { "name", OPTION_CUSTOM, AT(name), .value = "NAME", .parse = parse_name,
      .help = "name of the host (required)" },
    { "host-port", OPTION_CUSTOM, AT(host), .value = "KIND:WHAT",
      .parse = parse_port,
      .help = "port to the host, such as af_packet:eth0 (required)" },
    { "uplink", OPTION_CUSTOM, AT(uplink), .value = "KIND:WHAT",
      .parse = parse_port,
      .help = "port to the network, such as af_packet:eth1 (required)" },
    { "rate", OPTION_CUSTOM, AT(rate_bps), .value = "RATE",
      .parse = parse_rate,
      .help = "capacity of the uplink, such as 50Mbit (required)" },
    { "control", OPTION_TEXT, AT(control), .value = "PATH",
      .help = "create the control socket here (required)" },

    { "replay", OPTION_TEXT, AT(replay), .value = "FILE",
      .help = "forward the packets of this capture (pcap, pcapng) and exit" },
    { "rules", OPTION_TEXT, AT(rules), .value = "FILE",
      .help = "with --replay: jobs, their flows and their classes "
              "(required)" },
    { "out", OPTION_TEXT, AT(out), .value = "FILE",
      .help = "with --replay: write the packets sent to the uplink (pcap, "
              "required)" },
    { "to-host", OPTION_TEXT, AT(to_host), .value = "FILE",
      .help = "with --replay: write the packets sent to the host (pcap)" },

    { "show", OPTION_TEXT, AT(show), .value = "PATH",
      .help = "print the state of the shim with this control socket and "
              "exit" },
    { "mtu", OPTION_INTEGER, AT(mtu), PORT_MIN_MTU, PORT_MAX_MTU, "BYTES",
      "1500", .help = "longest IP packet, bytes" },
    { "cpus", OPTION_CUSTOM, AT(cpus), .value = "LIST", .parse = parse_cpus,
      .shown = "all allowed CPUs",
      .help = "CPUs that the threads run on, such as 0-1" },
    { "huge", OPTION_CUSTOM, AT(huge), .parse = parse_huge,
      .shown = "if there are enough", .help = "use huge pages" },
    { "no-huge", OPTION_CUSTOM, AT(huge), .parse = parse_no_huge,
      .help = "do not use huge pages" },
    { "no-tag", OPTION_FLAG, AT(no_tag),
      .help = "leave the DSCP of packets unchanged" },
    { "host-tags", OPTION_CHOICE, AT(host_tags), .value = "no|yes",
      .shown = "yes for ports of the kernel",
      .help = "whether the host's frames have the tags by which "
              "the agent's programs mark their jobs" },
    { "keep-offload", OPTION_FLAG, AT(keep_offload),
      .help = "leave the offloads of the interfaces unchanged" },
    { "poll", OPTION_CHOICE, AT(poll), .value = "auto|busy|sleep|interrupt",
      .deflt = "auto", .help = "what an idle loop does" },
    { "vxlan", OPTION_CUSTOM, .value = "ADDRESS[/BITS]", .parse = parse_tunnel,
      .help = "find the jobs of received packets by the inner flows of "
              "tunnels (VXLAN, Geneve, IP in IP) whose two ends are such "
              "addresses (up to 16 times)" },
    { "vxlan-port", OPTION_INTEGER, AT(tunnels.vxlan_port), 1, 65535, "PORT",
      .shown = "4789 and 8472", .help = "with --vxlan: UDP port of VXLAN" },
    { "geneve-port", OPTION_INTEGER, AT(tunnels.geneve_port), 1, 65535, "PORT",
      .shown = "6081", .help = "with --vxlan: UDP port of Geneve" },
    { "cc", OPTION_CHOICE, AT(cc), .value = "off|on", .deflt = "on",
      .help = "congestion control: grant rates of the downlink to its "
              "senders, and pace" },
    { "downlink-rate", OPTION_CUSTOM, AT(downlink_bps), .value = "RATE",
      .parse = parse_rate, .shown = "as --rate",
      .help = "with --cc: capacity of the downlink" },
    { "switch-queues", OPTION_CHOICE, AT(strict_switch), .value = "one|strict",
      .deflt = "one",
      .help = "with --cc: what the switch's port to this host "
              "has: one queue, or levels in strict order" },
    { "control-port", OPTION_CUSTOM, .value = "PORT",
      .parse = parse_control_port,
      .help = "with --cc: port of their job's control class, such as that "
              "of heartbeats (1 to 65535, up to 16 times)" },
    { "take-over", OPTION_FLAG, AT(take_over),
      .help = "replace the shim that has the control socket" },
    { "late", OPTION_INTEGER, AT(late_us), 0, 10000, "US", "500",
      .help = "longest delay of the loop that pacing compensates, "
              "microseconds" },
    { .name = NULL },
};

static const struct option_table table = {
    .name = "stagecoach-shim",
    .version = "stagecoach-shim " STAGECOACH_VERSION,
    .usage = "usage: stagecoach-shim OPTION...\n\n"
             "Forwards the packets of one host in the order of the "
             "controller.\n",
    .rows = rows,
};

/* Checks the ports against each other and against the MTU. */
static char *
check_together(const struct options *o)
{
    const struct port_driver *smaller =
        o->host.driver->max_mtu < o->uplink.driver->max_mtu
        ? o->host.driver : o->uplink.driver;

    if (o->mtu > smaller->max_mtu) {
        return message("--mtu: %u is too much for %s; expected at most %u",
                       o->mtu, smaller->name, smaller->max_mtu);
    }
    if (o->poll == LOOP_INTERRUPT) {
        const struct port_driver *driver =
            port_driver_has_rx_irq(o->host.driver) ? o->uplink.driver
                                                   : o->host.driver;

        if (!port_driver_has_rx_irq(driver)) {
            return message("--poll: %s has no receive interrupt, auto, "
                                  "busy or sleep is needed", driver->name);
        }
    }
    if (port_spec_same(&o->host, &o->uplink)) {
        return message("--uplink: \"%s:%s\" is the host's port, "
                              "another is needed", o->uplink.driver->name,
                              o->uplink.what);
    }
    return NULL;
}

/* Checks that the options of the mode, forwarding or replay, are complete. */
static char *
check_mode(const struct options *o, const bool *seen)
{
    const struct prefix_list *tunnels = &o->tunnels;
    int first = o->replay ? REPLAY + 1 : 0;
    int n = o->replay ? N_REPLAY_REQUIRED : N_REQUIRED;

    for (int i = first; i < first + n; i++) {
        if (!seen[i]) {
            return message("--%s: required option is missing", rows[i].name);
        }
    }
    if ((tunnels->vxlan_port || tunnels->geneve_port) && !tunnels->n) {
        return message("--%s-port: without --vxlan; expected both",
                       tunnels->vxlan_port ? "vxlan" : "geneve");
    }
    if (tunnels->vxlan_port && tunnels->vxlan_port == tunnels->geneve_port) {
        return message("--geneve-port: %u is VXLAN's; expected another",
                       tunnels->geneve_port);
    }
    for (int i = REPLAY + 1; i <= REPLAY + N_REPLAY && !o->replay; i++) {
        if (seen[i]) {
            return message("--%s: without --replay; expected both",
                           rows[i].name);
        }
    }
    return NULL;
}

char *
options_parse(int argc, char *argv[], struct options *o)
{
    struct option_outcome outcome;
    char *error;

    *o = (struct options){ .huge = HUGE_AUTO, .host_tags = -1 };
    error = option_table_parse(&table, argc, argv, o, &outcome);
    o->help = outcome.help;
    o->version = outcome.version;
    o->host.keep_offload = o->uplink.keep_offload = o->keep_offload;
    if (error || o->help || o->version || o->show) {
        return error;
    }
    error = check_mode(o, outcome.seen);
    if (!error && !o->replay) {
        o->host.slot_tags =
            (o->host_tags < 0 ? port_driver_has_slot_tags(o->host.driver)
                              : o->host_tags);
    }
    return error || o->replay ? error : check_together(o);
}

void
options_usage(FILE *stream)
{
    option_table_help(&table, stream);
    fputs("\nPorts:\n", stream);
    for (const struct port_driver *d = port_drivers; d->name; d++) {
        bool bare = d->argument == PORT_ARG_NONE;

        fprintf(stream, "  %s%s%s\n      %s\n", d->name, bare ? "" : ":",
                bare ? "" : d->example, d->help);
    }
}
