/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/options.h"

#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/actuate/bypass.h"
#include "agent/actuate/tc.h"
#include "agent/agent.h"
#include "wire/cgroup-path.h"
#include "agent/identify/port-rule.h"
#include "wire/log-spec.h"
#include "agent/actuate/rate.h"
#include "command-line.h"
#include "wire/tls.h"
#include "daemon.h"
#include "openvswitch/vlog.h"
#include "ovsdb-session.h"
#include "base/json-check.h"
#include "stream-ssl.h"
#include "stream.h"
#include "svec.h"
#include "util.h"
#include "uuid.h"

#define EXIT_USAGE 2

static void
usage(void)
{
    printf("%s: the agent of one host\n"
           "usage: %s [OPTION...]\n\n"
           "  --host=NAME          of this host (default: its host name)\n"
           "  --db=REMOTE          hosts database "
           "(default: unix:RUNDIR/hosts.sock)\n"
           "  --controller=REMOTE  telemetry stream "
           "(default: unix:RUNDIR/telemetry.sock)\n"
           "  --shim=PATH          shim's socket "
           "(default: RUNDIR/shim.sock)\n"
           "  --rundir=DIR         for progress.sock and agent.ctl\n"
           "                       (default: $STAGECOACH_RUNDIR or "
           "/run/stagecoach)\n"
           "  --cgroup=PATH        where jobs live, below the v2 mount\n"
           "                       (default: $STAGECOACH_CGROUP or "
           "stagecoach)\n"
           "  --rate=RATE          of the uplink, such as 50Mbit, if the shim "
           "does not say\n"
           "  --readers=FILE       rules for reading what jobs log\n"
           "  --bypass=[NETNS:]IFACE,IFACE\n"
           "                       the shim's interfaces, also before it was "
           "seen\n"
           "  --tc=IFACE:RATE      keep the kernel's queues of this "
           "interface, a class a\n"
           "                       level; may be repeated\n"
           "  --netns=NAME         also look at the sockets of this network "
           "namespace;\n"
           "                       may be repeated\n"
           "  --port=FIRST[-LAST]=COJOB/JOB\n"
           "                       who has a socket on these ports works for "
           "this job,\n"
           "                       if nothing better is known; may be "
           "repeated\n",
           program_name, program_name);
    stream_usage("REMOTE", true, false, true);
    daemon_usage();
    vlog_usage();
    exit(EXIT_SUCCESS);
}

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

static uint64_t
parse_rate(const char *text)
{
    uint64_t bps = rate_parse(text);

    if (!bps) {
        bad_option("--rate: \"%s\" is not a rate, "RATE_RULE, text);
    }
    return bps;
}

static const struct bypass_ports *
parse_bypass(const char *text)
{
    static struct bypass_ports ports;
    char *error = bypass_ports_parse(text, &ports);

    if (error) {
        bad_option("--bypass: %s", error);
    }
    return &ports;
}

/* A file that is wrong when the agent starts is a mistake to be mended now;
 * one that is wrong later leaves what was read before. */
static void
check_readers(const char *file)
{
    struct log_rules *rules = NULL;
    char *text;
    char *error = json_read_file(file, &text);

    if (!error) {
        error = log_rules_parse(file, text, &rules);
        free(text);
    }
    if (error) {
        bad_option("--readers: %s", error);
    }
    log_rules_destroy(rules);
}

static void
add_port(struct agent_config *c, const char *text)
{
    char *error;

    c->ports = xrealloc(c->ports, (c->n_ports + 1) * sizeof *c->ports);
    error = port_rule_parse(text, &c->ports[c->n_ports++]);
    if (error) {
        bad_option("--port: %s", error);
    }
}

static void
add_tc(struct agent_config *c, const char *text)
{
    char *error;

    c->tc = xrealloc(c->tc, (c->n_tc + 1) * sizeof *c->tc);
    error = tc_iface_parse(text, &c->tc[c->n_tc++]);
    if (error) {
        bad_option("--tc: %s", error);
    }
}

static char *
default_host(void)
{
    char name[256] = "";

    gethostname(name, sizeof name - 1);
    name[strcspn(name, ".")] = '\0';
    return xstrdup(name);
}

static const char *
env_or(const char *name, const char *deflt)
{
    const char *value = getenv(name);

    return value && value[0] ? value : deflt;
}

static void
set(char **valuep, const char *value)
{
    free(*valuep);
    *valuep = xstrdup(value);
}

static void
check_remotes(const char *text)
{
    struct svec remotes = SVEC_EMPTY_INITIALIZER;
    struct uuid cid;

    ovsdb_session_parse_remote(text, &remotes, &cid);
    for (size_t i = 0; i < remotes.n; i++) {
        if (stream_verify_name(remotes.names[i])) {
            bad_option("--controller: \"%s\" is not a remote, unix:PATH, "
                       "tcp:HOST:PORT or ssl:HOST:PORT are allowed",
                       remotes.names[i]);
        }
    }
    svec_destroy(&remotes);
}

/* Fills in what was not given, and checks what was. */
static void
complete(struct agent_config *c)
{
    if (!c->host) {
        c->host = default_host();
    }
    if (!c->rundir) {
        c->rundir = xstrdup(env_or("STAGECOACH_RUNDIR", "/run/stagecoach"));
    }
    if (!c->cgroup) {
        c->cgroup = xstrdup(env_or("STAGECOACH_CGROUP", "stagecoach"));
    }
    if (!c->db) {
        c->db = xasprintf("unix:%s/hosts.sock", c->rundir);
    }
    if (!c->controller) {
        c->controller = xasprintf("unix:%s/telemetry.sock", c->rundir);
    }
    if (!c->shim) {
        c->shim = xasprintf("%s/shim.sock", c->rundir);
    }
    if (!cgroup_name_is_valid(c->host)) {
        bad_option("--host: \"%s\" is not a name, "CGROUP_NAME_RULE, c->host);
    }
    if (!cgroup_root_is_valid(c->cgroup)) {
        bad_option("--cgroup: \"%s\" is not a path below the cgroup v2 mount, "
                   "such as stagecoach/h0", c->cgroup);
    }
    check_remotes(c->controller);
}

void
agent_options_parse(int argc, char *argv[], struct agent_config *c)
{
    enum {
        OPT_HOST = UCHAR_MAX + 1,
        OPT_DB,
        OPT_CONTROLLER,
        OPT_SHIM,
        OPT_RUNDIR,
        OPT_CGROUP,
        OPT_RATE,
        OPT_NETNS,
        OPT_BYPASS,
        OPT_READERS,
        OPT_PORT,
        OPT_TC,
        DAEMON_OPTION_ENUMS,
        VLOG_OPTION_ENUMS,
        SSL_OPTION_ENUMS,
    };
    static const struct option long_options[] = {
        { "host", required_argument, NULL, OPT_HOST },
        { "db", required_argument, NULL, OPT_DB },
        { "controller", required_argument, NULL, OPT_CONTROLLER },
        { "shim", required_argument, NULL, OPT_SHIM },
        { "rundir", required_argument, NULL, OPT_RUNDIR },
        { "cgroup", required_argument, NULL, OPT_CGROUP },
        { "rate", required_argument, NULL, OPT_RATE },
        { "netns", required_argument, NULL, OPT_NETNS },
        { "bypass", required_argument, NULL, OPT_BYPASS },
        { "readers", required_argument, NULL, OPT_READERS },
        { "port", required_argument, NULL, OPT_PORT },
        { "tc", required_argument, NULL, OPT_TC },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'V' },
        DAEMON_LONG_OPTIONS,
        VLOG_LONG_OPTIONS,
        STREAM_SSL_LONG_OPTIONS,
        { NULL, 0, NULL, 0 },
    };
    char *short_options
        = ovs_cmdl_long_options_to_short_options(long_options);
    int option;

    *c = (struct agent_config) { .host = NULL };
    while ((option = getopt_long(argc, argv, short_options, long_options,
                                 NULL)) != -1) {
        switch (option) {
        case OPT_HOST:
            set(&c->host, optarg);
            break;
        case OPT_DB:
            set(&c->db, optarg);
            break;
        case OPT_CONTROLLER:
            set(&c->controller, optarg);
            break;
        case OPT_SHIM:
            set(&c->shim, optarg);
            break;
        case OPT_RUNDIR:
            set(&c->rundir, optarg);
            break;
        case OPT_CGROUP:
            set(&c->cgroup, optarg);
            break;
        case OPT_RATE:
            c->rate_bps = parse_rate(optarg);
            break;
        case OPT_NETNS:
            if (strchr(optarg, '/')) {
                bad_option("--netns: \"%s\" is not the name of a network "
                           "namespace, those of /run/netns are allowed",
                           optarg);
            }
            c->netns = xrealloc(c->netns,
                                (c->n_netns + 1) * sizeof *c->netns);
            c->netns[c->n_netns++] = xstrdup(optarg);
            break;
        case OPT_BYPASS:
            c->bypass = parse_bypass(optarg);
            break;
        case OPT_READERS:
            check_readers(optarg);
            free(c->readers);
            c->readers = abs_file_name(NULL, optarg);
            break;
        case OPT_PORT:
            add_port(c, optarg);
            break;
        case OPT_TC:
            add_tc(c, optarg);
            break;
        case 'h':
            usage();
            break;
        case 'V':
            puts("stagecoach-agent " STAGECOACH_VERSION);
            exit(EXIT_SUCCESS);
        DAEMON_OPTION_HANDLERS
        VLOG_OPTION_HANDLERS
        case TLS_FILE_OPTIONS:
            tls_set_file(option, optarg);
            break;
        case OPT_SSL_PROTOCOLS:
            stream_ssl_set_protocols(optarg);
            break;
        case OPT_SSL_CIPHERS:
            stream_ssl_set_ciphers(optarg);
            break;
        default:
            exit(EXIT_USAGE);
        }
    }
    free(short_options);
    if (optind < argc) {
        bad_option("%s: \"%s\" is not an option, --help lists them",
                   program_name, argv[optind]);
    }
    complete(c);
}

void
agent_options_uninit(struct agent_config *c)
{
    free(c->host);
    free(c->db);
    free(c->controller);
    free(c->shim);
    free(c->rundir);
    free(c->cgroup);
    free(c->readers);
    for (size_t i = 0; i < c->n_netns; i++) {
        free(c->netns[i]);
    }
    free(c->netns);
    free(c->ports);
    free(c->tc);
}
