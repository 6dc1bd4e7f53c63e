/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/options.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "command-line.h"
#include "wire/tls.h"
#include "daemon.h"
#include "openvswitch/vlog.h"
#include "stream-ssl.h"
#include "stream.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(options);

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
           "  --members=DIR       follow who the databases' members are, by the\n"
           "                      servers whose control sockets are in DIR\n"
           "  --telemetry=REMOTE  where agents connect to\n"
           "                      (default: unix:RUNDIR/telemetry.sock)\n"
           "  --switch=TARGET     OpenFlow 1.3 switch to keep, such as\n"
           "                      unix:PATH or tcp:IP:PORT; may be repeated\n"
           "  --switch-identity=DATAPATH:NAME\n"
           "                      CN of the certificate of a switch of\n"
           "                      --switch=ssl:...; may be repeated\n"
           "  --topology=FILE     switches, links and hosts of a fabric\n"
           "  --link-key=FILE     secret by which links are looked at\n"
           "  --unixctl=SOCKET    control socket\n"
           "                      (default: RUNDIR/controller.ctl)\n"
           "  --rest=PLACE        where HTTP is answered: unix:PATH,\n"
           "                      pssl:PORT[:IP] or none; may be repeated\n"
           "                      (default: unix:RUNDIR/rest.sock)\n"
           "  --rest-client=NAME  CN of a certificate that may ask over TLS;\n"
           "                      may be repeated\n"
           "  --history=FILE      keep what has been there (default: nowhere)\n"
           "  --observe           compute orders and tell hosts of none\n"
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
set_defaults(struct controller_options *o)
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
    if (svec_is_empty(&o->rest)) {
        svec_add_nocopy(&o->rest, xasprintf("unix:%s/rest.sock", rundir));
    }
}

void
controller_options_parse(int argc, char *argv[],
                         struct controller_options *o)
{
    enum {
        OPT_INTENT = UCHAR_MAX + 1,
        OPT_HOSTS,
        OPT_MEMBERS,
        OPT_TELEMETRY,
        OPT_POLICY,
        OPT_SWITCH,
        OPT_SWITCH_IDENTITY,
        OPT_UNIXCTL,
        OPT_REST,
        OPT_REST_CLIENT,
        OPT_HISTORY,
        OPT_TOPOLOGY,
        OPT_OBSERVE,
        OPT_LINK_KEY,
        DAEMON_OPTION_ENUMS,
        VLOG_OPTION_ENUMS,
        SSL_OPTION_ENUMS,
    };
    static const struct option long_options[] = {
        {"intent", required_argument, NULL, OPT_INTENT},
        {"hosts", required_argument, NULL, OPT_HOSTS},
        {"members", required_argument, NULL, OPT_MEMBERS},
        {"telemetry", required_argument, NULL, OPT_TELEMETRY},
        {"policy", required_argument, NULL, OPT_POLICY},
        {"switch", required_argument, NULL, OPT_SWITCH},
        {"switch-identity", required_argument, NULL, OPT_SWITCH_IDENTITY},
        {"unixctl", required_argument, NULL, OPT_UNIXCTL},
        {"rest", required_argument, NULL, OPT_REST},
        {"rest-client", required_argument, NULL, OPT_REST_CLIENT},
        {"history", required_argument, NULL, OPT_HISTORY},
        {"topology", required_argument, NULL, OPT_TOPOLOGY},
        {"link-key", required_argument, NULL, OPT_LINK_KEY},
        {"observe", no_argument, NULL, OPT_OBSERVE},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        DAEMON_LONG_OPTIONS,
        VLOG_LONG_OPTIONS,
        STREAM_SSL_LONG_OPTIONS,
        {NULL, 0, NULL, 0},
    };
    char *short_options = ovs_cmdl_long_options_to_short_options(long_options);
    int c;

    *o = (struct controller_options) {
        .rest = SVEC_EMPTY_INITIALIZER,
        .rest_clients = SVEC_EMPTY_INITIALIZER,
        .switches = SVEC_EMPTY_INITIALIZER,
        .switch_identities = SVEC_EMPTY_INITIALIZER,
    };
    while ((c = getopt_long(argc, argv, short_options, long_options,
                            NULL)) != -1) {
        switch (c) {
        case OPT_INTENT:
            set_option(&o->intent);
            break;
        case OPT_HOSTS:
            set_option(&o->hosts);
            break;
        case OPT_MEMBERS:
            set_option(&o->members);
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
        case OPT_SWITCH_IDENTITY:
            svec_add(&o->switch_identities, optarg);
            break;
        case OPT_UNIXCTL:
            set_option(&o->unixctl);
            break;
        case OPT_REST:
            svec_add(&o->rest, optarg);
            break;
        case OPT_REST_CLIENT:
            svec_add(&o->rest_clients, optarg);
            break;
        case OPT_HISTORY:
            set_option(&o->history);
            break;
        case OPT_TOPOLOGY:
            set_option(&o->topology);
            break;
        case OPT_LINK_KEY:
            set_option(&o->link_key);
            break;
        case OPT_OBSERVE:
            o->observe = true;
            break;
        case 'h':
            usage();
        case 'V':
            puts("stagecoach-controller " STAGECOACH_VERSION);
            exit(EXIT_SUCCESS);
        DAEMON_OPTION_HANDLERS
        VLOG_OPTION_HANDLERS
        case 'p':
            set_option(&o->key);
            tls_set_file(c, optarg);
            break;
        case 'c':
            set_option(&o->certificate);
            tls_set_file(c, optarg);
            break;
        case 'C':
            set_option(&o->ca_cert);
            tls_set_file(c, optarg);
            break;
        case OPT_SSL_PROTOCOLS:
            stream_ssl_set_protocols(optarg);
            break;
        case OPT_SSL_CIPHERS:
            stream_ssl_set_ciphers(optarg);
            break;
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

void
controller_options_uninit(struct controller_options *o)
{
    free(o->intent);
    free(o->hosts);
    free(o->members);
    free(o->telemetry);
    free(o->policy);
    free(o->unixctl);
    svec_destroy(&o->rest);
    svec_destroy(&o->rest_clients);
    free(o->key);
    free(o->certificate);
    free(o->ca_cert);
    free(o->history);
    free(o->topology);
    free(o->link_key);
    svec_destroy(&o->switches);
    svec_destroy(&o->switch_identities);
}
