/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLI_CONTROLLER_DAEMONS_H
#define CLI_CONTROLLER_DAEMONS_H 1

/* Programs of a controller machine, and their arguments.
 *
 *
 * Motivation
 * ==========
 *
 * "stagecoach controller start" starts all programs, and each systemd unit one
 * of them.  The arguments are composed here for both.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The caller frees messages and arguments.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct database;
struct svec;

#define CONTROLLER_START_MS 10000
#define CONTROLLER_N_DATABASES 2

struct controller_options {
    char *rundir, *dbdir, *policy, *tls;        /* Absolute. */
    char *address;              /* Address of this machine for other members
                                 * and agents; NULL: only unix sockets. */
    const char *name;           /* First positional argument, or NULL. */
    char **extra;               /* Arguments after "--". */
    bool json;
};

extern const struct database *const
    controller_databases[CONTROLLER_N_DATABASES];

char *controller_database_file(const struct database *,
                               const struct controller_options *);
char *controller_make_directories(const struct controller_options *);
char *controller_init_databases(const struct controller_options *);

/* Waits until the local server of 'db' replies, and upgrades its schema. */
char *controller_await_database(const struct controller_options *,
                                const struct database *db);

/* Stores the command line of program 'name' in '*argv': "intent", "hosts",
 * "relay" or "controller".  The databases must run before "controller". */
char *controller_daemon_argv(const struct controller_options *,
                             const char *name, struct svec *argv);

/* Executes the program 'o->name'.  Returns only with a message. */
char *controller_exec(struct controller_options *o);

/* Daemons with files RUNDIR/NAME.pid and RUNDIR/NAME.log.
 * ------------------------------------------------------- */

/* Runs 'args' in the background, with files RUNDIR/NAME.pid and .log. */
char *daemon_start(const char *rundir, const char *name, char *const args[]);

/* Returns the process of daemon 'name', or 0 if it does not run. */
pid_t daemon_find(const char *rundir, const char *name);

/* Stops daemon 'name' and waits until it has ended. */
char *daemon_stop(const char *rundir, const char *name);

#endif /* cli/operator/controller-daemons.h */
