/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/database.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "controller/rpc-call.h"
#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "process.h"
#include "timeval.h"
#include "util.h"

const struct database database_intent = { "intent", "Stagecoach_Intent" };
const struct database database_hosts = { "hosts", "Stagecoach_Hosts" };

extern char **environ;

/* Debian has ovsdb-server in a directory that is not in everybody's PATH. */
static char *
find_program(const char *name)
{
    static const char *const dirs[] = { "/usr/sbin", "/usr/bin",
                                        "/usr/local/sbin" };

    for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
        char *path = xasprintf("%s/%s", dirs[i], name);

        if (!access(path, X_OK)) {
            return path;
        }
        free(path);
    }
    return xstrdup(name);
}

/* Returns the schema's file: beside this program in the build directory, or
 * where it is installed. */
char *
database_schema_file(const struct database *db)
{
    static const char *const places[] = {
        "../controller", "../../controller", ".", "../share/stagecoach",
    };
    char exe[4096];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    char *slash;

    if (n <= 0) {
        return NULL;
    }
    exe[n] = '\0';
    slash = strrchr(exe, '/');
    if (!slash) {
        return NULL;
    }
    *slash = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        char *path = xasprintf("%s/%s/%s.ovsschema", exe, places[i],
                               db->name);

        if (!access(path, R_OK)) {
            return path;
        }
        free(path);
    }
    return NULL;
}

/* Runs 'argv' to its end.  Returns NULL if its exit status is 0. */
static char *
run_program(char *argv[])
{
    int error, status;
    pid_t pid;

    error = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
    if (error) {
        return xasprintf("%s: cannot be started (%s), it is in the package "
                         "openvswitch-common", argv[0], ovs_strerror(error));
    }
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return xasprintf("%s: %s", argv[0], ovs_strerror(errno));
        }
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status)) {
        char *how = process_status_msg(status);
        char *message = xasprintf("%s: failed (%s)", argv[0], how);

        free(how);
        return message;
    }
    return NULL;
}

/* Creates 'dbfile' with the schema of 'db' as a one-member cluster, if there
 * is no such file. */
char *
database_init(const struct database *db, const char *dbfile)
{
    char *schema, *absolute, *error;

    if (!access(dbfile, F_OK)) {
        return NULL;
    }
    schema = database_schema_file(db);
    if (!schema) {
        return xasprintf("%s.ovsschema: not found beside the program or in "
                         "../share/stagecoach", db->name);
    }

    absolute = abs_file_name(NULL, dbfile);
    if (!absolute) {
        error = xasprintf("%s: no absolute name (%s)", dbfile,
                          ovs_strerror(errno));
    } else {
        char *argv[] = {
            find_program("ovsdb-tool"), xstrdup("create-cluster"),
            xstrdup(absolute), xstrdup(schema),
            xasprintf("unix:%s.raft", absolute), NULL,
        };

        error = run_program(argv);
        for (size_t i = 0; argv[i]; i++) {
            free(argv[i]);
        }
    }
    free(absolute);
    free(schema);
    return error;
}

/* Returns the arguments that serve 'dbfile' in the foreground; the caller
 * may add more and frees them with database_argv_free(). */
char **
database_argv(const struct database *db, const char *dbfile,
              const char *rundir)
{
    char **argv = xcalloc(8, sizeof *argv);
    char *ctl = database_ctl(db, rundir);
    size_t n = 0;

    argv[n++] = find_program("ovsdb-server");
    argv[n++] = xasprintf("--remote=punix:%s/%s.sock", rundir, db->name);
    argv[n++] = xasprintf("--unixctl=%s", ctl);
    argv[n++] = xstrdup("-vconsole:warn");
    argv[n++] = xstrdup("-vsyslog:off");
    argv[n++] = xstrdup("--no-chdir");
    argv[n++] = xstrdup(dbfile);
    free(ctl);
    return argv;
}

void
database_argv_free(char **argv)
{
    if (argv) {
        for (size_t i = 0; argv[i]; i++) {
            free(argv[i]);
        }
        free(argv);
    }
}

/* select connected, leader from _Server.Database where name == SCHEMA */
static struct jsonrpc_msg *
readiness_request(const struct database *db)
{
    char *text = xasprintf(
        "[\"_Server\", {\"op\": \"select\", \"table\": \"Database\","
        " \"where\": [[\"name\", \"==\", \"%s\"]],"
        " \"columns\": [\"connected\", \"leader\"]}]", db->schema);
    struct json *params = json_from_string(text);

    free(text);
    return jsonrpc_create_request("transact", params, NULL);
}

static bool
is_true(const struct json *object, const char *member)
{
    const struct json *json = shash_find_data(json_object(object), member);

    return json && json->type == JSON_TRUE;
}

static bool
reply_says_ready(const struct jsonrpc_msg *reply)
{
    const struct json *json = reply->result;

    if (reply->type != JSONRPC_REPLY || !json || json->type != JSON_ARRAY
        || json->array.n != 1 || json->array.elems[0]->type != JSON_OBJECT) {
        return false;
    }
    json = shash_find_data(json_object(json->array.elems[0]), "rows");
    return json && json->type == JSON_ARRAY && json->array.n == 1
           && json->array.elems[0]->type == JSON_OBJECT
           && is_true(json->array.elems[0], "connected")
           && is_true(json->array.elems[0], "leader");
}

/* Waits until the server at 'remote' is the leader of 'db's cluster and thus
 * takes transactions. */
char *
database_wait(const struct database *db, const char *remote, int timeout_ms)
{
    long long deadline = time_msec() + timeout_ms;
    int error = EAGAIN;

    while (time_msec() < deadline) {
        struct jsonrpc_msg *reply;

        error = rpc_call(remote, readiness_request(db),
                         deadline - time_msec(), &reply);
        if (!error) {
            bool ready = reply_says_ready(reply);

            jsonrpc_msg_destroy(reply);
            if (ready) {
                return NULL;
            }
            error = EAGAIN;
        }
        xnanosleep(20 * 1000 * 1000);
    }
    return xasprintf("%s: the %s database is not served after %d ms (%s)",
                     remote, db->name, timeout_ms, ovs_strerror(error));
}

char *
database_remote(const struct database *db, const char *rundir)
{
    return xasprintf("unix:%s/%s.sock", rundir, db->name);
}

char *
database_ctl(const struct database *db, const char *rundir)
{
    return xasprintf("%s/%s-db.ctl", rundir, db->name);
}
