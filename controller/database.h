/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DATABASE_H
#define DATABASE_H 1

/* The two databases, each a one-member RAFT cluster of ovsdb-server.
 *
 *
 * Motivation
 * ==========
 *
 * "intent" (controllers and people) and "hosts" (agents) are two processes,
 * because OVSDB's RBAC covers neither locks nor reads.  A one-member cluster
 * rather than a standalone database is durable and can grow.  The command
 * line starts the servers as daemons and the lab as its children; both use
 * this.
 *
 *
 * Usage
 * =====
 *
 *    error = database_init(&database_intent, "/var/lib/x/intent.db");
 *    argv = database_argv(&database_intent, "/var/lib/x/intent.db", rundir);
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
};

extern const struct database database_intent;
extern const struct database database_hosts;

char *database_init(const struct database *, const char *dbfile);
char **database_argv(const struct database *, const char *dbfile,
                     const char *rundir);
void database_argv_free(char **argv);
char *database_wait(const struct database *, const char *remote,
                    int timeout_ms);

/* Gives what is served at 'remote' this program's schema if it has an older
 * one; its rows stay.  A newer one is an error. */
char *database_upgrade(const struct database *, const char *remote,
                       int timeout_ms);

/* Returns the schema's file, NULL if there is none; the caller frees. */
char *database_schema_file(const struct database *);

/* "unix:RUNDIR/NAME.sock" and "RUNDIR/NAME-db.ctl"; the caller frees. */
char *database_remote(const struct database *, const char *rundir);
char *database_ctl(const struct database *, const char *rundir);

#endif /* controller/database.h */
