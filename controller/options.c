/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/options.h"

#include <stdlib.h>

#include "base/options.h"
#include "base/run-directory.h"
#include "controller/northbound/rest/token-review.h"
#include "util.h"
#include "wire/daemon-options.h"

static char *
add_to_svec(const char *text, void *svec)
{
    svec_add(svec, text);
    return NULL;
}

/* A daemon leaves its directory. */
static char *
copy_path(const char *text, void *path_)
{
    char **path = path_;

    free(*path);
    *path = abs_file_name(NULL, text);
    return NULL;
}

#define AT(MEMBER) OPTION_AT(struct controller_options, MEMBER)

static const struct option_row rows[] = {
    { "policy", OPTION_COPY, AT(policy), .value = "FILE", .required = true,
      .help = "policy; the controller reads it again when it changes" },
    { "intent", OPTION_COPY, AT(intent), .value = "REMOTE",
      .shown = "unix:RUNDIR/intent.sock", .help = "intent database" },
    { "hosts", OPTION_COPY, AT(hosts), .value = "REMOTE",
      .shown = "unix:RUNDIR/hosts.sock", .help = "hosts database" },
    { "members", OPTION_COPY, AT(members), .value = "DIR",
      .help = "follow changes of the databases' cluster members, through the "
              "servers with control sockets in DIR" },
    { "telemetry", OPTION_COPY, AT(telemetry), .value = "REMOTE",
      .shown = "unix:RUNDIR/telemetry.sock",
      .help = "address that agents connect to" },
    { "max-agents", OPTION_INTEGER, AT(max_agents), 1, 1000000, "N",
      .shown = "16384", .help = "connections of agents at the same time" },
    { "switch", OPTION_CUSTOM, AT(switches), .value = "TARGET",
      .repeated = true, .parse = add_to_svec,
      .help = "OpenFlow 1.3 switch to configure, such as unix:PATH or "
              "tcp:IP:PORT" },
    { "switch-identity", OPTION_CUSTOM, AT(switch_identities),
      .value = "DATAPATH:NAME", .repeated = true, .parse = add_to_svec,
      .help = "CN of the certificate of a switch of --switch=ssl:..." },
    { "topology", OPTION_COPY, AT(topology), .value = "FILE",
      .help = "switches, links and hosts of a fabric" },
    { "unixctl", OPTION_COPY, AT(unixctl), .value = "SOCKET",
      .shown = "RUNDIR/controller.ctl", .help = "control socket" },
    { "rest", OPTION_CUSTOM, AT(rest), .value = "ADDRESS", .repeated = true,
      .parse = add_to_svec, .shown = "unix:RUNDIR/rest.sock",
      .help = "address of the HTTP server: unix:PATH, pssl:PORT[:IP] or "
              "none" },
    { "rest-ca-cert", OPTION_CUSTOM, AT(rest_ca_cert), .value = "FILE",
      .parse = copy_path,
      .help = "authority of the certificates of HTTP clients" },
    { "rest-users", OPTION_FLAG, AT(rest_users),
      .help = "let all users of this machine connect to the HTTP server's "
              "Unix sockets, for searches of their own" },
    { "api-server", OPTION_COPY, AT(api_server), .value = "SERVER",
      .help = "API server of Kubernetes that reviews tokens of HTTP clients: "
              "https://HOST or unix:PATH" },
    { "api-account", OPTION_CUSTOM, AT(api_account), .value = "DIR",
      .parse = copy_path, .shown = TOKEN_REVIEW_FOLDER,
      .help = "token and ca.crt for that server" },
    { "history", OPTION_COPY, AT(history), .value = "FILE",
      .help = "keep the history of stages and decisions in this file" },
    { "history-size", OPTION_INTEGER, AT(history_mib), 1, 1 << 20, "MIB",
      .deflt = "256",
      .help = "limit of that file in MiB; the oldest rows are deleted first" },
    { "dbdir", OPTION_COPY, AT(dbdir), .value = "DIR",
      .help = "watch the databases' directory for damage and free space" },
    { .name = NULL },
};

static const struct option_table table = {
    .name = "stagecoach-controller",
    .version = "stagecoach-controller " STAGECOACH_VERSION,
    .usage = "usage: stagecoach-controller [OPTIONS] --policy=FILE\n\n"
             "Orders the network by search stages.\n",
    .footer = "RUNDIR is $STAGECOACH_RUNDIR, "
              "or\n/run/stagecoach/controller.\n",
    .rows = rows,
};

static void
set_defaults(struct controller_options *o)
{
    const char *base = getenv("STAGECOACH_RUNDIR");
    char *rundir = run_directory_of_controller(base && *base ? base
                                               : RUN_DIRECTORY);

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
    if (!o->api_account) {
        o->api_account = xstrdup(TOKEN_REVIEW_FOLDER);
    }
    if (svec_is_empty(&o->rest)) {
        svec_add_nocopy(&o->rest, xasprintf("unix:%s/rest.sock", rundir));
    }
    free(rundir);
}

void
controller_options_parse(int argc, char *argv[], struct controller_options *o)
{
    *o = (struct controller_options){ .rest = SVEC_EMPTY_INITIALIZER,
                                      .switches = SVEC_EMPTY_INITIALIZER,
                                      .switch_identities =
                                          SVEC_EMPTY_INITIALIZER };
    daemon_options_parse(&table, true, false, argc, argv, o);
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
    free(o->rest_ca_cert);
    free(o->api_server);
    free(o->api_account);
    free(o->dbdir);
    free(o->history);
    free(o->topology);
    svec_destroy(&o->switches);
    svec_destroy(&o->switch_identities);
}
