/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach-controller: options, loop, exit. */

#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "command-line.h"
#include "controller/cluster.h"
#include "controller/control.h"
#include "controller/decide.h"
#include "controller/decision-log.h"
#include "controller/hosts-db.h"
#include "controller/intent-db.h"
#include "controller/northbound/rest.h"
#include "controller/policy-file.h"
#include "controller/southbound/switches.h"
#include "controller/telemetry.h"
#include "daemon.h"
#include "fatal-signal.h"
#include "latch.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "policies/policy.h"
#include "stream-ssl.h"
#include "stream.h"
#include "svec.h"
#include "timeval.h"
#include "unixctl.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(main);

/* How long a new leader, that finds an order in force, waits for the hosts to
 * tell how far their jobs are before it makes one of its own. */
#define GRACE_MS 2000

/* For people: some minutes of a busy cluster. */
#define DECISIONS_KEPT 1000

struct options {
    char *intent, *hosts, *telemetry, *policy, *unixctl, *rest;
    struct svec switches;
};

/* Set by signals, which also wake the loop. */
static volatile sig_atomic_t terminated, hung_up;
static struct latch signalled;

static void
handle_signal(int signr)
{
    if (signr == SIGHUP) {
        hung_up = true;
    } else {
        terminated = true;
    }
    latch_set(&signalled);
}

/* Must come before libopenvswitch takes the signals that nobody handles. */
static void
handle_signals(void)
{
    struct sigaction sa = { .sa_handler = handle_signal };

    latch_init(&signalled);
    sigemptyset(&sa.sa_mask);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGHUP, &sa, NULL);
}

OVS_NO_RETURN static void
usage(void)
{
    printf("%s: orders the network by search stages\n"
           "usage: %s [OPTIONS] --policy=FILE\n\n"
           "  --policy=FILE       policy, read again when it changes\n"
           "  --intent=REMOTE     intent database\n"
           "                      (default: unix:RUNDIR/intent.sock)\n"
           "  --hosts=REMOTE      hosts database\n"
           "                      (default: unix:RUNDIR/hosts.sock)\n"
           "  --telemetry=REMOTE  where agents connect to\n"
           "                      (default: unix:RUNDIR/telemetry.sock)\n"
           "  --switch=TARGET     OpenFlow 1.3 switch to keep, such as\n"
           "                      unix:PATH or tcp:IP:PORT; may be repeated\n"
           "  --unixctl=SOCKET    control socket\n"
           "                      (default: RUNDIR/controller.ctl)\n"
           "  --rest=unix:PATH    where HTTP is answered, or none\n"
           "                      (default: unix:RUNDIR/rest.sock)\n"
           "RUNDIR is $STAGECOACH_RUNDIR, or /run/stagecoach.\n",
           program_name, program_name);
    stream_usage("REMOTE", true, true, false);
    daemon_usage();
    vlog_usage();
    printf("\nOther options:\n"
           "  -h, --help          display this help message\n"
           "  -V, --version       display version information\n");
    exit(EXIT_SUCCESS);
}

static void
set_option(char **option)
{
    free(*option);
    *option = xstrdup(optarg);
}

static void
set_defaults(struct options *o)
{
    const char *rundir = getenv("STAGECOACH_RUNDIR");

    if (!rundir || !*rundir) {
        rundir = "/run/stagecoach";
    }
    if (!o->intent) {
        o->intent = xasprintf("unix:%s/intent.sock", rundir);
    }
    if (!o->hosts) {
        o->hosts = xasprintf("unix:%s/hosts.sock", rundir);
    }
    if (!o->telemetry) {
        o->telemetry = xasprintf("unix:%s/telemetry.sock", rundir);
    }
    if (!o->unixctl) {
        o->unixctl = xasprintf("%s/controller.ctl", rundir);
    }
    if (!o->rest) {
        o->rest = xasprintf("unix:%s/rest.sock", rundir);
    }
}

static void
parse_options(int argc, char *argv[], struct options *o)
{
    enum {
        OPT_INTENT = UCHAR_MAX + 1,
        OPT_HOSTS,
        OPT_TELEMETRY,
        OPT_POLICY,
        OPT_SWITCH,
        OPT_UNIXCTL,
        OPT_REST,
        DAEMON_OPTION_ENUMS,
        VLOG_OPTION_ENUMS,
        SSL_OPTION_ENUMS,
    };
    static const struct option long_options[] = {
        {"intent", required_argument, NULL, OPT_INTENT},
        {"hosts", required_argument, NULL, OPT_HOSTS},
        {"telemetry", required_argument, NULL, OPT_TELEMETRY},
        {"policy", required_argument, NULL, OPT_POLICY},
        {"switch", required_argument, NULL, OPT_SWITCH},
        {"unixctl", required_argument, NULL, OPT_UNIXCTL},
        {"rest", required_argument, NULL, OPT_REST},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        DAEMON_LONG_OPTIONS,
        VLOG_LONG_OPTIONS,
        STREAM_SSL_LONG_OPTIONS,
        {NULL, 0, NULL, 0},
    };
    char *short_options = ovs_cmdl_long_options_to_short_options(long_options);
    int c;

    while ((c = getopt_long(argc, argv, short_options, long_options,
                            NULL)) != -1) {
        switch (c) {
        case OPT_INTENT:
            set_option(&o->intent);
            break;
        case OPT_HOSTS:
            set_option(&o->hosts);
            break;
        case OPT_TELEMETRY:
            set_option(&o->telemetry);
            break;
        case OPT_POLICY:
            set_option(&o->policy);
            break;
        case OPT_SWITCH:
            svec_add(&o->switches, optarg);
            break;
        case OPT_UNIXCTL:
            set_option(&o->unixctl);
            break;
        case OPT_REST:
            set_option(&o->rest);
            break;
        case 'h':
            usage();
        case 'V':
            puts("stagecoach-controller " STAGECOACH_VERSION);
            exit(EXIT_SUCCESS);
        DAEMON_OPTION_HANDLERS
        VLOG_OPTION_HANDLERS
        STREAM_SSL_OPTION_HANDLERS
        case '?':
            exit(2);
        default:
            OVS_NOT_REACHED();
        }
    }
    free(short_options);
    if (optind < argc) {
        fprintf(stderr, "%s: \"%s\": unexpected argument, there are only "
                "options\n", program_name, argv[optind]);
        exit(2);
    }
    if (!o->policy) {
        fprintf(stderr, "%s: --policy: missing, the name of a policy's file "
                "is required\n", program_name);
        exit(2);
    }
    set_defaults(o);
}

static void
options_uninit(struct options *o)
{
    free(o->intent);
    free(o->hosts);
    free(o->telemetry);
    free(o->policy);
    free(o->unixctl);
    free(o->rest);
    svec_destroy(&o->switches);
}

/* Ends the program with 'error', which says what was wrong. */
OVS_NO_RETURN static void
fail(char *error)
{
    fprintf(stderr, "%s: %s\n", program_name, error);
    free(error);
    exit(EXIT_FAILURE);
}

static size_t
count_named_hosts(const struct cluster *c)
{
    const struct shash_node *node;
    size_t n = 0;

    SHASH_FOR_EACH (node, &c->hosts) {
        const struct host *host = node->data;

        n += host->named;
    }
    return n;
}

/* True once an active controller may decide.  A new leader first takes over
 * what is in force; '*since' is when it began to lead, 0 before. */
static bool
is_ready(const struct controller *ctl, long long *since)
{
    if (!intent_db_is_active(ctl->intent) || !hosts_db_is_ready(ctl->hosts)) {
        *since = 0;
        return false;
    }
    if (!*since) {
        *since = time_msec();
        hosts_db_restore(ctl->hosts);
    }
    if (hosts_db_has_order(ctl->hosts)
        && telemetry_n_agents(ctl->telemetry)
           < count_named_hosts(ctl->cluster)
        && time_msec() < *since + GRACE_MS) {
        poll_timer_wait_until(*since + GRACE_MS);
        return false;
    }
    return true;
}

static void
take_policy(struct controller *ctl)
{
    const struct policy *policy = policy_file_get(ctl->policy);

    decide_set_policy(ctl->decide, policy);
    intent_db_set_policy(ctl->intent, policy);
}

/* Everything that an active controller does. */
static void
lead(struct controller *ctl, long long *leading_since)
{
    const struct policy *policy = policy_file_get(ctl->policy);

    if (is_ready(ctl, leading_since)) {
        if (decide_run(ctl->decide, time_msec())) {
            hosts_db_mark(ctl->hosts);
        }
        hosts_db_write(ctl->hosts, policy, intent_db_generation(ctl->intent));
        switches_set(ctl->switches, policy, intent_db_generation(ctl->intent));
        decide_wait(ctl->decide);
    }
    if (*leading_since) {
        telemetry_send_leases(ctl->telemetry,
                              intent_db_generation(ctl->intent),
                              hosts_db_version(ctl->hosts), policy->lease_ms);
    }
}

static void
run_loop(struct controller *ctl, struct unixctl_server *unixctl,
         struct rest *rest)
{
    long long leading_since = 0;

    while (!terminated && !ctl->exiting) {
        bool reread;

        latch_poll(&signalled);
        intent_db_run(ctl->intent, policy_file_get(ctl->policy)->lease_ms);
        hosts_db_run(ctl->hosts);
        telemetry_run(ctl->telemetry);
        switches_run(ctl->switches);
        unixctl_server_run(unixctl);
        rest_run(rest);

        reread = hung_up;
        hung_up = false;
        if ((reread && policy_file_reload(ctl->policy))
            || policy_file_run(ctl->policy) || ctl->policy_changed) {
            ctl->policy_changed = false;
            take_policy(ctl);
            intent_db_event(ctl->intent, DECISION_POLICY,
                            policy_file_get(ctl->policy)->name, "policy",
                            "in force (%s)",
                            policy_file_get(ctl->policy)->hash);
        }
        lead(ctl, &leading_since);

        hosts_db_commit(ctl->hosts);
        intent_db_commit(ctl->intent);
        telemetry_wait(ctl->telemetry);
        switches_wait(ctl->switches);
        policy_file_wait(ctl->policy);
        unixctl_server_wait(unixctl);
        rest_wait(rest);
        latch_wait(&signalled);
        if (ctl->exiting || terminated) {
            poll_immediate_wake();
        }
        poll_block();
    }
}

int
main(int argc, char *argv[])
{
    struct options o = { .switches = SVEC_EMPTY_INITIALIZER };
    struct unixctl_server *unixctl;
    struct controller ctl = { .exiting = false };
    struct rest *rest;
    char *error;

    ovs_cmdl_proctitle_init(argc, argv);
    set_program_name(argv[0]);
    service_start(&argc, &argv);
    handle_signals();
    fatal_ignore_sigpipe();
    parse_options(argc, argv, &o);

    error = policy_file_open(o.policy, &ctl.policy);
    if (error) {
        fail(error);
    }
    daemonize_start(false);

    if (unixctl_server_create(o.unixctl, &unixctl)) {
        fail(xasprintf("%s: cannot listen there", o.unixctl));
    }
    ctl.cluster = cluster_create();
    ctl.log = decision_log_create(DECISIONS_KEPT);
    error = telemetry_create(o.telemetry, ctl.cluster, &ctl.telemetry);
    if (error) {
        fail(error);
    }
    ctl.switches = switches_create();
    for (size_t i = 0; i < o.switches.n; i++) {
        switches_add(ctl.switches, o.switches.names[i]);
    }
    ctl.decide = decide_create(ctl.cluster, ctl.log);
    ctl.intent = intent_db_create(o.intent, o.telemetry, ctl.cluster,
                                  ctl.log);
    ctl.hosts = hosts_db_create(o.hosts, ctl.cluster);
    take_policy(&ctl);
    control_register(&ctl);
    error = rest_create(o.rest, &ctl, &rest);
    if (error) {
        fail(error);
    }
    options_uninit(&o);

    daemonize_complete();
    VLOG_INFO("stagecoach-controller " STAGECOACH_VERSION);
    run_loop(&ctl, unixctl, rest);

    rest_destroy(rest);
    unixctl_server_destroy(unixctl);
    switches_destroy(ctl.switches);
    telemetry_destroy(ctl.telemetry);
    hosts_db_destroy(ctl.hosts);
    intent_db_destroy(ctl.intent);
    decide_destroy(ctl.decide);
    cluster_destroy(ctl.cluster);
    decision_log_destroy(ctl.log);
    policy_file_close(ctl.policy);
    service_stop();
    return 0;
}
