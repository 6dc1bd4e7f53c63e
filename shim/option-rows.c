/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/option-rows.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/shim-protocol.h"
#include "shim/options.h"

char *
option_message(const char *format, ...)
{
    va_list args;
    char *s;
    int n;

    va_start(args, format);
    n = vasprintf(&s, format, args);
    va_end(args);
    return n < 0 ? duplicate("no memory") : s;
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

/* Where the value of 'row' is in 'o'. */
static void *
at(const struct option_row *row, struct options *o)
{
    return (char *) o + row->offset;
}

static char *
parse_flag(const struct option_row *row, const char *text, struct options *o)
{
    (void) text;
    *(bool *) at(row, o) = true;
    return NULL;
}

static char *
parse_text(const struct option_row *row, const char *text, struct options *o)
{
    *(const char **) at(row, o) = text;
    return NULL;
}

/* Stores the integer 'text', the row's minimum to its maximum, in '*value'. */
static char *
get_integer(const struct option_row *row, const char *text, uint32_t *value)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (end == text || *end || n < row->min || n > row->max) {
        return option_message("%s: \"%s\" is not an integer from %ld to %ld",
                              row->name, text, row->min, row->max);
    }
    *value = n;
    return NULL;
}

static char *
parse_integer(const struct option_row *row, const char *text,
              struct options *o)
{
    return get_integer(row, text, at(row, o));
}

static char *
parse_rate(const struct option_row *row, const char *text, struct options *o)
{
    return options_parse_rate(text, at(row, o)) ? NULL
           : option_message("%s: \"%s\" is not a rate, such as 50Mbit",
                            row->name, text);
}

static char *
parse_port(const struct option_row *row, const char *text, struct options *o)
{
    return port_spec_parse(row->name, text, at(row, o));
}

static char *
parse_name(const struct option_row *row, const char *text, struct options *o)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789"
                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ._-");

    if (!n || text[n] || n > 31 || text[0] == '.') {
        return option_message("%s: \"%s\" is not 1 to 31 letters, digits, "
                              "'.', '_' and '-'", row->name, text);
    }
    o->name = text;
    return NULL;
}

static char *
parse_control(const struct option_row *row, const char *text,
              struct options *o)
{
    o->control = text;
    return *text ? NULL
           : option_message("%s: \"\" is not the path of a socket",
                            row->name);
}

static char *
parse_cpus(const struct option_row *row, const char *text, struct options *o)
{
    if (!isdigit((unsigned char) *text)
        || text[strspn(text, "0123456789,-")]
        || !isdigit((unsigned char) text[strlen(text) - 1])) {
        return option_message("%s: \"%s\" is not a list of CPUs, such as "
                              "0-1", row->name, text);
    }
    o->cpus = text;
    return NULL;
}

static char *
parse_huge(const struct option_row *row, const char *text, struct options *o)
{
    (void) row;
    (void) text;
    o->huge = HUGE_YES;
    return NULL;
}

static char *
parse_no_huge(const struct option_row *row, const char *text,
              struct options *o)
{
    (void) row;
    (void) text;
    o->huge = HUGE_NO;
    return NULL;
}

static char *
parse_no_tag(const struct option_row *row, const char *text,
             struct options *o)
{
    (void) row;
    (void) text;
    o->tag = false;
    return NULL;
}

static char *
parse_poll(const struct option_row *row, const char *text, struct options *o)
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
    return option_message("%s: \"%s\" is not auto, busy, nap or interrupt",
                          row->name, text);
}

static char *
parse_cc(const struct option_row *row, const char *text, struct options *o)
{
    o->cc = !strcmp(text, "on");
    return (o->cc || !strcmp(text, "off") ? NULL
            : option_message("%s: \"%s\" is not one of \"on\", \"off\"",
                             row->name, text));
}

static char *
parse_control_port(const struct option_row *row, const char *text,
                   struct options *o)
{
    uint32_t port = 0;
    char *error = get_integer(row, text, &port);

    if (error) {
        return error;
    }
    if (o->n_control_ports == CC_MAX_CONTROL_PORTS) {
        return option_message("%s: %s is one too many, at most %d are "
                              "allowed", row->name, text,
                              CC_MAX_CONTROL_PORTS);
    }
    o->control_ports[o->n_control_ports++] = port;
    return NULL;
}

#define AT(MEMBER) offsetof(struct options, MEMBER)

const struct option_row option_rows[] = {
    { "--name", "NAME", OPTION_MUST, parse_name, 0, 0, 0,
      "the host's name" },
    { "--host-port", "KIND:WHAT", OPTION_MUST, parse_port, AT(host), 0, 0,
      "the port towards the host, such as af_packet:eth0" },
    { "--uplink", "KIND:WHAT", OPTION_MUST, parse_port, AT(uplink), 0, 0,
      "the port towards the network, such as af_packet:eth1" },
    { "--rate", "RATE", OPTION_MUST, parse_rate, AT(rate_bps), 0, 0,
      "what the uplink carries, such as 50Mbit" },
    { "--control", "PATH", OPTION_MUST, parse_control, 0, 0, 0,
      "control socket to make" },
    { "--mtu", "BYTES", OPTION_MAY, parse_integer, AT(mtu),
      PORT_MIN_MTU, PORT_MAX_MTU,
      "longest IP packet, 576 to 9000 (default 1500)" },
    { "--cpus", "LIST", OPTION_MAY, parse_cpus, 0, 0, 0,
      "CPUs to float over, such as 0-1 (default: all that are allowed)" },
    { "--huge", NULL, OPTION_MAY, parse_huge, 0, 0, 0,
      "use huge pages (default: if there are enough)" },
    { "--no-huge", NULL, OPTION_MAY, parse_no_huge, 0, 0, 0,
      "use no huge pages" },
    { "--no-tag", NULL, OPTION_MAY, parse_no_tag, 0, 0, 0,
      "leave the packets' DSCP as it is" },
    { "--keep-offload", NULL, OPTION_MAY, parse_flag, AT(keep_offload), 0, 0,
      "leave the interfaces' offloads as they are" },
    { "--poll", "HOW", OPTION_MAY, parse_poll, 0, 0, 0,
      "when there is nothing to do: auto, busy, nap or interrupt "
      "(default auto)" },
    { "--max-flows", "N", OPTION_MAY, parse_integer, AT(max_flows),
      16, SHIM_MAX_FLOWS,
      "flows that are known at most, 16 to 1048576 (default 16384)" },
    { "--flow-timeout", "SECONDS", OPTION_MAY, parse_integer,
      AT(flow_timeout_s), 0, 86400,
      "forget flows without packets for so long, 0: never (default 600)" },
    { "--vxlan", NULL, OPTION_MAY, parse_flag, AT(vxlan), 0, 0,
      "tell the flows in VXLAN tunnels apart" },
    { "--cc", "on|off", OPTION_MAY, parse_cc, 0, 0, 0,
      "divide the downlink among its flows, and pace (default off)" },
    { "--downlink-rate", "RATE", OPTION_MAY, parse_rate,
      AT(downlink_bps), 0, 0,
      "what the network brings, for --cc (default: as --rate)" },
    { "--control-port", "PORT", OPTION_MAY, parse_control_port, 0, 1, 65535,
      "of heartbeats, which --cc sends first; up to 16 times" },
    { "--show", "PATH", OPTION_MAY, parse_text, AT(show), 0, 0,
      "print what the shim with this control socket knows, and exit" },
    { "--take-over", NULL, OPTION_MAY, parse_flag, AT(take_over), 0, 0,
      "take the place of the shim that has the control socket" },
    { "--help", NULL, OPTION_MAY, parse_flag, AT(help), 0, 0,
      "print this" },
    { "--version", NULL, OPTION_MAY, parse_flag, AT(version), 0, 0,
      "print the version" },
    { "--replay", "FILE", OPTION_MAY, parse_text, AT(replay), 0, 0,
      "forward what is in this capture (pcap, pcapng), and exit" },
    { "--rules", "FILE", OPTION_REPLAY_MUST, parse_text, AT(rules), 0, 0,
      "of a replay: whose flows are whose, and what each job gets" },
    { "--out", "FILE", OPTION_REPLAY_MUST, parse_text, AT(out), 0, 0,
      "of a replay: what is sent to the uplink (pcap)" },
    { "--to-host", "FILE", OPTION_REPLAY_MAY, parse_text, AT(to_host), 0, 0,
      "of a replay: what is sent to the host (pcap)" },
    { "--late", "US", OPTION_MAY, parse_integer, AT(late_us), 0, 10000,
      "longest delay of the loop that it makes up for, in microseconds, 0 to "
      "10000 (default 500)" },
    { "--lanes", "N", OPTION_MAY, parse_integer, AT(n_lanes),
      1, PORT_MAX_QUEUES,
      "threads that classify, 1 to 16 (default 1)" },
    { .name = NULL },
};

_Static_assert(sizeof option_rows / sizeof *option_rows <= OPTION_MAX_ROWS,
               "OPTION_MAX_ROWS is too small");
