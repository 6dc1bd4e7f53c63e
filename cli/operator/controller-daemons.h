/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLI_CONTROLLER_DAEMONS_H
#define CLI_CONTROLLER_DAEMONS_H 1

/* The programs of a machine that keeps databases and a controller, and with
 * what arguments they run.
 *
 *
 * Motivation
 * ==========
 *
 * "stagecoach controller start" starts them all, systemd's units one each; both
 * mean the same programs.  So the units say no more than which one, and the
 * arguments are made here.
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
    char *address;              /* Of this machine, for the others and for
                                 * agents; NULL: sockets only. */
    const char *name;           /* A positional argument, or NULL. */
    char **extra;               /* What follows "--". */
    bool json;
};

extern const struct database *const
    controller_databases[CONTROLLER_N_DATABASES];

char *controller_database_file(const struct database *,
                               const struct controller_options *);
char *controller_make_directories(const struct controller_options *);
char *controller_init_databases(const struct controller_options *);

/* Waits until 'db' is served beside this program and has its schema. */
char *controller_await_database(const struct controller_options *,
                                const struct database *db);

/* Stores in '*argv' what the program 'name' is run with: "intent", "hosts",
 * "relay" or "controller".  For the last the databases must be served. */
char *controller_daemon_argv(const struct controller_options *,
                             const char *name, struct svec *argv);

/* Becomes the program 'o->name'.  Returns only with an error. */
char *controller_exec(struct controller_options *o);

/* Daemons with files RUNDIR/NAME.pid and RUNDIR/NAME.log.
 * ------------------------------------------------------- */

/* Runs 'args' in the background, with files RUNDIR/NAME.pid and .log. */
char *daemon_start(const char *rundir, const char *name, char *const args[]);

/* Returns the process of daemon 'name', or 0 if it does not run. */
pid_t daemon_find(const char *rundir, const char *name);

/* Ends daemon 'name' and waits until it is gone. */
char *daemon_stop(const char *rundir, const char *name);

#endif /* cli/operator/controller-daemons.h */
