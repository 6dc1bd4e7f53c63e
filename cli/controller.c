/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach controller: creates the databases, alone or as members of others'
 * clusters, starts and stops them, the relay and the controller. */

#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/controller-query.h"
#include "cli/controller-status.h"
#include "cli/daemon-start.h"
#include "controller/database-cluster.h"
#include "controller/database.h"
#include "controller/rpc-call.h"
#include "openvswitch/vlog.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

#define START_MS 10000

/* Where agents with TLS bring their telemetry. */
#define TELEMETRY_PORT 6650
static const struct database *const databases[] = {
    &database_intent, &database_hosts,
};

struct controller_options {
    char *rundir, *dbdir, *policy, *tls;        /* Absolute. */
    char *address;              /* Of this machine, for the others and for
                                 * agents; NULL: sockets only. */
    const char *peer;           /* To join, NULL for all other commands. */
    bool json;
};

static void
complain(char *error)
{
    fprintf(stderr, "stagecoach controller: %s\n", error);
    free(error);
}

/* Returns the first of 'places', relative to this program, where 'name' can be
 * accessed, or NULL. */
static char *
find_beside(const char *const places[], const char *name, int mode)
{
    char exe[4096];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);

    if (n <= 0) {
        return NULL;
    }
    exe[n] = '\0';
    *strrchr(exe, '/') = '\0';
    for (size_t i = 0; places[i]; i++) {
        char *path = xasprintf("%s/%s/%s", exe, places[i], name);

        if (!access(path, mode)) {
            return path;
        }
        free(path);
    }
    return NULL;
}

static char *
find_policy(void)
{
    static const char *const places[] = {
        "../share/stagecoach/policies", "../../policies", NULL,
    };

    return find_beside(places, "stage.json", R_OK);
}

static char *
find_controller(void)
{
    static const char *const places[] = { "../controller", ".", NULL };

    return find_beside(places, "stagecoach-controller", X_OK);
}

static void
set_path(char **option, const char *value)
{
    free(*option);
    *option = abs_file_name(NULL, value);
}

/* Returns 'address' as it is written before a port. */
static char *
bracket(const char *address)
{
    return (strchr(address, ':') && address[0] != '['
            ? xasprintf("[%s]", address) : xstrdup(address));
}

/* Returns an exit status, or -1 to go on. */
static int
parse(int argc, char *argv[], bool takes_peer, struct controller_options *o)
{
    static const struct option options[] = {
        {"rundir", required_argument, NULL, 'r'},
        {"dbdir", required_argument, NULL, 'd'},
        {"policy", required_argument, NULL, 'p'},
        {"address", required_argument, NULL, 'a'},
        {"tls", required_argument, NULL, 't'},
        {"format", required_argument, NULL, 'f'},
        {NULL, 0, NULL, 0},
    };
    int c;

    set_path(&o->rundir, cli_rundir());
    set_path(&o->dbdir, "/var/lib/stagecoach");
    set_path(&o->tls, "/etc/stagecoach/tls");
    optind = 0;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 'r':
            set_path(&o->rundir, optarg);
            break;
        case 'd':
            set_path(&o->dbdir, optarg);
            break;
        case 'p':
            set_path(&o->policy, optarg);
            break;
        case 't':
            set_path(&o->tls, optarg);
            break;
        case 'a':
            free(o->address);
            o->address = bracket(optarg);
            break;
        case 'f':
            o->json = !strcmp(optarg, "json");
            if (!o->json && strcmp(optarg, "table")) {
                fprintf(stderr, "stagecoach controller: --format: \"%s\" is "
                        "not one of \"table\", \"json\"\n", optarg);
                return EXIT_USAGE;
            }
            break;
        default:
            return EXIT_USAGE;
        }
    }
    if (takes_peer) {
        if (optind == argc || !o->address) {
            fputs("stagecoach controller join: PEER and --address are "
                  "needed, a member's address and this machine's\n", stderr);
            return EXIT_USAGE;
        }
        o->peer = argv[optind++];
    }
    if (optind < argc) {
        fprintf(stderr, "stagecoach controller: \"%s\": unexpected argument, "
                "there are only options\n", argv[optind]);
        return EXIT_USAGE;
    }
    return -1;
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

static struct database_site
get_site(const struct controller_options *o)
{
    return (struct database_site) {
        .rundir = o->rundir, .address = o->address, .tls = o->tls,
    };
}

/* Creates 'dir' and what leads to it. */
static char *
make_directory(const char *dir)
{
    char *path = xstrdup(dir);
    char *error = NULL;

    for (char *p = path + 1; !error; p++) {
        char c = *p;

        if (c == '/' || !c) {
            *p = '\0';
            if (mkdir(path, 0755) && errno != EEXIST) {
                error = xasprintf("%s: cannot be created (%s)", path,
                                  ovs_strerror(errno));
            }
            *p = c;
        }
        if (!c) {
            break;
        }
    }
    free(path);
    return error;
}

static char *
database_file(const struct database *db, const struct controller_options *o)
{
    return xasprintf("%s/%s.db", o->dbdir, db->name);
}

static char *
init_databases(const struct controller_options *o)
{
    char *error = make_directory(o->dbdir);

    for (size_t i = 0; !error && i < ARRAY_SIZE(databases); i++) {
        char *file = database_file(databases[i], o);

        error = database_init(databases[i], file, o->address);
        free(file);
    }
    return error;
}

static char *
start_database(const struct controller_options *o, const struct database *db)
{
    char *name = xasprintf("%s-db", db->name);
    char *error = NULL;

    if (!daemon_find(o->rundir, name)) {
        char *file = database_file(db, o);
        struct database_site site = get_site(o);
        char **argv = database_argv(db, file, &site);

        error = daemon_start(o->rundir, name, argv);
        database_argv_free(argv);
        free(file);
    }
    if (!error) {
        char *remote = database_remote(db, o->rundir);

        error = database_wait(db, remote, START_MS);
        if (!error) {
            error = database_upgrade(db, remote, START_MS);
        }
        free(remote);
    }
    free(name);
    return error;
}

/* What agents reach of the hosts database. */
static char *
start_relay(const struct controller_options *o)
{
    struct database_site site = get_site(o);
    char *error = NULL;
    char *remote;

    if (!o->address) {
        return NULL;
    }
    if (!daemon_find(o->rundir, "relay")) {
        char **argv = database_relay_argv(&site);

        error = daemon_start(o->rundir, "relay", argv);
        database_argv_free(argv);
    }
    remote = xasprintf("unix:%s/relay.sock", o->rundir);
    error = error ? error : database_wait(&database_hosts, remote, START_MS);
    free(remote);
    return error;
}

/* Adds where 'db' is: here, and wherever else its cluster has members now. */
static char *
add_database(const struct controller_options *o, const struct database *db,
             struct svec *argv)
{
    struct database_cluster dc;
    char *error = database_cluster_ask(db, o->rundir, &dc);

    if (!error) {
        char *remote = database_cluster_remote(db, o->rundir, &dc);

        svec_add_nocopy(argv, xasprintf("--%s=%s", db->name, remote));
        free(remote);
    }
    database_cluster_uninit(&dc);
    return error;
}

/* Adds where agents reach the controller, and how they are known. */
static void
add_telemetry(const struct controller_options *o, struct svec *argv)
{
    if (!o->address) {
        svec_add_nocopy(argv, xasprintf("--telemetry=unix:%s/telemetry.sock",
                                        o->rundir));
        return;
    }
    svec_add_nocopy(argv, xasprintf("--telemetry=pssl:%d:%s", TELEMETRY_PORT,
                                    o->address));
    svec_add_nocopy(argv, xasprintf("--private-key=%s/identity.pem", o->tls));
    svec_add_nocopy(argv, xasprintf("--certificate=%s/identity.pem", o->tls));
    svec_add_nocopy(argv, xasprintf("--ca-cert=%s/ca.pem", o->tls));
}

static char *
start_controller(const struct controller_options *o)
{
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    char *error = NULL;
    char *program;

    if (daemon_find(o->rundir, "controller")) {
        return NULL;
    }
    program = find_controller();
    if (!program) {
        return xstrdup("stagecoach-controller: not found beside this "
                       "program");
    }
    svec_add_nocopy(&argv, program);
    svec_add_nocopy(&argv, xasprintf("--policy=%s", o->policy));
    for (size_t i = 0; i < ARRAY_SIZE(databases); i++) {
        error = error ? error : add_database(o, databases[i], &argv);
    }
    svec_add_nocopy(&argv, xasprintf("--members=%s", o->rundir));
    add_telemetry(o, &argv);
    svec_add_nocopy(&argv, xasprintf("--unixctl=%s/controller.ctl",
                                     o->rundir));
    svec_add_nocopy(&argv, xasprintf("--rest=unix:%s/rest.sock", o->rundir));
    svec_add_nocopy(&argv, xasprintf("--history=%s/history.db", o->dbdir));
    svec_add(&argv, "-vconsole:warn");
    svec_add(&argv, "-vsyslog:off");
    svec_terminate(&argv);
    error = error ? error : daemon_start(o->rundir, "controller",
                                         argv.names);
    svec_destroy(&argv);
    return error;
}

/* Waits until the controller leads, or stands by because another one does. */
static char *
await_controller(const struct controller_options *o)
{
    char *socket = xasprintf("%s/controller.ctl", o->rundir);
    long long deadline = time_msec() + START_MS;
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
                        "controller.log says why", START_MS, o->rundir));
}

static char *
start(struct controller_options *o)
{
    char *error;

    if (!o->policy) {
        o->policy = find_policy();
        if (!o->policy) {
            return xstrdup("--policy: there is no stage.json beside this "
                           "program, a policy's file is required");
        }
    }
    error = make_directory(o->rundir);
    if (!error) {
        error = init_databases(o);
    }
    for (size_t i = 0; !error && i < ARRAY_SIZE(databases); i++) {
        error = start_database(o, databases[i]);
    }
    error = error ? error : start_relay(o);
    error = error ? error : start_controller(o);
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
    return init_databases(o);
}

/* Makes this machine's databases members of the clusters that the machine
 * 'o->peer' has members of. */
static char *
join(struct controller_options *o)
{
    char *peer = bracket(o->peer);
    char *error = make_directory(o->dbdir);

    for (size_t i = 0; !error && i < ARRAY_SIZE(databases); i++) {
        char *file = database_file(databases[i], o);

        error = database_join(databases[i], file, o->address, peer);
        free(file);
    }
    free(peer);
    return error;
}

static char *
show_status(struct controller_options *o)
{
    return controller_status(o->rundir, databases, ARRAY_SIZE(databases),
                             o->json);
}

static int
run_controller(int argc, char *argv[], bool takes_peer,
               char *(*action)(struct controller_options *))
{
    struct controller_options o = { .rundir = NULL };
    int status;

    vlog_set_levels(NULL, VLF_CONSOLE, VLL_ERR);
    vlog_set_levels(NULL, VLF_SYSLOG, VLL_OFF);
    status = parse(argc, argv, takes_peer, &o);
    if (status < 0) {
        char *error = action(&o);

        status = EXIT_OK;
        if (error) {
            complain(error);
            status = EXIT_NO;
        }
    }
    options_uninit(&o);
    return status;
}

static int
cmd_controller_init(int argc, char *argv[])
{
    return run_controller(argc, argv, false, init);
}

static int
cmd_controller_start(int argc, char *argv[])
{
    return run_controller(argc, argv, false, start);
}

static int
cmd_controller_stop(int argc, char *argv[])
{
    return run_controller(argc, argv, false, stop);
}

static int
cmd_controller_join(int argc, char *argv[])
{
    return run_controller(argc, argv, true, join);
}

static int
cmd_controller_status(int argc, char *argv[])
{
    return run_controller(argc, argv, false, show_status);
}

int
cmd_controller(int argc, char *argv[])
{
    static const struct command commands[] = {
        { "init", "[--address ADDRESS] [--dbdir DIR]",
          "Create the databases.", cmd_controller_init },
        { "join", "PEER --address ADDRESS [--dbdir DIR]",
          "Create them as members of the clusters at PEER.",
          cmd_controller_join },
        { "start", "[--address ADDRESS [--tls DIR]] [--policy FILE] "
          "[--rundir DIR] [--dbdir DIR]",
          "Start the databases and the controller.", cmd_controller_start },
        { "stop", "[--rundir DIR]", "Stop them.", cmd_controller_stop },
        { "status", "[--rundir DIR] [--format table|json]",
          "The databases' clusters, as their members here know them.",
          cmd_controller_status },
        { NULL, NULL, NULL, NULL },
    };

    if (command_help(commands, "stagecoach controller", argc - 1, argv + 1)) {
        return EXIT_OK;
    }
    return command_dispatch(commands, "stagecoach controller", argc - 1,
                            argv + 1);
}
