/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/options.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "shim/control/protocol.h"

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
    { "--host-port", "af_packet:IFACE", true, parse_host_port,
      "the interface towards the host" },
    { "--uplink", "af_packet:IFACE", true, parse_uplink,
      "the interface towards the network" },
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
    { "--cc", "on|off", false, parse_cc,
      "divide the downlink among its flows, and pace (default off)" },
    { "--downlink-rate", "RATE", false, parse_downlink_rate,
      "what the network brings, for --cc (default: as --rate)" },
    { "--control-port", "PORT", false, parse_control_port,
      "of heartbeats, which --cc sends first; up to 16 times" },
    { "--show", "PATH", false, parse_show,
      "print what the shim with this control socket knows, and exit" },
    { "--help", NULL, false, parse_help, "print this" },
    { "--version", NULL, false, parse_version, "print the version" },
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

char *
options_parse(int argc, char *argv[], struct options *o)
{
    bool seen[N_ROWS] = { false };

    *o = (struct options) { .mtu = 1500, .huge = HUGE_AUTO, .tag = true,
                            .late_us = 500 };
    for (int i = 1; i < argc; i++) {
        char *error = parse_one(argc, argv, &i, seen, o);

        if (error) {
            return error;
        }
    }
    for (size_t i = 0; i < N_ROWS; i++) {
        if (rows[i].required && !seen[i] && !o->show && !o->help
            && !o->version) {
            return format("%s: required option is missing", rows[i].name);
        }
    }
    if (o->host.iface[0] && !strcmp(o->host.iface, o->uplink.iface)) {
        return format("--uplink: \"af_packet:%s\" is the host's port, another "
                      "interface is needed", o->uplink.iface);
    }
    return NULL;
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
}
