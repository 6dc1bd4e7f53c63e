/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach controller: creates the databases, starts and stops them and the
 * controller. */

#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/controller-query.h"
#include "controller/database.h"
#include "controller/rpc-call.h"
#include "daemon.h"
#include "openvswitch/vlog.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

#define START_MS 10000
#define STOP_MS 5000

extern char **environ;

static const struct database *const databases[] = {
    &database_intent, &database_hosts,
};

struct controller_options {
    char *rundir, *dbdir, *policy;      /* Absolute. */
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

/* Returns an exit status, or -1 to go on. */
static int
parse(int argc, char *argv[], struct controller_options *o)
{
    static const struct option options[] = {
        {"rundir", required_argument, NULL, 'r'},
        {"dbdir", required_argument, NULL, 'd'},
        {"policy", required_argument, NULL, 'p'},
        {NULL, 0, NULL, 0},
    };
    int c;

    set_path(&o->rundir, cli_rundir());
    set_path(&o->dbdir, "/var/lib/stagecoach");
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
        default:
            return EXIT_USAGE;
        }
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

        error = database_init(databases[i], file);
        free(file);
    }
    return error;
}

/* Runs 'args' as a daemon with a pid and a log file RUNDIR/NAME.*. */
static char *
start_daemon(const struct controller_options *o, const char *name,
             char *const args[])
{
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    char *error = NULL;
    int errnum, status;
    pid_t pid;

    for (size_t i = 0; args[i]; i++) {
        svec_add(&argv, args[i]);
    }
    svec_add_nocopy(&argv, xasprintf("--pidfile=%s/%s.pid", o->rundir, name));
    svec_add_nocopy(&argv, xasprintf("--log-file=%s/%s.log", o->rundir,
                                     name));
    svec_add(&argv, "--detach");
    svec_terminate(&argv);

    errnum = posix_spawnp(&pid, argv.names[0], NULL, NULL, argv.names,
                          environ);
    if (errnum) {
        error = xasprintf("%s: cannot be started (%s)", argv.names[0],
                          ovs_strerror(errnum));
    } else if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)
               || WEXITSTATUS(status)) {
        error = xasprintf("%s: did not start, %s/%s.log says why", name,
                          o->rundir, name);
    }
    svec_destroy(&argv);
    return error;
}

/* Returns the process of daemon 'name', or 0 if it does not run. */
static pid_t
find_daemon(const struct controller_options *o, const char *name)
{
    char *pidfile = xasprintf("%s/%s.pid", o->rundir, name);
    pid_t pid = 0;

    if (!access(pidfile, F_OK)) {
        pid = MAX(read_pidfile(pidfile), 0);
    }
    free(pidfile);
    return pid;
}

static char *
start_database(const struct controller_options *o, const struct database *db)
{
    char *name = xasprintf("%s-db", db->name);
    char *error = NULL;

    if (!find_daemon(o, name)) {
        char *file = database_file(db, o);
        char **argv = database_argv(db, file, o->rundir);

        error = start_daemon(o, name, argv);
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

static char *
start_controller(const struct controller_options *o)
{
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    char *program, *error;

    if (find_daemon(o, "controller")) {
        return NULL;
    }
    program = find_controller();
    if (!program) {
        return xstrdup("stagecoach-controller: not found beside this "
                       "program");
    }
    svec_add_nocopy(&argv, program);
    svec_add_nocopy(&argv, xasprintf("--policy=%s", o->policy));
    svec_add_nocopy(&argv, xasprintf("--intent=unix:%s/intent.sock",
                                     o->rundir));
    svec_add_nocopy(&argv, xasprintf("--hosts=unix:%s/hosts.sock",
                                     o->rundir));
    svec_add_nocopy(&argv, xasprintf("--telemetry=unix:%s/telemetry.sock",
                                     o->rundir));
    svec_add_nocopy(&argv, xasprintf("--unixctl=%s/controller.ctl",
                                     o->rundir));
    svec_add_nocopy(&argv, xasprintf("--rest=unix:%s/rest.sock", o->rundir));
    svec_add_nocopy(&argv, xasprintf("--history=%s/history.db", o->dbdir));
    svec_add(&argv, "-vconsole:warn");
    svec_add(&argv, "-vsyslog:off");
    svec_terminate(&argv);
    error = start_daemon(o, "controller", argv.names);
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
    if (!error) {
        error = start_controller(o);
    }
    return error ? error : await_controller(o);
}

/* Ends daemon 'name' and waits until it is gone. */
static char *
stop_daemon(const struct controller_options *o, const char *name)
{
    long long deadline = time_msec() + STOP_MS;
    pid_t pid = find_daemon(o, name);

    if (!pid) {
        return NULL;
    }
    if (kill(pid, SIGTERM) && errno != ESRCH) {
        return xasprintf("%s: process %ld cannot be ended (%s)", name,
                         (long) pid, ovs_strerror(errno));
    }
    while (find_daemon(o, name) == pid) {
        if (time_msec() >= deadline) {
            return xasprintf("%s: process %ld has not ended after %d ms",
                             name, (long) pid, STOP_MS);
        }
        xnanosleep(10 * 1000 * 1000);
    }
    return NULL;
}

static char *
stop(struct controller_options *o)
{
    static const char *const names[] = { "controller", "hosts-db",
                                         "intent-db" };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char *error = stop_daemon(o, names[i]);

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

static int
run_controller(int argc, char *argv[],
               char *(*action)(struct controller_options *))
{
    struct controller_options o = { .rundir = NULL };
    int status;

    vlog_set_levels(NULL, VLF_CONSOLE, VLL_ERR);
    vlog_set_levels(NULL, VLF_SYSLOG, VLL_OFF);
    status = parse(argc, argv, &o);
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
    return run_controller(argc, argv, init);
}

static int
cmd_controller_start(int argc, char *argv[])
{
    return run_controller(argc, argv, start);
}

static int
cmd_controller_stop(int argc, char *argv[])
{
    return run_controller(argc, argv, stop);
}

int
cmd_controller(int argc, char *argv[])
{
    static const struct command commands[] = {
        { "init", "[--dbdir DIR]", "Create the databases.",
          cmd_controller_init },
        { "start", "[--policy FILE] [--rundir DIR] [--dbdir DIR]",
          "Start the databases and the controller.", cmd_controller_start },
        { "stop", "[--rundir DIR]", "Stop all three.", cmd_controller_stop },
        { NULL, NULL, NULL, NULL },
    };

    if (command_help(commands, "stagecoach controller", argc - 1, argv + 1)) {
        return EXIT_OK;
    }
    return command_dispatch(commands, "stagecoach controller", argc - 1,
                            argv + 1);
}
