/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/ovsdb/database.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "controller/ovsdb/rpc-call.h"
#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "process.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

const struct database database_intent = {
    "intent", "Stagecoach_Intent", 6641, 6643,
};
const struct database database_hosts = {
    "hosts", "Stagecoach_Hosts", 6642, 6644,
};

/* After so long without a word of the leader a member wants to be it.  The
 * databases are small: a leader that is silent for this long is gone. */
#define ELECTION_MS 600

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
        "../wire", "../../wire", ".", "../share/stagecoach",
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

/* Returns where other members reach the member with 'address'. */
static char *
raft_address(const struct database *db, const char *address)
{
    return xasprintf("ssl:%s:%d", address, db->raft_port);
}

static char *
run_and_free(char **argv)
{
    char *error = run_program(argv);

    for (size_t i = 0; argv[i]; i++) {
        free(argv[i]);
    }
    return error;
}

char *
database_init(const struct database *db, const char *dbfile,
              const char *address)
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
            find_program("ovsdb-tool"),
            xasprintf("--election-timer=%d", ELECTION_MS),
            xstrdup("create-cluster"),
            xstrdup(absolute), xstrdup(schema),
            address ? raft_address(db, address)
            : xasprintf("unix:%s.raft", absolute), NULL,
        };

        error = run_and_free(argv);
    }
    free(absolute);
    free(schema);
    return error;
}

char *
database_join(const struct database *db, const char *dbfile,
              const char *address, const char *peer)
{
    if (!access(dbfile, F_OK)) {
        return xasprintf("%s: is there, a member that joins begins without "
                         "a database", dbfile);
    }
    char *argv[] = {
        find_program("ovsdb-tool"), xstrdup("join-cluster"), xstrdup(dbfile),
        xstrdup(db->schema), raft_address(db, address),
        raft_address(db, peer), NULL,
    };
    return run_and_free(argv);
}

/* Begins the arguments of a server with what all have: a control socket and a
 * socket for its user, both of 'name', news about trouble only, and TLS for
 * those whom the file 'trust' of the site's directory has. */
static void
begin_server(struct svec *argv, const struct database_site *site,
             const char *name, char *ctl, const char *trust)
{
    svec_init(argv);
    svec_add_nocopy(argv, find_program("ovsdb-server"));
    svec_add_nocopy(argv, xasprintf("--remote=punix:%s/%s.sock",
                                    site->rundir, name));
    svec_add_nocopy(argv, xasprintf("--unixctl=%s", ctl));
    free(ctl);
    svec_add(argv, "-vconsole:warn");
    svec_add(argv, "-vsyslog:off");
    svec_add(argv, "--no-chdir");
    if (site->address) {
        svec_add_nocopy(argv, xasprintf("--private-key=%s/identity.pem",
                                        site->tls));
        svec_add_nocopy(argv, xasprintf("--certificate=%s/identity.pem",
                                        site->tls));
        svec_add_nocopy(argv, xasprintf("--ca-cert=%s/%s", site->tls, trust));
        svec_add(argv, "--ssl-protocols=TLSv1.2");
    }
}

char **
database_argv(const struct database *db, const char *dbfile,
              const struct database_site *site)
{
    struct svec argv;

    begin_server(&argv, site, db->name, database_ctl(db, site->rundir),
                 "controllers-ca.pem");
    if (site->address) {
        svec_add_nocopy(&argv, xasprintf("--remote=pssl:%d:%s", db->port,
                                         site->address));
    }
    svec_add(&argv, dbfile);
    svec_terminate(&argv);
    return argv.names;
}

/* The rows of the database say where the relay listens, and to what role. */
char **
database_relay_argv(const struct database_site *site)
{
    const struct database *db = &database_hosts;
    struct svec argv;

    begin_server(&argv, site, "relay", xasprintf("%s/relay.ctl",
                                                 site->rundir),
                 "agents-ca.pem");
    svec_add_nocopy(&argv, xasprintf("--remote=db:%s,Global,connections",
                                     db->schema));
    svec_add_nocopy(&argv, xasprintf("relay:%s:unix:%s/%s.sock", db->schema,
                                     site->rundir, db->name));
    svec_terminate(&argv);
    return argv.names;
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

/* select connected from _Server.Database where name == SCHEMA */
static struct jsonrpc_msg *
readiness_request(const struct database *db)
{
    char *text = xasprintf(
        "[\"_Server\", {\"op\": \"select\", \"table\": \"Database\","
        " \"where\": [[\"name\", \"==\", \"%s\"]],"
        " \"columns\": [\"connected\"]}]", db->schema);
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
           && is_true(json->array.elems[0], "connected");
}

/* Waits until the server at 'remote' is a member of 'db's cluster that knows
 * its leader, and thus takes transactions. */
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
