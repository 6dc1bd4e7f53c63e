/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DATABASE_H
#define DATABASE_H 1

/* The two databases, each a RAFT cluster of one or more ovsdb-servers.
 *
 *
 * Motivation
 * ==========
 *
 * "intent" (controllers and people) and "hosts" (agents) are two processes,
 * because OVSDB's RBAC covers neither locks nor reads.  A one-member cluster
 * rather than a standalone database is durable and can grow, if it was made
 * with an address.  The command line starts the servers as daemons and the lab
 * as its children; both use this.
 *
 * On one machine the servers listen on sockets of the same user only.  With an
 * address they also listen there, for those with a certificate of the
 * controllers' authority.  Agents get to neither: they reach a relay of the
 * hosts database, in which each may write no more than its own row, and whose
 * locks are nobody else's.
 *
 *
 * Usage
 * =====
 *
 *    error = database_init(&database_intent, "/var/lib/x/intent.db", NULL);
 *    argv = database_argv(&database_intent, "/var/lib/x/intent.db", &site);
 *    ...fork, execvp(argv[0], argv)...
 *    remote = database_remote(&database_intent, rundir);
 *    error = database_wait(&database_intent, remote, 5000);
 *    error = database_upgrade(&database_intent, remote, 5000);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state.  Functions that return "char *" errors return NULL for success
 * and otherwise a message that the caller frees. */

#include <stdbool.h>

struct database {
    const char *name;           /* "intent": of files and sockets. */
    const char *schema;         /* "Stagecoach_Intent". */
    int port;                   /* TCP, of clients with TLS. */
    int raft_port;              /* TCP, of the other members. */
};

/* Where the servers of one machine are. */
struct database_site {
    const char *rundir;         /* Of sockets. */
    const char *address;        /* Of this machine, NULL for sockets only. */
    const char *tls;            /* Directory that "stagecoach pki issue
                                 * controller" made; needed with an address. */
};

/* Where the relay listens for agents. */
#define DATABASE_RELAY_PORT 6640

extern const struct database database_intent;
extern const struct database database_hosts;

/* Creates 'dbfile' as the first member of a cluster, if it is not there.  A
 * member without 'address' is reached on this machine only, for ever. */
char *database_init(const struct database *, const char *dbfile,
                    const char *address);

/* Creates 'dbfile' as a further member, with 'address', of the cluster that
 * the member at 'peer' is of. */
char *database_join(const struct database *, const char *dbfile,
                    const char *address, const char *peer);

/* The arguments of the server of 'dbfile', and of the relay of the hosts
 * database beside it. */
char **database_argv(const struct database *, const char *dbfile,
                     const struct database_site *);
char **database_relay_argv(const struct database_site *);
void database_argv_free(char **argv);
char *database_wait(const struct database *, const char *remote,
                    int timeout_ms);

/* Gives what is served at 'remote' this program's schema if it has an older
 * one; its rows stay.  A newer one is an error. */
char *database_upgrade(const struct database *, const char *remote,
                       int timeout_ms);

/* Returns the schema's file, NULL if there is none; the caller frees. */
char *database_schema_file(const struct database *);

/* "unix:RUNDIR/NAME.sock" and "RUNDIR/NAME-db.ctl"; the caller frees.  The
 * relay has "relay.sock". */
char *database_remote(const struct database *, const char *rundir);
char *database_ctl(const struct database *, const char *rundir);

#endif /* controller/ovsdb/database.h */
