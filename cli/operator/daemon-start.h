/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLI_DAEMON_START_H
#define CLI_DAEMON_START_H 1

/* Daemons with a pid and a log file in a run directory. */

#include <sys/types.h>

/* Runs 'args' in the background, with files RUNDIR/NAME.pid and .log. */
char *daemon_start(const char *rundir, const char *name, char *const args[]);

/* Returns the process of daemon 'name', or 0 if it does not run. */
pid_t daemon_find(const char *rundir, const char *name);

/* Ends daemon 'name' and waits until it is gone. */
char *daemon_stop(const char *rundir, const char *name);

#endif /* cli/operator/daemon-start.h */
