/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DATABASE_H
#define DATABASE_H 1

/* Starts and upgrades the servers of the two databases.
 *
 * "intent" (for controllers and operators) and "hosts" (for agents) are
 * served by separate processes, because OVSDB's RBAC covers neither locks nor
 * reads, and an agent must never reach the controller's lock.  Each is a RAFT
 * cluster of one or more members.  A cluster of one member, unlike a
 * standalone database, is durable, and if it was created with an address it
 * grows by "stagecoach controller join" without a migration.  The command
 * line starts the servers as daemons, the lab starts them as its children.
 *
 * On a single machine the servers listen on Unix sockets of the same user
 * only.  With an address they also accept TLS connections with a certificate
 * of the controllers' CA.  Agents reach neither server: they connect to a
 * relay of the hosts database, in which each agent can write only its own row,
 * and which has locks of its own.  Certificates come from the authorities
 * of pki.h.
 *
 *    error = database_init(&database_intent, "/var/lib/x/intent.db", NULL);
 *    error = database_prepare(&database_intent, &site);
 *    database_argv(&database_intent, "/var/lib/x/intent.db", &site, &argv);
 *    ...fork, execvp(argv[0], argv)...
 *    remote = database_remote(&database_intent, rundir);
 *    error = database_wait(&database_intent, remote, 5000);
 *    error = database_upgrade(&database_intent, remote, 5000);
 *
 * No state.  Functions that return "char *" errors return NULL for success
 * and otherwise an error message that the caller frees. */

#include <stdbool.h>

struct json;
struct jsonrpc_msg;
struct svec;

struct database {
    const char *name;           /* "intent": prefix of files and sockets. */
    const char *schema;         /* "Stagecoach_Intent". */
    int port;                   /* TCP port for TLS clients. */
    int raft_port;              /* TCP port for the other members. */
};

/* Location of the servers of one machine. */
struct database_site {
    const char *rundir;         /* Directory of the Unix sockets. */
    const char *address;        /* IP address, or NULL for sockets only. */
    const char *tls;            /* Directory made by "stagecoach pki issue
                                 * controller"; required with an address. */
};

extern const struct database database_intent;
extern const struct database database_hosts;

/* Creates 'dbfile' as the first member of a cluster, unless it exists.  The
 * address is permanent: without one the cluster cannot grow. */
char *database_init(const struct database *, const char *dbfile,
                    const char *address);

/* Creates 'dbfile' as a member with 'address' of the cluster of 'peer', the
 * address of another member. */
char *database_join(const struct database *, const char *dbfile,
                    const char *address, const char *peer);

/* Writes the file, in the site's 'rundir', with the TLS port of the server
 * (listener_file_write()); must precede each start of a server with an
 * address. */
char *database_prepare(const struct database *, const struct database_site *);

/* Add the command lines of the server of 'dbfile' and of the relay of the
 * hosts database to 'argv', and terminate it. */
void database_argv(const struct database *, const char *dbfile,
                   const struct database_site *, struct svec *argv);
void database_relay_argv(const struct database_site *, struct svec *argv);

/* Parameters of a request "transact" for whether a server's database knows its
 * leader, and the reply. */
struct json *database_state_query(const struct database *);
bool database_state_is_connected(const struct jsonrpc_msg *reply);

char *database_wait(const struct database *, const char *remote,
                    int timeout_ms);

/* Converts the database at 'remote' to this program's schema if it has an
 * older one; rows are kept.  A newer schema is an error. */
char *database_upgrade(const struct database *, const char *remote,
                       int timeout_ms);

/* Return "unix:RUNDIR/NAME.sock" and "RUNDIR/NAME-db.ctl", which the caller
 * frees. */
char *database_remote(const struct database *, const char *rundir);
char *database_ctl(const struct database *, const char *rundir);

/* Version "X.Y.Z" of a schema. */
struct database_version {
    int x, y, z;
};

bool database_version_parse(const struct json *schema,
                            struct database_version *);
int database_version_compare(const struct database_version *,
                             const struct database_version *);

/* Database with the TLS port of a database server.
 *
 * If the machine of the active controller is cut off, and the leader of the
 * intent database is on another one, no packet ends the controller's
 * connection.  The server gives the lock of the leadership to another
 * controller only once it has given that connection up.  It sends a probe to
 * a client that has been silent for an interval, and disconnects it after as
 * much time again.  The interval is 5 s for a port on the command line, and no
 * option changes it; if the port is a row of a database, a column of the row
 * is the interval.  The rows of the server's own database are on all members,
 * but a port has the address of one machine.  So each server gets a second
 * database, with one row.
 *
 *    error = listener_file_write("/run/x/intent-port.db",
 *                                "pssl:6641:192.0.2.1");
 *    ...execute "ovsdb-server" with LISTENER_REMOTE and the file...
 *
 * The file is written before each start of the server.  No state. */

/* Longest silence of a client.  Controllers send a probe after
 * ANSWERS_PROBE_MS (answers.h), so one that stops for less than the rest,
 * 1.75 s, keeps the leadership.  Agents come to the next controller 3 to 4 s
 * after the last lease: until then it should lead. */
#define LISTENER_SILENT_MS 3000

#define LISTENER_REMOTE "--remote=db:Stagecoach_Port,Global,connections"

/* Writes a database with the port 'target' to 'file', in place of an old one.
 * Returns NULL, or a message that the caller frees. */
char *listener_file_write(const char *file, const char *target);

#endif /* controller/ovsdb/database.h */
