/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach controller: creates the databases, alone or as members of a
 * cluster, and starts and stops databases, relay and controller. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/directory.h"
#include "cli/command.h"
#include "cli/data-file.h"
#include "cli/operator/controller-query.h"
#include "cli/operator/table.h"
#include "controller/ovsdb/database-cluster.h"
#include "controller/ovsdb/database-file.h"
#include "controller/ovsdb/database-guard.h"
#include "controller/ovsdb/database.h"
#include "controller/ovsdb/rpc-call.h"
#include "daemon.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"
#include "wire/tls-defaults.h"

#define START_MS 10000
#define STOP_MS 5000
#define GUARD_MS 1000 /* Between two checks of the guard. */

extern char **environ;

struct controller_options {
    char *rundir, *dbdir, *policy, *tls;        /* Absolute. */
    int64_t history_mib;                        /* Limit of the history. */
    char *address;              /* Address of this machine for other members
                                 * and agents; NULL: only unix sockets. */
    const char *name;           /* First positional argument, or NULL. */
    char **extra;               /* Arguments after "--". */
    bool json;
};

static const struct database *const databases[] = { &database_intent,
                                                    &database_hosts };

static char *
make_directories(const struct controller_options *o)
{
    char *error = directory_create(o->rundir);

    return error ? error : directory_create(o->dbdir);
}

static char *
database_file(const struct database *db, const struct controller_options *o)
{
    return xasprintf("%s/%s.db", o->dbdir, db->name);
}

/* Creates 'db' if it does not exist, otherwise checks its file; damage is
 * reported and does not prevent a start. */
static char *
init_database(const struct controller_options *o, const struct database *db)
{
    char *file = database_file(db, o);
    char *damage = database_file_protect(file);
    char *error = database_init(db, file, o->address);

    if (damage) {
        fprintf(stderr, "stagecoach controller: %s\n", damage);
        free(damage);
    }
    free(file);
    return error;
}

static char *
init_databases(struct controller_options *o)
{
    char *error = make_directories(o);

    for (size_t i = 0; !error && i < ARRAY_SIZE(databases); i++) {
        error = init_database(o, databases[i]);
    }
    return error;
}

/* Waits until the local server of 'db' replies, and upgrades its schema. */
static char *
await_database(const struct controller_options *o, const struct database *db)
{
    char *remote = database_remote(db, o->rundir);
    char *error = database_wait(db, remote, START_MS);

    if (!error) {
        error = database_upgrade(db, remote, START_MS);
    }
    free(remote);
    return error;
}

/* Adds the remote of 'db': this machine and the other members of its
 * cluster. */
static char *
add_database(const struct controller_options *o, const struct database *db,
             struct svec *argv)
{
    struct database_cluster dc;
    char *error = database_cluster_get(db, o->rundir, &dc);

    if (!error) {
        char *remote = database_cluster_remote(db, o->rundir, &dc);

        svec_add_nocopy(argv, xasprintf("--%s=%s", db->name, remote));
        free(remote);
    }
    database_cluster_uninit(&dc);
    return error;
}

/* Adds the address for agents, and the keys. */
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
    svec_add_nocopy(argv,
                    xasprintf("--rest-ca-cert=%s/clients-ca.pem", o->tls));
}

/* Adds the other options of the controller. */
static void
add_files(const struct controller_options *o, const char *policy,
          struct svec *argv)
{
    svec_add_nocopy(argv, xasprintf("--policy=%s", policy));
    svec_add_nocopy(argv, xasprintf("--unixctl=%s/controller.ctl", o->rundir));
    svec_add_nocopy(argv, xasprintf("--rest=unix:%s/rest.sock", o->rundir));
    svec_add_nocopy(argv, xasprintf("--history=%s/history.db", o->dbdir));
    svec_add_nocopy(argv,
                    xasprintf("--history-size=%" PRId64, o->history_mib));
    svec_add_nocopy(argv, xasprintf("--dbdir=%s", o->dbdir));
    svec_add_nocopy(argv, xasprintf("--members=%s", o->rundir));
    svec_add(argv, "-vconsole:warn");
    svec_add(argv, "-vsyslog:off");
}

static char *
controller_argv(const struct controller_options *o, struct svec *argv)
{
    static const char *const places[] = { "../controller", ".", NULL };
    char *program = directory_find(places, "stagecoach-controller", X_OK);
    char *policy = (o->policy ? xstrdup(o->policy)
                    : data_file_find("policies/stage.json"));
    char *error = NULL;

    if (!program) {
        error = xstrdup("stagecoach-controller: not found in the folder "
                        "of this program");
    } else if (!policy) {
        error = xstrdup("--policy: stage.json is not installed, a "
                        "policy file is required");
    } else {
        svec_add(argv, program);
        for (size_t i = 0; !error && i < ARRAY_SIZE(databases); i++) {
            error = add_database(o, databases[i], argv);
        }
        add_telemetry(o, argv);
        add_files(o, policy, argv);
    }
    free(policy);
    free(program);
    return error;
}

/* Stores the command line of program 'name' in '*argv': "intent", "hosts",
 * "relay" or "controller".  The databases must run before "controller". */
static char *
daemon_argv(const struct controller_options *o, const char *name,
            struct svec *argv)
{
    struct database_site site = {
        .rundir = o->rundir, .address = o->address, .tls = o->tls,
    };
    char *error = NULL;

    svec_init(argv);
    if (!strcmp(name, "controller")) {
        error = controller_argv(o, argv);
    } else if (!strcmp(name, "relay")) {
        if (!o->address) {
            return xstrdup("relay: --address is required, local agents "
                           "do not use a relay");
        }
        database_relay_argv(&site, argv);
    } else {
        for (size_t i = 0; i < ARRAY_SIZE(databases); i++) {
            const struct database *db = databases[i];

            if (!strcmp(name, db->name)) {
                char *file = database_file(db, o);

                error = database_prepare(db, &site);
                database_argv(db, file, &site, argv);
                free(file);
            }
        }
        if (!argv->n) {
            return xasprintf("\"%s\" is not one of \"intent\", \"hosts\", "
                             "\"relay\", \"controller\"", name);
        }
    }
    svec_terminate(argv);
    return error;
}

/* Prepares for running 'o->name'. */
static char *
prepare(const struct controller_options *o)
{
    bool is_controller = !strcmp(o->name, "controller");
    char *error = make_directories(o);

    for (size_t i = 0; !error && i < ARRAY_SIZE(databases); i++) {
        const struct database *db = databases[i];

        if (is_controller) {
            error = await_database(o, db);
        } else if (!strcmp(o->name, db->name)) {
            error = init_database(o, db);
        }
    }
    return error;
}

/* Starts the guard of the database server or relay 'o->name', unless it is the
 * controller. */
static void
guard(const struct controller_options *o)
{
    if (!strcmp(o->name, "relay")) {
        database_guard_start(NULL, o->name, o->rundir, NULL);
    }
    for (size_t i = 0; i < ARRAY_SIZE(databases); i++) {
        if (!strcmp(o->name, databases[i]->name)) {
            char *file = database_file(databases[i], o);

            database_guard_start(databases[i], o->name, o->rundir, file);
            free(file);
        }
    }
}

/* Executes the program 'o->name'.  Returns only with a message. */
static char *
exec_daemon(struct controller_options *o)
{
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    char *error = prepare(o);

    error = error ? error : daemon_argv(o, o->name, &argv);
    if (!error) {
        for (size_t i = 0; o->extra[i]; i++) {
            svec_add(&argv, o->extra[i]);
        }
        svec_terminate(&argv);
        /* Only its user may access its sockets. */
        umask(077);
        guard(o);
        execvp(argv.names[0], argv.names);
        error = xasprintf("%s: cannot be started (%s)", argv.names[0],
                          ovs_strerror(errno));
    }
    svec_destroy(&argv);
    return error;
}

/* Returns the process of daemon 'name', or 0 if it does not run. */
static pid_t
daemon_find(const char *rundir, const char *name)
{
    char *pidfile = xasprintf("%s/%s.pid", rundir, name);
    pid_t pid = 0;

    if (!access(pidfile, F_OK)) {
        pid = MAX(read_pidfile(pidfile), 0);
    }
    free(pidfile);
    return pid;
}

/* Stops daemon 'name' and waits until it has ended. */
static char *
daemon_stop(const char *rundir, const char *name)
{
    long long deadline = time_msec() + STOP_MS;
    pid_t pid = daemon_find(rundir, name);

    if (!pid) {
        return NULL;
    }
    if (kill(pid, SIGTERM) && errno != ESRCH) {
        return xasprintf("%s: process %ld cannot be stopped (%s)", name,
                         (long) pid, ovs_strerror(errno));
    }
    while (daemon_find(rundir, name) == pid) {
        if (time_msec() >= deadline) {
            return xasprintf("%s: process %ld is still running after %d ms",
                             name, (long) pid, STOP_MS);
        }
        xnanosleep(10 * 1000 * 1000);
    }
    return NULL;
}

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

    table_add(t, "%s\t%s\t%s\t%s\t%s", db->name, dc->role, dc->term,
              dc->status, members);
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
show_status(struct controller_options *o)
{
    struct table *t = (o->json ? NULL
                       : table_create("database\trole\tterm\tstatus\t"
                                      "members"));
    struct json *array = json_array_create_empty();
    struct json *top = json_object_create();
    char *error = NULL;

    for (size_t i = 0; !error && i < ARRAY_SIZE(databases); i++) {
        struct database_cluster dc;

        error = database_cluster_get(databases[i], o->rundir, &dc);
        if (!error) {
            if (t) {
                add_row(t, databases[i], &dc);
            }
            json_array_add(array, cluster_to_json(databases[i], &dc));
            error = check(databases[i], &dc);
        }
        database_cluster_uninit(&dc);
    }
    json_object_put(top, "databases", array);
    if (t) {
        table_finish(t);
        json_destroy(top);
    } else {
        print_and_destroy(top);
    }
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
      .shown = "$STAGECOACH_RUNDIR or /run/stagecoach/controller",
      .help = "directory of sockets" },
    { "dbdir", OPTION_CUSTOM, AT(dbdir), .value = "DIR", .parse = set_path,
      .deflt = "/var/lib/stagecoach", .help = "directory of the databases" },
    { "history-size", OPTION_INTEGER, AT(history_mib), 1, 1 << 20, "MIB",
      .deflt = "256", .help = "limit of the history in DIR, in MiB" },
    { "policy", OPTION_CUSTOM, AT(policy), .value = "FILE", .parse = set_path,
      .help = "policy of the controller" },
    { "address", OPTION_CUSTOM, AT(address), .value = "ADDRESS",
      .parse = set_address,
      .help = "address of this machine for agents and other members" },
    { "tls", OPTION_CUSTOM, AT(tls), .value = "DIR", .parse = set_path,
      .deflt = TLS_DIRECTORY, .help = "directory of certificates" },
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

    o->rundir = command_controller_rundir();
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

/* Starts 'name' in the background, with files RUNDIR/FILE.pid and .log, unless
 * it runs. */
static char *
start_daemon(const struct controller_options *o, const char *name,
             const char *file)
{
    struct svec argv;
    char *error;
    int errnum, status;
    mode_t mask;
    pid_t pid;

    if (daemon_find(o->rundir, file)) {
        return NULL;
    }
    error = daemon_argv(o, name, &argv);
    if (error) {
        svec_destroy(&argv);
        return error;
    }
    svec_add_nocopy(&argv, xasprintf("--pidfile=%s/%s.pid", o->rundir, file));
    svec_add_nocopy(&argv, xasprintf("--log-file=%s/%s.log", o->rundir, file));
    svec_add(&argv, "--detach");
    svec_terminate(&argv);

    /* Only its user may access its sockets and logs. */
    mask = umask(077);
    errnum = posix_spawnp(&pid, argv.names[0], NULL, NULL, argv.names,
                          environ);
    umask(mask);
    if (errnum) {
        error = xasprintf("%s: cannot be started (%s)", argv.names[0],
                          ovs_strerror(errnum));
    } else if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)
               || WEXITSTATUS(status)) {
        error = xasprintf("%s: did not start, %s/%s.log has the reason", file,
                          o->rundir, file);
    }
    svec_destroy(&argv);
    return error;
}

static char *
start_database(const struct controller_options *o, const struct database *db)
{
    char *file = xasprintf("%s-db", db->name);
    char *error = start_daemon(o, db->name, file);

    free(file);
    return error ? error : await_database(o, db);
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
    error = error ? error : database_wait(&database_hosts, remote, START_MS);
    free(remote);
    return error;
}

/* Returns true if a controller with this status is active or standby. */
static bool
leads_or_waits(const char *reply)
{
    struct json *status = json_from_string(reply);
    const char *state = member_string(status, "state");
    bool ready = !strcmp(state, "active") || !strcmp(state, "standby");

    json_destroy(status);
    return ready;
}

/* Waits until the controller is active or standby. */
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
        ready = !error && leads_or_waits(reply);
        free(reply);
        if (!ready) {
            xnanosleep(20 * 1000 * 1000);
        }
    }
    free(socket);
    return (ready || error ? error
            : xasprintf("controller: not ready after %d ms, %s/"
                        "controller.log has the reason", START_MS,
                        o->rundir));
}

/* Checks the databases once and restarts those that hang or have given up.
 * Returns false when none runs. */
static bool
guard_databases(const struct controller_options *o,
                struct database_guard *guards[])
{
    bool any = false;

    for (size_t i = 0; i < ARRAY_SIZE(databases); i++) {
        char *name = xasprintf("%s-db", databases[i]->name);
        pid_t pid = daemon_find(o->rundir, name);

        any |= pid > 0;
        if (pid && !database_guard_look(guards[i], pid)
            && daemon_find(o->rundir, name) == pid && !kill(pid, SIGKILL)) {
            char *error;

            while (daemon_find(o->rundir, name) == pid) {
                xnanosleep(10 * 1000 * 1000);
            }
            error = start_daemon(o, databases[i]->name, name);
            fprintf(stderr, "%s: %s\n", name, error ? error : "restarted");
            free(error);
        }
        free(name);
    }
    return any;
}

/* Starts the process that guards the databases, unless it runs. */
static void
start_guard(const struct controller_options *o)
{
    struct database_guard *guards[ARRAY_SIZE(databases)];
    char *log = xasprintf("%s/guard.log", o->rundir);
    int fd;

    if (daemon_find(o->rundir, "guard") || fork()) {
        free(log);
        return;
    }
    setsid();
    fd = open(log, O_CREAT | O_APPEND | O_WRONLY, 0600);
    for (int i = 0; i <= STDERR_FILENO && fd >= 0; i++) {
        dup2(fd, i);
    }
    set_pidfile(xasprintf("%s/guard.pid", o->rundir));
    daemonize();
    for (size_t i = 0; i < ARRAY_SIZE(databases); i++) {
        guards[i] = database_guard_create(databases[i], o->rundir,
                                          database_file(databases[i], o));
    }
    while (guard_databases(o, guards)) {
        poll_timer_wait(GUARD_MS);
        poll_block();
    }
    exit(EXIT_SUCCESS);
}

static char *
start(struct controller_options *o)
{
    char *error = init_databases(o);

    for (size_t i = 0; !error && i < ARRAY_SIZE(databases); i++) {
        error = start_database(o, databases[i]);
    }
    error = error ? error : start_relay(o);
    error = error ? error : start_daemon(o, "controller", "controller");
    if (!error) {
        start_guard(o);
    }
    return error ? error : await_controller(o);
}

static char *
stop(struct controller_options *o)
{
    static const char *const names[] = { "guard", "controller", "relay",
                                         "hosts-db", "intent-db" };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char *error = daemon_stop(o->rundir, names[i]);

        if (error) {
            return error;
        }
    }
    return NULL;
}

/* Creates the databases as members of the clusters of machine 'o->name'. */
static char *
join(struct controller_options *o)
{
    char *peer = bracket(o->name);
    char *error = (o->address ? make_directories(o)
                   : xstrdup("--address: the address of this machine is "
                             "required"));

    for (size_t i = 0; !error && i < ARRAY_SIZE(databases); i++) {
        const struct database *db = databases[i];
        char *file = database_file(db, o);

        error = database_join(db, file, o->address, peer);
        free(file);
    }
    free(peer);
    return error;
}

static int
run_controller(int argc, char *argv[])
{
    static const struct verb verbs[] = {
        { "init", init_databases, NULL, false },
        { "join", join, "PEER", false },
        { "start", start, NULL, false },
        { "stop", stop, NULL, false },
        { "exec", exec_daemon, "NAME", true },
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

        status = (error ? command_fail("stagecoach controller", error)
                  : EXIT_OK);
    }
    options_uninit(&o);
    return status;
}

static void
print_raised(const struct json *json)
{
    const struct json *beyond = member_array(json, "beyond");

    printf("the next generation is above %.0f\n",
           member_number(json, "above"));
    for (size_t i = 0; i < beyond->array.n; i++) {
        printf("%s claims one that no clock explains: restart its agent or "
               "revoke it\n",
               json_string(beyond->array.elems[i]));
    }
}

static int
raise_generation(int argc, char *argv[])
{
    static const struct operation raise = {
        "controller raise-generation",
        "controller/raise-generation",
        NULL,
        print_raised,
    };

    return controller_operate(argc, argv, &raise);
}

int
cmd_controller(int argc, char *argv[])
{
    static const struct command commands[] = {
        { "init", "[--address ADDRESS] [--dbdir DIR]", "Create the databases.",
          run_controller },
        { "join", "PEER --address ADDRESS [--dbdir DIR]",
          "Create the databases as members of the clusters of machine PEER.",
          run_controller },
        { "start",
          "[--address ADDRESS [--tls DIR]] [--policy FILE] "
          "[--rundir DIR] [--dbdir DIR] [--history-size MIB]",
          "Start the databases and the controller.", run_controller },
        { "stop", "[--rundir DIR]", "Stop the controller and the databases.",
          run_controller },
        { "exec", "NAME [OPTIONS as of start] [-- ARGUMENT...]",
          "Run one program: intent, hosts, relay or controller.",
          run_controller },
        { "status", "[--rundir DIR] [--format table|json]",
          "Show the database clusters from the view of this machine.",
          run_controller },
        { "raise-generation", "[--reason TEXT] [--format table|json]",
          "Go above the generations that hosts and switches have seen.",
          raise_generation },
        { NULL, NULL, NULL, NULL },
    };

    return command_group(commands, "stagecoach controller", argc, argv);
}
