/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/agent.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/actuate/bypass.h"
#include "agent/actuate/tc.h"
#include "agent/identify/bpf/identity.h"
#include "agent/identify/registry.h"
#include "base/json-check.h"
#include "base/name.h"
#include "base/options.h"
#include "base/run-directory.h"
#include "openvswitch/dynamic-string.h"
#include "ovsdb-session.h"
#include "stream.h"
#include "svec.h"
#include "util.h"
#include "uuid.h"
#include "wire/cgroup-path.h"
#include "wire/daemon-options.h"
#include "wire/log-spec.h"
#include "wire/tls-defaults.h"

#define EXIT_USAGE 2

static char *
parse_rate(const char *text, void *bps)
{
    *(uint64_t *) bps = json_rate_parse(text);
    return *(uint64_t *) bps
               ? NULL
               : xasprintf("\"%s\" is not " JSON_RATE_RULE, text);
}

static char *
parse_bypass(const char *text, void *ports_)
{
    struct bypass_ports **ports = ports_;

    free(*ports);
    *ports = xmalloc(sizeof **ports);
    return bypass_ports_parse(text, *ports);
}

/* Stores the absolute name of a file of rules.  An invalid file is an error
 * when the agent starts; later the agent keeps the rules read before. */
static char *
parse_readers(const char *text, void *name)
{
    struct log_rules *rules = NULL;
    char *json;
    char *error = json_read_file(text, &json);

    if (!error) {
        error = log_rules_parse(text, json, &rules);
        free(json);
    }
    log_rules_destroy(rules);
    free(*(char **) name);
    *(char **) name = abs_file_name(NULL, text);
    return error;
}

static char *
add_tc(const char *text, void *config)
{
    struct agent_config *c = config;

    c->tc = xrealloc(c->tc, (c->n_tc + 1) * sizeof *c->tc);
    return tc_iface_parse(text, &c->tc[c->n_tc++]);
}

const char *const agent_actuator_names[] = { [AGENT_AUTO] = "auto",
                                             [AGENT_SHIM] = "shim",
                                             [AGENT_BPF] = "bpf",
                                             [AGENT_OBSERVE] = "observe",
                                             NULL };

static char *
add_uplink(const char *text, void *config)
{
    struct agent_config *c = config;

    if (!text[0] || strlen(text) >= IFNAMSIZ || strchr(text, '/')) {
        return xasprintf("\"%s\" is not the name of an interface, such as "
                         "eth0",
                         text);
    }
    c->uplinks = xrealloc(c->uplinks, (c->n_uplinks + 1) * sizeof *c->uplinks);
    c->uplinks[c->n_uplinks++] = xstrdup(text);
    return NULL;
}

/* Stores the number of the lowest of the bits of packets' marks that carry a
 * slot. */
static char *
parse_mark(const char *text, void *shift)
{
    unsigned int value;

    if (!strcmp(text, "none")) {
        *(uint32_t *) shift = IDENTITY_NO_MARK;
    } else if (str_to_uint(text, 10, &value)
               && value <= IDENTITY_NO_MARK - IDENTITY_MARK_BITS) {
        *(uint32_t *) shift = value;
    } else {
        return xasprintf(
            "\"%s\" is not the lowest of 11 bits of the mark; expected 0 "
            "to 21 or none",
            text);
    }
    return NULL;
}

#define AT(MEMBER) OPTION_AT(struct agent_config, MEMBER)

static const struct option_row rows[] = {
    { "host", OPTION_COPY, AT(host), .value = "NAME", .shown = "the host name",
      .help = "name of this host" },
    { "db", OPTION_COPY, AT(db), .value = "REMOTE",
      .shown = "unix:CONTROLLER/hosts.sock", .help = "hosts database" },
    { "controller", OPTION_COPY, AT(controller), .value = "REMOTE",
      .shown = "unix:CONTROLLER/telemetry.sock",
      .help = "telemetry server of the controller" },
    { "controllers", OPTION_COPY, AT(controllers),
      .value = "ADDRESS[,ADDRESS...]",
      .help = "machines of the controllers: implies --db, --controller and "
              "the files of TLS in " TLS_DIRECTORY },
    { "shim", OPTION_COPY, AT(shim), .value = "PATH",
      .shown = "RUNDIR/shim.sock", .help = "control socket of the shim" },
    { "rundir", OPTION_COPY, AT(rundir), .value = "DIR",
      .shown = "$STAGECOACH_RUNDIR or /run/stagecoach",
      .help = "directory of progress.sock and agent.ctl" },
    { "cgroup", OPTION_COPY, AT(cgroup), .value = "PATH",
      .shown = "$STAGECOACH_CGROUP or stagecoach",
      .help = "cgroup of all jobs, relative to the cgroup v2 mount" },
    { "rate", OPTION_CUSTOM, AT(rate_bps), .value = "RATE",
      .parse = parse_rate,
      .help = "rate of the uplink, such as 50Mbit, if the shim does not "
              "report it" },
    { "readers", OPTION_CUSTOM, AT(readers), .value = "FILE",
      .parse = parse_readers, .help = "rules for reading the logs of jobs" },
    { "bypass", OPTION_CUSTOM, AT(bypass), .value = "[NETNS:]IFACE,IFACE",
      .parse = parse_bypass,
      .help = "interfaces of the shim; allows the kernel bypass before the "
              "shim has connected once" },
    { "tc", OPTION_CUSTOM, .value = "IFACE:RATE", .repeated = true,
      .parse = add_tc,
      .help = "configure the kernel's queues of this interface, one class "
              "per level" },
    { "actuator", OPTION_CHOICE, AT(actuator),
      .value = "auto|shim|bpf|observe", .deflt = "auto",
      .help = "what applies the order: bpf is the kernel, observe the kernel "
              "that only counts, auto is bpf with --uplink, else shim" },
    { "uplink", OPTION_CUSTOM, .value = "IFACE", .repeated = true,
      .parse = add_uplink,
      .help = "interface whose packets the kernel marks and counts; with "
              "--actuator shim, the host's interface to the shim" },
    { "pins", OPTION_COPY, AT(pins), .value = "DIR", .deflt = IDENTITY_PINS,
      .help = "folder of bpffs for what the agent has in the kernel" },
    { "kernel-cgroup", OPTION_COPY, AT(kernel_cgroup), .value = "PATH",
      .help = "cgroup, relative to the cgroup v2 mount, whose sockets the "
              "kernel knows (default: all)" },
    { "unload", OPTION_FLAG, AT(unload),
      .help =
          "detach the programs of the kernel, remove DIR and the queues of "
          "--tc, and end" },
    { "mark", OPTION_CUSTOM, AT(mark_shift), .value = "BIT|none", .shown = "0",
      .parse = parse_mark,
      .help = "the lowest of 11 bits of the mark that carry a slot from a "
              "pod to the uplink" },
    { .name = NULL },
};

static const struct option_table table = {
    .name = "stagecoach-agent",
    .version = "stagecoach-agent " STAGECOACH_VERSION,
    .usage =
        "usage: stagecoach-agent [OPTION...]\n\n"
        "Attributes the packets of one host to jobs and applies the order "
        "of the\ncontroller.\n",
    .footer = "CONTROLLER is /run/stagecoach/controller if RUNDIR is "
              "/run/stagecoach, else\nRUNDIR.\n",
    .rows = rows,
};

static void OVS_NO_RETURN OVS_PRINTF_FORMAT(1, 2)
bad_option(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    putc('\n', stderr);
    exit(EXIT_USAGE);
}

static const char *
env_or(const char *name, const char *deflt)
{
    const char *value = getenv(name);

    return value && value[0] ? value : deflt;
}

static void
check_remotes(const char *text)
{
    struct svec remotes = SVEC_EMPTY_INITIALIZER;
    struct uuid cid;

    ovsdb_session_parse_remote(text, &remotes, &cid);
    for (size_t i = 0; i < remotes.n; i++) {
        if (stream_verify_name(remotes.names[i])) {
            bad_option(
                "--controller: \"%s\" is not a remote; expected unix:PATH, "
                "tcp:HOST:PORT or ssl:HOST:PORT",
                remotes.names[i]);
        }
    }
    svec_destroy(&remotes);
}

/* Returns "ssl:ADDRESS:PORT,..." for "ADDRESS,...". */
static char *
remotes_of(const char *addresses, int port)
{
    struct ds remotes = DS_EMPTY_INITIALIZER;
    char *copy = xstrdup(addresses);
    char *rest = copy;
    char *address;

    while ((address = strsep(&rest, ","))) {
        bool ipv6 = strchr(address, ':');
        struct in6_addr ip;

        if (inet_pton(ipv6 ? AF_INET6 : AF_INET, address, &ip) != 1) {
            bad_option(
                "--controllers: \"%s\" is not an IP address; expected only "
                "addresses, separated by commas",
                address);
        }
        ds_put_format(&remotes, ipv6 ? "%sssl:[%s]:%d" : "%sssl:%s:%d",
                      remotes.length ? "," : "", address, port);
    }
    free(copy);
    return ds_steal_cstr(&remotes);
}

/* Decides about "auto", and checks what belongs to the kernel. */
static void
complete_actuator(struct agent_config *c)
{
    if (c->actuator == AGENT_AUTO) {
        c->actuator = c->n_uplinks ? AGENT_BPF : AGENT_SHIM;
    }
    if (c->actuator != AGENT_SHIM && !c->n_uplinks) {
        bad_option("--actuator %s: it needs --uplink, such as --uplink eth0",
                   agent_actuator_names[c->actuator]);
    }
    if (c->actuator == AGENT_OBSERVE && c->n_tc) {
        bad_option("--actuator observe: it changes no queues, --tc is for "
                   "bpf and shim");
    }
    if (c->kernel_cgroup && !cgroup_root_is_valid(c->kernel_cgroup)) {
        bad_option("--kernel-cgroup: \"%s\" is not a path below the cgroup v2 "
                   "mount, such as stagecoach/h0",
                   c->kernel_cgroup);
    }
}

/* Fills in what was not given, and checks what was. */
static void
complete(struct agent_config *c)
{
    char *controller, host[256] = "";

    gethostname(host, sizeof host - 1);
    c->host = c->host ? c->host : xstrdup(host);
    c->rundir = c->rundir ? c->rundir
                : xstrdup(env_or("STAGECOACH_RUNDIR", RUN_DIRECTORY));
    c->cgroup = c->cgroup ? c->cgroup
                : xstrdup(env_or("STAGECOACH_CGROUP", "stagecoach"));
    if (c->controllers) {
        c->db = c->db ? c->db : remotes_of(c->controllers, RELAY_PORT);
        c->controller = c->controller
                            ? c->controller
                            : remotes_of(c->controllers, TELEMETRY_PORT);
        tls_set_default(TLS_DIRECTORY);
    }
    controller = run_directory_of_controller(c->rundir);
    c->db = c->db ? c->db : xasprintf("unix:%s/hosts.sock", controller);
    c->controller = c->controller ? c->controller
                    : xasprintf("unix:%s/telemetry.sock", controller);
    free(controller);
    c->shim = c->shim ? c->shim : xasprintf("%s/shim.sock", c->rundir);
    if (!name_is_valid(c->host)) {
        bad_option("--host: \"%s\" is not " NAME_RULE, c->host);
    }
    if (!cgroup_root_is_valid(c->cgroup)) {
        bad_option("--cgroup: \"%s\" is not a path below the cgroup v2 mount, "
                   "such as stagecoach/h0", c->cgroup);
    }
    check_remotes(c->controller);
    complete_actuator(c);
}

void
agent_options_parse(int argc, char *argv[], struct agent_config *c)
{
    *c = (struct agent_config) { .host = NULL };
    daemon_options_parse(&table, false, true, argc, argv, c);
    complete(c);
}
