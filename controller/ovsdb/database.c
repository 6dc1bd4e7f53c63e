/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/ovsdb/database.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/directory.h"
#include "controller/ovsdb/rpc-call.h"
#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "process.h"
#include "sha1.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-get.h"

#define ROW "0b2d7b1c-4b0e-4f0c-9a1e-5c8d3f6a7e01"
#define GLOBAL_ROW "0b2d7b1c-4b0e-4f0c-9a1e-5c8d3f6a7e02"

/* The server reads these columns of a table of ports, if they exist. */
static const char port_schema[] =
    "{\"name\": \"Stagecoach_Port\", \"version\": \"1.0.0\", \"tables\": {"
    "\"Global\": {\"columns\": {\"connections\": {\"type\": {"
    "\"key\": {\"type\": \"uuid\", \"refTable\": \"Connection\"},"
    " \"min\": 0, \"max\": \"unlimited\"}}}, \"isRoot\": true},"
    " \"Connection\": {\"columns\": {\"target\": {\"type\": \"string\"},"
    " \"inactivity_probe\": {\"type\": \"integer\"}}}}}\n";

/* Writes a record as ovsdb(7) describes it. */
static void
write_record(FILE *f, const char *json)
{
    uint8_t digest[SHA1_DIGEST_SIZE];

    sha1_bytes(json, strlen(json), digest);
    fprintf(f, "OVSDB JSON %" PRIuSIZE " " SHA1_FMT "\n%s", strlen(json),
            SHA1_ARGS(digest), json);
}

static void
write_records(FILE *f, const char *target)
{
    struct json *string = json_string_create(target);
    char *quoted = json_to_string(string, 0);
    char *rows = xasprintf(
        "{\"Connection\": {\"" ROW "\": {\"target\": %s,"
        " \"inactivity_probe\": %d}}, \"Global\": {\"" GLOBAL_ROW "\":"
        " {\"connections\": [\"uuid\", \"" ROW "\"]}}}\n",
        quoted, LISTENER_SILENT_MS / 2);

    write_record(f, port_schema);
    write_record(f, rows);
    free(rows);
    free(quoted);
    json_destroy(string);
}

char *
listener_file_write(const char *file, const char *target)
{
    FILE *f;
    int error = 0;

    /* A server that has the old file open keeps it. */
    f = unlink(file) && errno != ENOENT ? NULL : fopen(file, "wxe");
    if (!f) {
        error = errno;
    } else {
        write_records(f, target);
        error = ferror(f) ? EIO : 0;
        if (fclose(f)) {
            error = errno;
        }
    }
    return (error ? xasprintf("%s: cannot be written (%s)", file,
                              ovs_strerror(error))
                  : NULL);
}

const struct database database_intent = {
    "intent", "Stagecoach_Intent", 6641, 6643,
};
const struct database database_hosts = {
    "hosts", "Stagecoach_Hosts", 6642, 6644,
};

/* RAFT election timeout.  It can be short because the databases are small. */
#define ELECTION_MS 600

extern char **environ;

/* Returns the path of program 'name', which the caller frees.  Debian installs
 * ovsdb-server in /usr/sbin, which is not in every user's PATH. */
static char *
find_program(const char *name)
{
    static const char *const folders[] = { "/usr/sbin", "/usr/bin",
                                           "/usr/local/sbin", NULL };
    char *path = directory_find(folders, name, X_OK);

    return path ? path : xstrdup(name);
}

/* Stores the path of the schema file, in the build directory or where it is
 * installed, relative to this program, in '*pathp'. */
static char *
find_schema_file(const struct database *db, char **pathp)
{
    static const char *const folders[] = { "../wire", "../../wire", ".",
                                           "../share/stagecoach", NULL };
    char *name = xasprintf("%s.ovsschema", db->name);

    *pathp = directory_find(folders, name, R_OK);
    free(name);
    return (*pathp ? NULL
            : xasprintf("%s.ovsschema: not found beside the program or in "
                        "../share/stagecoach", db->name));
}

/* Runs 'argv' and waits for its end.  Returns NULL if its exit status is 0. */
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

/* Returns the RAFT address of the member with IP address 'address'. */
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
    error = find_schema_file(db, &schema);
    if (error) {
        return error;
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
        return xasprintf("%s: exists, a member that joins must not have a "
                         "database", dbfile);
    }
    char *argv[] = {
        find_program("ovsdb-tool"), xstrdup("join-cluster"), xstrdup(dbfile),
        xstrdup(db->schema), raft_address(db, address),
        raft_address(db, peer), NULL,
    };
    return run_and_free(argv);
}

/* Initializes 'argv' with the arguments that all servers have: sockets for
 * clients and for unixctl, and TLS.  'name' names the client socket and
 * 'trust' is the CA file in the site's TLS directory.  Frees 'ctl', the
 * unixctl socket. */
static void
add_server_argv(struct svec *argv, const struct database_site *site,
                const char *name, char *ctl, const char *trust)
{
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

static char *
listener_file(const struct database *db, const struct database_site *site)
{
    return xasprintf("%s/%s-port.db", site->rundir, db->name);
}

char *
database_prepare(const struct database *db, const struct database_site *site)
{
    char *file, *target, *error;

    if (!site->address) {
        return NULL;
    }
    file = listener_file(db, site);
    target = xasprintf("pssl:%d:%s", db->port, site->address);
    error = listener_file_write(file, target);
    free(target);
    free(file);
    return error;
}

void
database_argv(const struct database *db, const char *dbfile,
              const struct database_site *site, struct svec *argv)
{
    add_server_argv(argv, site, db->name, database_ctl(db, site->rundir),
                    "controllers-ca.pem");
    svec_add(argv, dbfile);
    if (site->address) {
        svec_add(argv, LISTENER_REMOTE);
        svec_add_nocopy(argv, listener_file(db, site));
    }
    svec_terminate(argv);
}

/* The relay's listeners and their RBAC roles come from rows of the
 * database. */
void
database_relay_argv(const struct database_site *site, struct svec *argv)
{
    const struct database *db = &database_hosts;

    add_server_argv(argv, site, "relay",
                    xasprintf("%s/relay.ctl", site->rundir), "agents-ca.pem");
    svec_add_nocopy(argv, xasprintf("--remote=db:%s,Global,connections",
                                    db->schema));
    svec_add_nocopy(argv, xasprintf("relay:%s:unix:%s/%s.sock", db->schema,
                                    site->rundir, db->name));
    svec_terminate(argv);
}

struct json *
database_state_query(const struct database *db)
{
    char *text = xasprintf(
        "[\"_Server\", {\"op\": \"select\", \"table\": \"Database\","
        " \"where\": [[\"name\", \"==\", \"%s\"]],"
        " \"columns\": [\"connected\"]}]", db->schema);
    struct json *params = json_from_string(text);

    free(text);
    return params;
}

bool
database_state_is_connected(const struct jsonrpc_msg *reply)
{
    const struct json *json = reply->result, *rows;

    if (reply->type != JSONRPC_REPLY || !json || json->type != JSON_ARRAY
        || json->array.n != 1) {
        return false;
    }
    rows = json_get(json->array.elems[0], "rows", JSON_ARRAY);
    return (rows && rows->array.n == 1
            && json_get(rows->array.elems[0], "connected", JSON_TRUE));
}

/* Waits until the server at 'remote' is a member of the cluster of 'db' that
 * knows its leader, and thus accepts transactions. */
char *
database_wait(const struct database *db, const char *remote, int timeout_ms)
{
    long long deadline = time_msec() + timeout_ms;
    int error = EAGAIN;

    while (time_msec() < deadline) {
        struct jsonrpc_msg *reply;

        error = rpc_call(
            remote,
            jsonrpc_create_request("transact", database_state_query(db), NULL),
            deadline - time_msec(), &reply);
        if (!error) {
            bool ready = database_state_is_connected(reply);

            jsonrpc_msg_destroy(reply);
            if (ready) {
                return NULL;
            }
            error = EAGAIN;
        }
        xnanosleep(20 * 1000 * 1000);
    }
    return xasprintf("%s: the %s database is not ready after %d ms (%s)",
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

/* Stores the member "version" of 'schema', "X.Y.Z", in '*v'.  Returns false if
 * it has no valid version. */
bool
database_version_parse(const struct json *schema, struct database_version *v)
{
    const struct json *json = json_get(schema, "version", JSON_STRING);

    return json && ovs_scan(json_string(json), "%d.%d.%d", &v->x, &v->y,
                            &v->z);
}

/* Returns a negative number if 'a' is older than 'b', 0 if they are equal, a
 * positive number if it is newer. */
int
database_version_compare(const struct database_version *a,
                         const struct database_version *b)
{
    return a->x != b->x ? a->x - b->x : a->y != b->y ? a->y - b->y
           : a->z - b->z;
}

/* Calls 'method' at 'remote', destroys 'params', and stores the result, which
 * the caller destroys, in '*resultp'. */
static char *
call_server(const char *remote, const char *method, struct json *params,
            int timeout_ms, struct json **resultp)
{
    struct jsonrpc_msg *reply;
    char *error = NULL;
    int errnum;

    *resultp = NULL;
    errnum = rpc_call(remote, jsonrpc_create_request(method, params, NULL),
                      timeout_ms, &reply);
    if (errnum) {
        return xasprintf("%s: no reply to \"%s\" (%s)", remote, method,
                         ovs_strerror(errnum));
    }
    if (reply->type == JSONRPC_REPLY) {
        *resultp = json_clone(reply->result);
    } else {
        char *text = jsonrpc_msg_to_string(reply);

        error = xasprintf("%s: \"%s\" is refused: %s", remote, method, text);
        free(text);
    }
    jsonrpc_msg_destroy(reply);
    return error;
}

/* Compares the version of the served schema, which is stored in '*served',
 * with 'ours'.  Stores the result of database_version_compare() in '*orderp';
 * a schema without a version is older. */
static char *
compare_served(const struct database *db, const char *remote, int timeout_ms,
               const struct database_version *ours,
               struct database_version *served, int *orderp)
{
    struct json *schema;
    char *error = call_server(remote, "get_schema",
                              json_array_create_1(
                                  json_string_create(db->schema)),
                              timeout_ms, &schema);

    if (!error) {
        *orderp = (database_version_parse(schema, served)
                   ? database_version_compare(served, ours) : -1);
    }
    json_destroy(schema);
    return error;
}

/* Converts the database to 'schema', of version 'ours'.  The server closes
 * connections that use the old schema, perhaps before it replies on ours, so
 * success depends on the schema that it serves afterwards. */
static char *
convert(const struct database *db, const char *remote, int timeout_ms,
        const struct json *schema, const struct database_version *ours)
{
    struct json *params = json_array_create_2(json_string_create(db->schema),
                                              json_clone(schema));
    struct database_version served;
    struct json *result;
    char *refused, *error;
    int order = -1;

    refused = call_server(remote, "convert", params, timeout_ms, &result);
    json_destroy(result);
    error = compare_served(db, remote, timeout_ms, ours, &served, &order);
    if (error || !order) {
        free(refused);
        return error;
    }
    return (refused ? refused
            : xasprintf("%s: the %s database was not converted", remote,
                        db->name));
}

/* Converts the served database to 'schema', of version 'ours', if its schema
 * is older. */
static char *
upgrade(const struct database *db, const char *remote, int timeout_ms,
        const struct json *schema, const struct database_version *ours)
{
    struct database_version served;
    int order = 0;
    char *error = compare_served(db, remote, timeout_ms, ours, &served,
                                 &order);

    if (error || !order) {
        return error;
    }
    return (order < 0
                ? convert(db, remote, timeout_ms, schema, ours)
                : xasprintf(
                    "%s: the %s database has schema %d.%d.%d; expected up to "
                    "%d.%d.%d, install a newer stagecoach",
                    remote, db->name, served.x, served.y, served.z, ours->x,
                    ours->y, ours->z));
}

char *
database_upgrade(const struct database *db, const char *remote, int timeout_ms)
{
    struct database_version ours;
    struct json *schema;
    char *file, *error = find_schema_file(db, &file);

    if (error) {
        return error;
    }
    schema = json_from_file(file);
    error = (database_version_parse(schema, &ours)
             ? upgrade(db, remote, timeout_ms, schema, &ours)
             : xasprintf("%s: not a schema with a version X.Y.Z", file));
    json_destroy(schema);
    free(file);
    return error;
}
