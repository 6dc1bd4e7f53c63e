/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach-agent: one per host. */

#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/actuate/bypass.h"
#include "agent/actuate/tc.h"
#include "agent/agent.h"
#include "agent/control.h"
#include "agent/identify/cgroup-path.h"
#include "agent/identify/port-rule.h"
#include "agent/privileges.h"
#include "agent/progress/log-spec.h"
#include "agent/rate.h"
#include "command-line.h"
#include "controller/tls.h"
#include "daemon.h"
#include "fatal-signal.h"
#include "latch.h"
#include "lockfile.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "ovsdb-session.h"
#include "packaging/service-notify.h"
#include "policies/json-check.h"
#include "stream-ssl.h"
#include "stream.h"
#include "svec.h"
#include "unixctl.h"
#include "util.h"
#include "uuid.h"

VLOG_DEFINE_THIS_MODULE(stagecoach_agent);

#define EXIT_USAGE 2

static struct latch exiting;
static struct latch reload;

static void
on_sigterm(int signr OVS_UNUSED)
{
    latch_set(&exiting);
}

static void
on_sighup(int signr OVS_UNUSED)
{
    latch_set(&reload);
}

static void
on_exit_command(struct unixctl_conn *conn, int argc OVS_UNUSED,
                const char *argv[] OVS_UNUSED, void *aux OVS_UNUSED)
{
    unixctl_command_reply(conn, NULL);
    latch_set(&exiting);
}

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

static const struct bypass_place *
parse_bypass(const char *text)
{
    static struct bypass_place place;
    char *error = bypass_place_parse(text, &place);

    if (error) {
        bad_option("--bypass: %s", error);
    }
    return &place;
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
    error = tc_parse(text, &c->tc[c->n_tc++]);
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

static void
parse_options(int argc, char *argv[], struct agent_config *c)
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

static void
free_config(struct agent_config *c)
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

/* Two agents would undo each other's work, and take each other's sockets. */
static struct lockfile *
lock_host(const struct agent_config *c)
{
    char *path = xasprintf("%s/agent", c->rundir);
    struct lockfile *lockfile;
    int error = lockfile_lock(path, &lockfile);

    if (error == EAGAIN || error == EDEADLK) {
        ovs_fatal(0, "%s: an agent is running for this directory, only one is "
                  "allowed", c->rundir);
    } else if (error) {
        ovs_fatal(error, "%s: cannot lock", path);
    }
    free(path);
    return lockfile;
}

static void
drop_privileges(void)
{
    int error = privileges_drop();

    if (error) {
        VLOG_WARN("cannot give up privileges (%s), going on with all of them",
                  ovs_strerror(error));
    }
    for (size_t i = 0; i < N_PRIVILEGES; i++) {
        if (!privilege_is_held(&privileges[i])) {
            VLOG_INFO("no %s: no %s", privileges[i].name,
                      privileges[i].purpose);
        }
    }
}

static struct unixctl_server *
open_unixctl(const struct agent_config *c)
{
    char *path = xasprintf("%s/agent.ctl", c->rundir);
    struct unixctl_server *server;
    int error = unixctl_server_create(path, &server);

    if (error) {
        ovs_fatal(error, "%s: cannot listen", path);
    }
    unixctl_command_register("exit", "", 0, 0, on_exit_command, NULL);
    free(path);
    return server;
}

int
main(int argc, char *argv[])
{
    struct agent_config config = { .host = NULL };
    struct unixctl_server *unixctl;
    struct lockfile *lockfile;
    struct agent *agent;
    char *error;

    ovs_cmdl_proctitle_init(argc, argv);
    ovs_set_program_name(argv[0], STAGECOACH_VERSION);
    latch_init(&exiting);
    latch_init(&reload);
    signal(SIGTERM, on_sigterm);
    signal(SIGINT, on_sigterm);
    signal(SIGHUP, on_sighup);
    fatal_ignore_sigpipe();
    parse_options(argc, argv, &config);
    if (mkdir(config.rundir, 0755) && errno != EEXIST) {
        ovs_fatal(errno, "%s: cannot make the directory", config.rundir);
    }
    daemonize_start(false);
    lockfile = lock_host(&config);
    drop_privileges();
    unixctl = open_unixctl(&config);
    error = agent_create(&config, &agent);
    if (error) {
        ovs_fatal(0, "%s", error);
    }
    agent_control_register(agent);
    daemonize_complete();
    service_notify("READY=1");
    VLOG_INFO("agent of host %s, jobs below cgroup %s",
              config.host, config.cgroup);

    while (!latch_is_set(&exiting)) {
        if (latch_poll(&reload)) {
            free(agent_load_readers(agent));
        }
        tls_run();
        agent_run(agent);
        unixctl_server_run(unixctl);
        agent_wait(agent);
        unixctl_server_wait(unixctl);
        latch_wait(&exiting);
        latch_wait(&reload);
        poll_block();
    }

    unixctl_server_destroy(unixctl);
    agent_destroy(agent);
    lockfile_unlock(lockfile);
    free_config(&config);
    latch_destroy(&exiting);
    latch_destroy(&reload);
    return EXIT_SUCCESS;
}
