/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "cli/operator/controller-daemons.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/directory.h"
#include "controller/ovsdb/database-cluster.h"
#include "controller/ovsdb/database.h"
#include "daemon.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

/* TCP port of telemetry with TLS. */
#define TELEMETRY_PORT 6650

const struct database *const controller_databases[] = {
    &database_intent, &database_hosts,
};

/* Returns 'name' in the first of 'places', relative to the folder of this
 * program, where it can be accessed, or NULL. */
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

static struct database_site
get_site(const struct controller_options *o)
{
    return (struct database_site) {
        .rundir = o->rundir, .address = o->address, .tls = o->tls,
    };
}

char *
controller_make_directories(const struct controller_options *o)
{
    char *error = directory_create(o->rundir);

    return error ? error : directory_create(o->dbdir);
}

char *
controller_database_file(const struct database *db,
                         const struct controller_options *o)
{
    return xasprintf("%s/%s.db", o->dbdir, db->name);
}

/* Creates 'db' if it does not exist. */
static char *
init_database(const struct controller_options *o, const struct database *db)
{
    char *file = controller_database_file(db, o);
    char *error = database_init(db, file, o->address);

    free(file);
    return error;
}

char *
controller_init_databases(const struct controller_options *o)
{
    char *error = controller_make_directories(o);

    for (size_t i = 0; !error && i < CONTROLLER_N_DATABASES; i++) {
        error = init_database(o, controller_databases[i]);
    }
    return error;
}

char *
controller_await_database(const struct controller_options *o,
                          const struct database *db)
{
    char *remote = database_remote(db, o->rundir);
    char *error = database_wait(db, remote, CONTROLLER_START_MS);

    if (!error) {
        error = database_upgrade(db, remote, CONTROLLER_START_MS);
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
}

/* Adds the other options of the controller. */
static void
add_files(const struct controller_options *o, const char *policy,
          struct svec *argv)
{
    svec_add_nocopy(argv, xasprintf("--policy=%s", policy));
    svec_add_nocopy(argv, xasprintf("--unixctl=%s/controller.ctl",
                                    o->rundir));
    svec_add_nocopy(argv, xasprintf("--rest=unix:%s/rest.sock", o->rundir));
    svec_add_nocopy(argv, xasprintf("--history=%s/history.db", o->dbdir));
    svec_add_nocopy(argv, xasprintf("--members=%s", o->rundir));
    svec_add(argv, "-vconsole:warn");
    svec_add(argv, "-vsyslog:off");
}

static char *
controller_argv(const struct controller_options *o, struct svec *argv)
{
    char *program = find_controller();
    char *policy = o->policy ? xstrdup(o->policy) : find_policy();
    char *error = NULL;

    if (!program) {
        error = xstrdup("stagecoach-controller: not found in the folder "
                        "of this program");
    } else if (!policy) {
        error = xstrdup("--policy: stage.json is not installed, a "
                        "policy file is required");
    } else {
        svec_add(argv, program);
        for (size_t i = 0; !error && i < CONTROLLER_N_DATABASES; i++) {
            error = add_database(o, controller_databases[i], argv);
        }
        add_telemetry(o, argv);
        add_files(o, policy, argv);
    }
    free(policy);
    free(program);
    return error;
}

static void
take_argv(char **from, struct svec *argv)
{
    for (size_t i = 0; from[i]; i++) {
        svec_add(argv, from[i]);
    }
    database_argv_free(from);
}

char *
controller_daemon_argv(const struct controller_options *o, const char *name,
                       struct svec *argv)
{
    struct database_site site = get_site(o);
    char *error = NULL;

    svec_init(argv);
    if (!strcmp(name, "controller")) {
        error = controller_argv(o, argv);
    } else if (!strcmp(name, "relay")) {
        if (!o->address) {
            return xstrdup("relay: --address is required, local agents "
                           "do not use a relay");
        }
        take_argv(database_relay_argv(&site), argv);
    } else {
        for (size_t i = 0; i < CONTROLLER_N_DATABASES; i++) {
            const struct database *db = controller_databases[i];

            if (!strcmp(name, db->name)) {
                char *file = controller_database_file(db, o);

                take_argv(database_argv(db, file, &site), argv);
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
    char *error = controller_make_directories(o);

    for (size_t i = 0; !error && i < CONTROLLER_N_DATABASES; i++) {
        const struct database *db = controller_databases[i];

        if (is_controller) {
            error = controller_await_database(o, db);
        } else if (!strcmp(o->name, db->name)) {
            error = init_database(o, db);
        }
    }
    return error;
}

char *
controller_exec(struct controller_options *o)
{
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    char *error = prepare(o);

    error = error ? error : controller_daemon_argv(o, o->name, &argv);
    if (!error) {
        for (size_t i = 0; o->extra[i]; i++) {
            svec_add(&argv, o->extra[i]);
        }
        svec_terminate(&argv);
        /* Only its user may access its sockets. */
        umask(077);
        execvp(argv.names[0], argv.names);
        error = xasprintf("%s: cannot be started (%s)", argv.names[0],
                          ovs_strerror(errno));
    }
    svec_destroy(&argv);
    return error;
}

#define STOP_MS 5000

extern char **environ;

char *
daemon_start(const char *rundir, const char *name, char *const args[])
{
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    char *error = NULL;
    int errnum, status;
    mode_t mask;
    pid_t pid;

    for (size_t i = 0; args[i]; i++) {
        svec_add(&argv, args[i]);
    }
    svec_add_nocopy(&argv, xasprintf("--pidfile=%s/%s.pid", rundir, name));
    svec_add_nocopy(&argv, xasprintf("--log-file=%s/%s.log", rundir, name));
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
        error = xasprintf("%s: did not start, %s/%s.log has the reason", name,
                          rundir, name);
    }
    svec_destroy(&argv);
    return error;
}

pid_t
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

char *
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
