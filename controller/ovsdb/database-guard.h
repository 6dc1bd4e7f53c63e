/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DATABASE_GUARD_H
#define DATABASE_GUARD_H 1

/* A process beside a database server that has it restarted if it hangs or has
 * given up.
 *
 * ovsdb-server is not ours and does not notify the watchdog of its unit.  A
 * server that hangs would keep its place until an operator notices it.  A
 * server that could not write because the disk was full gives up its
 * membership and does not take it again when there is space.  Both are healed
 * by a restart.
 *
 * The guard asks the server once a second through its socket.  Its first
 * answer makes the unit ready; each answer notifies the watchdog.  If the
 * server has given up and the disk has space again, the guard has systemd
 * restart it.  "stagecoach controller start" runs one process that does the
 * same for servers without units.  Once a minute it checks the file and
 * replaces its sound copy (database-file.h); the server writes a damaged file
 * again from memory.
 *
 *    database_guard_start(&database_intent, "intent", rundir, dbfile);
 *    ...execvp() of the server...
 *
 * Does nothing without $NOTIFY_SOCKET, that is outside of a unit; there
 *
 *    guard = database_guard_create(&database_intent, rundir, dbfile);
 *    if (!database_guard_look(guard, server)) {
 *        ...restart the server...
 *    } */

#include <stdbool.h>
#include <sys/types.h>

struct database;
struct database_guard;

/* Bytes that must be free before a server that could not write is
 * restarted. */
#define DATABASE_GUARD_MIN_SPACE (16 << 20)

/* Without an answer for this time, a server hangs. */
#define DATABASE_GUARD_HANG_MS 5000

/* Starts the guard of the server 'name' with sockets in 'rundir', which this
 * process becomes; the guard ends with it.  'db' and 'dbfile' are null for the
 * relay, which has no file. */
void database_guard_start(const struct database *db, const char *name,
                          const char *rundir, const char *dbfile);

/* A guard lives as long as its process; the strings must as well. */
struct database_guard *database_guard_create(const struct database *,
                                             const char *rundir,
                                             const char *dbfile);

/* Looks once at the server, of that process; takes up to 3 s.  Returns false
 * if it must be restarted. */
bool database_guard_look(struct database_guard *, pid_t server);

#endif /* controller/ovsdb/database-guard.h */
