/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach controller: creates the databases, alone or as members of a
 * cluster, and starts and stops databases, relay and controller. */

#include <config.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/operator/controller-daemons.h"
#include "cli/operator/controller-query.h"
#include "cli/operator/table.h"
#include "controller/ovsdb/database-cluster.h"
#include "controller/ovsdb/database.h"
#include "controller/ovsdb/rpc-call.h"
#include "openvswitch/json.h"
#include "openvswitch/vlog.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

static struct json *
cluster_to_json(const struct database *db, const struct database_cluster *dc)
{
    struct json *members = json_array_create_empty();
    struct json *json = json_object_create();

    for (size_t i = 0; i < dc->members.n; i++) {
        json_array_add(members, json_string_create(dc->members.names[i]));
    }
    json_object_put_string(json, "database", db->name);
    json_object_put_string(json, "status", dc->status);
    json_object_put_string(json, "role", dc->role);
    json_object_put_string(json, "leader", dc->leader);
    json_object_put_string(json, "term", dc->term);
    json_object_put_string(json, "address", dc->address);
    json_object_put(json, "members", members);
    return json;
}

static void
add_row(struct table *t, const struct database *db,
        const struct database_cluster *dc)
{
    char *members = svec_join(&dc->members, " ", "");

    table_add(t, "%s", db->name);
    table_add(t, "%s", dc->role);
    table_add(t, "%s", dc->term);
    table_add(t, "%s", dc->status);
    table_add(t, "%s", members);
    free(members);
}

static char *
check(const struct database *db, const struct database_cluster *dc)
{
    return (strcmp(dc->leader, "unknown") ? NULL
            : xasprintf("%s: the cluster has no leader, a majority of "
                        "its members must run and be connected",
                        db->name));
}

static char *
controller_status(const char *rundir,
                  const struct database *const databases[], size_t n,
                  bool json)
{
    struct table *t = table_create("database", "role", "term", "status",
                                   "members", NULL);
    struct json *array = json_array_create_empty();
    char *error = NULL;

    for (size_t i = 0; !error && i < n; i++) {
        struct database_cluster dc;

        error = database_cluster_get(databases[i], rundir, &dc);
        if (!error) {
            add_row(t, databases[i], &dc);
            json_array_add(array, cluster_to_json(databases[i], &dc));
            error = check(databases[i], &dc);
        }
        database_cluster_uninit(&dc);
    }
    if (json) {
        struct json *top = json_object_create();
        char *text;

        json_object_put(top, "databases", json_clone(array));
        text = json_to_string(top, JSSF_SORT);
        puts(text);
        free(text);
        json_destroy(top);
    } else {
        table_print(t, stdout);
    }
    json_destroy(array);
    table_destroy(t);
    return error;
}

/* Function and arguments of a command. */
struct verb {
    const char *name;
    char *(*action)(struct controller_options *);
    const char *operand;        /* Name of its positional argument, NULL if it
                                 * has none. */
    bool extra;                 /* True if arguments of another program may
                                 * follow "--". */
};

static void
complain(char *error)
{
    fprintf(stderr, "stagecoach controller: %s\n", error);
    free(error);
}

/* Stores the absolute name of a file. */
static char *
set_path(const char *text, void *path)
{
    free(*(char **) path);
    *(char **) path = abs_file_name(NULL, text);
    return NULL;
}

/* Returns 'address' in the form that precedes ":PORT". */
static char *
bracket(const char *address)
{
    return (strchr(address, ':') && address[0] != '['
            ? xasprintf("[%s]", address) : xstrdup(address));
}

static char *
set_address(const char *text, void *address)
{
    free(*(char **) address);
    *(char **) address = bracket(text);
    return NULL;
}

#define AT(MEMBER) OPTION_AT(struct controller_options, MEMBER)

static const struct option_row rows[] = {
    { "rundir", OPTION_CUSTOM, AT(rundir), .value = "DIR", .parse = set_path,
      .shown = "$STAGECOACH_RUNDIR or /run/stagecoach",
      .help = "directory of sockets" },
    { "dbdir", OPTION_CUSTOM, AT(dbdir), .value = "DIR", .parse = set_path,
      .deflt = "/var/lib/stagecoach", .help = "directory of the databases" },
    { "policy", OPTION_CUSTOM, AT(policy), .value = "FILE",
      .parse = set_path, .help = "policy of the controller" },
    { "address", OPTION_CUSTOM, AT(address), .value = "ADDRESS",
      .parse = set_address,
      .help = "address of this machine for agents and other members" },
    { "tls", OPTION_CUSTOM, AT(tls), .value = "DIR", .parse = set_path,
      .deflt = "/etc/stagecoach/tls", .help = "directory of certificates" },
    FORMAT_ROW(struct controller_options, json),
    { .name = NULL },
};

/* Parses the options.  Returns an exit status, or -1 to continue. */
static int
parse_options(int argc, char *argv[], const struct verb *verb,
              struct controller_options *o)
{
    const struct option_table table = {
        .name = "stagecoach controller", .rows = rows,
        .usage = "usage: stagecoach controller COMMAND [ARG...]\n",
        .operand = verb->operand, .min_operands = verb->operand ? 1 : 0,
        .max_operands = verb->extra ? -1 : verb->operand ? 1 : 0,
    };
    int first, status;

    set_path(cli_rundir(), &o->rundir);
    status = option_table_command(&table, argc, argv, o, &first);
    if (status < 0 && verb->operand) {
        o->name = argv[first];
        o->extra = &argv[first + 1];
        if (first + 1 < argc && strcmp(argv[first - 1], "--")) {
            fprintf(stderr, "stagecoach controller: \"%s\": unexpected "
                    "argument\n", argv[first + 1]);
            return EXIT_USAGE;
        }
    }
    return status;
}

static void
options_uninit(struct controller_options *o)
{
    free(o->rundir);
    free(o->dbdir);
    free(o->policy);
    free(o->tls);
    free(o->address);
}

/* Starts 'name' with pid file and log 'file', unless it runs. */
static char *
start_daemon(const struct controller_options *o, const char *name,
             const char *file)
{
    struct svec argv;
    char *error;

    if (daemon_find(o->rundir, file)) {
        return NULL;
    }
    error = controller_daemon_argv(o, name, &argv);
    error = error ? error : daemon_start(o->rundir, file, argv.names);
    svec_destroy(&argv);
    return error;
}

static char *
start_database(const struct controller_options *o, const struct database *db)
{
    char *file = xasprintf("%s-db", db->name);
    char *error = start_daemon(o, db->name, file);

    free(file);
    return error ? error : controller_await_database(o, db);
}

/* Starts the relay, through which agents access the hosts database. */
static char *
start_relay(const struct controller_options *o)
{
    char *remote, *error;

    if (!o->address) {
        return NULL;
    }
    error = start_daemon(o, "relay", "relay");
    remote = xasprintf("unix:%s/relay.sock", o->rundir);
    error = error ? error : database_wait(&database_hosts, remote,
                                          CONTROLLER_START_MS);
    free(remote);
    return error;
}

/* Waits until the controller is active or standby. */
static char *
await_controller(const struct controller_options *o)
{
    char *socket = xasprintf("%s/controller.ctl", o->rundir);
    long long deadline = time_msec() + CONTROLLER_START_MS;
    char *error = NULL;
    bool ready = false;

    while (!ready && time_msec() < deadline) {
        char *reply;
        int errnum;

        free(error);
        error = rpc_unixctl(socket, "controller/status", 0, NULL,
                            deadline - time_msec(), &reply, &errnum);
        ready = !error && (strstr(reply, "\"state\":\"active\"")
                           || strstr(reply, "\"state\":\"standby\""));
        free(reply);
        if (!ready) {
            xnanosleep(20 * 1000 * 1000);
        }
    }
    free(socket);
    return (ready || error ? error
            : xasprintf("controller: not ready after %d ms, %s/"
                        "controller.log has the reason", CONTROLLER_START_MS,
                        o->rundir));
}

static char *
start(struct controller_options *o)
{
    char *error = controller_init_databases(o);

    for (size_t i = 0; !error && i < CONTROLLER_N_DATABASES; i++) {
        error = start_database(o, controller_databases[i]);
    }
    error = error ? error : start_relay(o);
    error = error ? error : start_daemon(o, "controller", "controller");
    return error ? error : await_controller(o);
}

static char *
stop(struct controller_options *o)
{
    static const char *const names[] = { "controller", "relay", "hosts-db",
                                         "intent-db" };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char *error = daemon_stop(o->rundir, names[i]);

        if (error) {
            return error;
        }
    }
    return NULL;
}

static char *
init(struct controller_options *o)
{
    return controller_init_databases(o);
}

/* Creates the databases as members of the clusters of machine 'o->name'. */
static char *
join(struct controller_options *o)
{
    char *peer = bracket(o->name);
    char *error = (o->address ? controller_make_directories(o)
                   : xstrdup("--address: the address of this machine is "
                             "required"));

    for (size_t i = 0; !error && i < CONTROLLER_N_DATABASES; i++) {
        const struct database *db = controller_databases[i];
        char *file = controller_database_file(db, o);

        error = database_join(db, file, o->address, peer);
        free(file);
    }
    free(peer);
    return error;
}

static char *
show_status(struct controller_options *o)
{
    return controller_status(o->rundir, controller_databases,
                             CONTROLLER_N_DATABASES, o->json);
}

static int
run_controller(int argc, char *argv[])
{
    static const struct verb verbs[] = {
        { "init", init, NULL, false },
        { "join", join, "PEER", false },
        { "start", start, NULL, false },
        { "stop", stop, NULL, false },
        { "exec", controller_exec, "NAME", true },
        { "status", show_status, NULL, false },
    };
    struct controller_options o = { .rundir = NULL };
    const struct verb *verb = verbs;
    int status;

    while (strcmp(verb->name, argv[0])) {
        verb++;
    }

    vlog_set_levels(NULL, VLF_CONSOLE, VLL_ERR);
    vlog_set_levels(NULL, VLF_SYSLOG, VLL_OFF);
    status = parse_options(argc, argv, verb, &o);
    if (status < 0) {
        char *error = verb->action(&o);

        status = EXIT_OK;
        if (error) {
            complain(error);
            status = EXIT_NO;
        }
    }
    options_uninit(&o);
    return status;
}

int
cmd_controller(int argc, char *argv[])
{
    static const struct command commands[] = {
        { "init", "[--address ADDRESS] [--dbdir DIR]",
          "Create the databases.", run_controller },
        { "join", "PEER --address ADDRESS [--dbdir DIR]",
          "Create the databases as members of the clusters of machine PEER.",
          run_controller },
        { "start", "[--address ADDRESS [--tls DIR]] [--policy FILE] "
          "[--rundir DIR] [--dbdir DIR]",
          "Start the databases and the controller.", run_controller },
        { "stop", "[--rundir DIR]", "Stop the controller and the databases.",
          run_controller },
        { "exec", "NAME [OPTIONS as of start] [-- ARGUMENT...]",
          "Run one program: intent, hosts, relay or controller.",
          run_controller },
        { "status", "[--rundir DIR] [--format table|json]",
          "Show the database clusters from the view of this machine.",
          run_controller },
        { NULL, NULL, NULL, NULL },
    };

    return command_group(commands, "stagecoach controller", argc, argv);
}
