/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/options.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "shim/control/protocol.h"
#include "shim/ports/port-driver.h"

#define MAX_LATE_US 10000

static char *format(const char *, ...) __attribute__((format(printf, 1, 2)));

static char *
format(const char *template, ...)
{
    va_list args;
    char *s;
    int n;

    va_start(args, template);
    n = vasprintf(&s, template, args);
    va_end(args);
    return n < 0 ? strdup("no memory") : s;
}

bool
options_parse_rate(const char *text, uint64_t *bps)
{
    static const struct {
        const char *unit;
        double factor;
    } units[] = {
        { "bit", 1 }, { "kbit", 1e3 }, { "mbit", 1e6 }, { "gbit", 1e9 },
    };
    char *unit;
    double value;

    if (!isdigit((unsigned char) *text)) {
        return false;
    }
    value = strtod(text, &unit);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (!strcasecmp(unit, units[i].unit)) {
            value *= units[i].factor;
            if (!(value >= SHIM_MIN_RATE && value <= SHIM_MAX_RATE)) {
                return false;
            }
            *bps = value + 0.5;
            return true;
        }
    }
    return false;
}

static char *
parse_name(const char *text, struct options *o)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789"
                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ._-");

    if (!n || text[n] || n > 31 || text[0] == '.') {
        return format("--name: \"%s\" is not 1 to 31 letters, digits, '.', "
                      "'_' and '-'", text);
    }
    o->name = text;
    return NULL;
}

static char *
parse_host_port(const char *text, struct options *o)
{
    return port_spec_parse("--host-port", text, &o->host);
}

static char *
parse_uplink(const char *text, struct options *o)
{
    return port_spec_parse("--uplink", text, &o->uplink);
}

static char *
parse_rate(const char *text, struct options *o)
{
    return options_parse_rate(text, &o->rate_bps) ? NULL
           : format("--rate: \"%s\" is not a rate, such as 50Mbit", text);
}

static char *
parse_mtu(const char *text, struct options *o)
{
    char *end;
    long mtu = strtol(text, &end, 10);

    if (end == text || *end || mtu < PORT_MIN_MTU || mtu > PORT_MAX_MTU) {
        return format("--mtu: \"%s\" is not an integer from %d to %d", text,
                      PORT_MIN_MTU, PORT_MAX_MTU);
    }
    o->mtu = mtu;
    return NULL;
}

static char *
parse_control(const char *text, struct options *o)
{
    o->control = text;
    return *text ? NULL
           : format("--control: \"\" is not the path of a socket");
}

static char *
parse_cpus(const char *text, struct options *o)
{
    if (!isdigit((unsigned char) *text)
        || text[strspn(text, "0123456789,-")]
        || !isdigit((unsigned char) text[strlen(text) - 1])) {
        return format("--cpus: \"%s\" is not a list of CPUs, such as 0-1",
                      text);
    }
    o->cpus = text;
    return NULL;
}

static char *
parse_huge(const char *text, struct options *o)
{
    (void) text;
    o->huge = HUGE_YES;
    return NULL;
}

static char *
parse_no_huge(const char *text, struct options *o)
{
    (void) text;
    o->huge = HUGE_NO;
    return NULL;
}

static char *
parse_no_tag(const char *text, struct options *o)
{
    (void) text;
    o->tag = false;
    return NULL;
}

/* Stores the integer 'text', 'min' to 'max', in '*value'. */
static char *
parse_integer(const char *option, const char *text, long min, long max,
              uint32_t *value)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (end == text || *end || n < min || n > max) {
        return format("%s: \"%s\" is not an integer from %ld to %ld", option,
                      text, min, max);
    }
    *value = n;
    return NULL;
}

static char *
parse_max_flows(const char *text, struct options *o)
{
    return parse_integer("--max-flows", text, 16, SHIM_MAX_FLOWS,
                         &o->max_flows);
}

static char *
parse_flow_timeout(const char *text, struct options *o)
{
    return parse_integer("--flow-timeout", text, 0, 86400,
                         &o->flow_timeout_s);
}

static char *
parse_vxlan(const char *text, struct options *o)
{
    (void) text;
    o->vxlan = true;
    return NULL;
}

static char *
parse_keep_offload(const char *text, struct options *o)
{
    (void) text;
    o->keep_offload = true;
    return NULL;
}

static char *
parse_take_over(const char *text, struct options *o)
{
    (void) text;
    o->take_over = true;
    return NULL;
}

static char *
parse_poll(const char *text, struct options *o)
{
    static const char *const names[] = {
        [LOOP_AUTO] = "auto", [LOOP_BUSY] = "busy", [LOOP_NAP] = "nap",
        [LOOP_INTERRUPT] = "interrupt",
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!strcmp(text, names[i])) {
            o->poll = i;
            return NULL;
        }
    }
    return format("--poll: \"%s\" is not auto, busy, nap or interrupt", text);
}

static char *
parse_cc(const char *text, struct options *o)
{
    o->cc = !strcmp(text, "on");
    return (o->cc || !strcmp(text, "off") ? NULL
            : format("--cc: \"%s\" is not one of \"on\", \"off\"", text));
}

static char *
parse_downlink_rate(const char *text, struct options *o)
{
    return options_parse_rate(text, &o->downlink_bps) ? NULL
           : format("--downlink-rate: \"%s\" is not a rate, such as 50Mbit",
                    text);
}

static char *
parse_control_port(const char *text, struct options *o)
{
    char *end;
    long port = strtol(text, &end, 10);

    if (end == text || *end || port < 1 || port > 65535) {
        return format("--control-port: \"%s\" is not an integer from 1 to "
                      "65535", text);
    }
    if (o->n_control_ports == CC_MAX_CONTROL_PORTS) {
        return format("--control-port: %s is one too many, at most %d are "
                      "allowed", text, CC_MAX_CONTROL_PORTS);
    }
    o->control_ports[o->n_control_ports++] = port;
    return NULL;
}

static char *
parse_show(const char *text, struct options *o)
{
    o->show = text;
    return NULL;
}

static char *
parse_replay(const char *text, struct options *o)
{
    o->replay = text;
    return NULL;
}

static char *
parse_rules(const char *text, struct options *o)
{
    o->rules = text;
    return NULL;
}

static char *
parse_out(const char *text, struct options *o)
{
    o->out = text;
    return NULL;
}

static char *
parse_to_host(const char *text, struct options *o)
{
    o->to_host = text;
    return NULL;
}

static char *
parse_late(const char *text, struct options *o)
{
    char *end;
    long us = strtol(text, &end, 10);

    if (end == text || *end || us < 0 || us > MAX_LATE_US) {
        return format("--late: \"%s\" is not an integer from 0 to %d", text,
                      MAX_LATE_US);
    }
    o->late_us = us;
    return NULL;
}

static char *
parse_help(const char *text, struct options *o)
{
    (void) text;
    o->help = true;
    return NULL;
}

static char *
parse_version(const char *text, struct options *o)
{
    (void) text;
    o->version = true;
    return NULL;
}

static const struct option_row {
    const char *name;
    const char *argument;       /* NULL if it has none. */
    bool required;
    char *(*parse)(const char *, struct options *);
    const char *help;
} rows[] = {
    { "--name", "NAME", true, parse_name, "the host's name" },
    { "--host-port", "KIND:WHAT", true, parse_host_port,
      "the port towards the host, such as af_packet:eth0" },
    { "--uplink", "KIND:WHAT", true, parse_uplink,
      "the port towards the network, such as af_packet:eth1" },
    { "--rate", "RATE", true, parse_rate,
      "what the uplink carries, such as 50Mbit" },
    { "--control", "PATH", true, parse_control,
      "control socket to make" },
    { "--mtu", "BYTES", false, parse_mtu,
      "longest IP packet, 576 to 9000 (default 1500)" },
    { "--cpus", "LIST", false, parse_cpus,
      "CPUs to float over, such as 0-1 (default: all that are allowed)" },
    { "--huge", NULL, false, parse_huge,
      "use huge pages (default: if there are enough)" },
    { "--no-huge", NULL, false, parse_no_huge, "use no huge pages" },
    { "--no-tag", NULL, false, parse_no_tag,
      "leave the packets' DSCP as it is" },
    { "--keep-offload", NULL, false, parse_keep_offload,
      "leave the interfaces' offloads as they are" },
    { "--poll", "HOW", false, parse_poll,
      "when there is nothing to do: auto, busy, nap or interrupt "
      "(default auto)" },
    { "--max-flows", "N", false, parse_max_flows,
      "flows that are known at most, 16 to 1048576 (default 16384)" },
    { "--flow-timeout", "SECONDS", false, parse_flow_timeout,
      "forget flows without packets for so long, 0: never (default 600)" },
    { "--vxlan", NULL, false, parse_vxlan,
      "tell the flows in VXLAN tunnels apart" },
    { "--cc", "on|off", false, parse_cc,
      "divide the downlink among its flows, and pace (default off)" },
    { "--downlink-rate", "RATE", false, parse_downlink_rate,
      "what the network brings, for --cc (default: as --rate)" },
    { "--control-port", "PORT", false, parse_control_port,
      "of heartbeats, which --cc sends first; up to 16 times" },
    { "--show", "PATH", false, parse_show,
      "print what the shim with this control socket knows, and exit" },
    { "--take-over", NULL, false, parse_take_over,
      "take the place of the shim that has the control socket" },
    { "--help", NULL, false, parse_help, "print this" },
    { "--version", NULL, false, parse_version, "print the version" },
    { "--replay", "FILE", false, parse_replay,
      "forward what is in this capture (pcap, pcapng), and exit" },
    { "--rules", "FILE", false, parse_rules,
      "of a replay: whose flows are whose, and what each job gets" },
    { "--out", "FILE", false, parse_out,
      "of a replay: what is sent to the uplink (pcap)" },
    { "--to-host", "FILE", false, parse_to_host,
      "of a replay: what is sent to the host (pcap)" },
    { "--late", "US", false, parse_late,
      "longest delay of the loop that it makes up for, in microseconds, 0 to "
      "10000 (default 500)" },
};

#define N_ROWS (sizeof rows / sizeof *rows)

static const struct option_row *
find_row(const char *name, size_t length)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strlen(rows[i].name) == length
            && !strncmp(rows[i].name, name, length)) {
            return &rows[i];
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
        return format("%.*s: unknown option, --help lists them",
                      (int) length, word);
    }
    if (!row->argument && argument) {
        return format("%s: \"%s\" is too much, it takes no argument",
                      row->name, argument);
    }
    if (row->argument && !argument) {
        if (*i + 1 >= argc) {
            return format("%s: needs an argument, %s", row->name,
                          row->argument);
        }
        argument = argv[++*i];
    }
    seen[row - rows] = true;
    return row->parse(argument, o);
}

/* Do the ports go together, and with the MTU? */
static char *
check_ports(const struct options *o)
{
    const struct port_driver *smaller =
        o->host.driver->max_mtu < o->uplink.driver->max_mtu
        ? o->host.driver : o->uplink.driver;

    if (o->mtu > smaller->max_mtu) {
        return format("--mtu: %u is too much for %s, at most %u is allowed",
                      o->mtu, smaller->name, smaller->max_mtu);
    }
    if (o->poll == LOOP_INTERRUPT) {
        const struct port_driver *deaf =
            port_driver_tells(o->host.driver) ? o->uplink.driver
                                              : o->host.driver;

        if (!port_driver_tells(deaf)) {
            return format("--poll: %s has no receive interrupt, auto, busy "
                          "or nap is needed", deaf->name);
        }
    }
    if (port_spec_same(&o->host, &o->uplink)) {
        return format("--uplink: \"%s:%s\" is the host's port, another is "
                      "needed", o->uplink.driver->name, o->uplink.what);
    }
    return NULL;
}

/* Checks an option against the others: a replay has some of its own and needs
 * none of a shim's. */
static char *
check_row(const struct option_row *row, bool seen, const struct options *o)
{
    bool replays = row->parse == parse_rules || row->parse == parse_out;

    if (!seen && ((row->required && !o->replay) || (replays && o->replay))) {
        return format("%s: required option is missing", row->name);
    }
    if (seen && !o->replay && (replays || row->parse == parse_to_host)) {
        return format("%s: only a --replay has it", row->name);
    }
    return NULL;
}

char *
options_parse(int argc, char *argv[], struct options *o)
{
    bool seen[N_ROWS] = { false };

    *o = (struct options) {
        .mtu = 1500, .huge = HUGE_AUTO, .tag = true,
        .late_us = 500, .max_flows = SHIM_DEFAULT_FLOWS, .flow_timeout_s = 600,
    };
    for (int i = 1; i < argc; i++) {
        char *error = parse_one(argc, argv, &i, seen, o);

        if (error) {
            return error;
        }
    }
    o->host.keep_offload = o->uplink.keep_offload = o->keep_offload;
    for (size_t i = 0; i < N_ROWS && !o->show && !o->help && !o->version;
         i++) {
        char *error = check_row(&rows[i], seen[i], o);

        if (error) {
            return error;
        }
    }
    return (o->show || o->help || o->version || o->replay ? NULL
            : check_ports(o));
}

void
options_usage(FILE *stream)
{
    fprintf(stream, "usage: stagecoach-shim OPTION...\n\n"
            "Forwards one host's packets, in the controller's order.\n\n");
    for (size_t i = 0; i < N_ROWS; i++) {
        fprintf(stream, "  %s%s%s%s\n      %s\n", rows[i].name,
                rows[i].argument ? " " : "",
                rows[i].argument ? rows[i].argument : "",
                rows[i].required ? "  (required)" : "", rows[i].help);
    }
    fputs("\nPorts:\n", stream);
    for (const struct port_driver *d = port_drivers; d->name; d++) {
        bool bare = d->argument == PORT_ARG_NONE;

        fprintf(stream, "  %s%s%s\n      %s\n", d->name, bare ? "" : ":",
                bare ? "" : d->example, d->help);
    }
}
