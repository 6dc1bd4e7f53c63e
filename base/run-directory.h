/* SPDX-License-Identifier: Apache-2.0 */

#ifndef RUN_DIRECTORY_H
#define RUN_DIRECTORY_H 1

/* Directories of sockets, and their owners.
 *
 * A user with write access to a directory can replace what others create in
 * it: through a link there, root creates or changes files in other places.  So
 * a directory belongs to one user:
 *
 *    /run/stagecoach              root: agent (progress.sock, agent.ctl) and
 *                                 shim (shim.sock), which both run as root
 *    /run/stagecoach/controller   the user of controller and databases, which
 *                                 the network can reach
 *
 * Any other directory ($STAGECOACH_RUNDIR, --rundir), such as the one of a
 * host of the lab, belongs to one user and has the sockets of all programs.
 *
 * Programs that run as root check theirs when they start and end with an error
 * if another user could change it.
 *
 * The caller frees results.  No state.  Thread-safe. */

#define RUN_DIRECTORY "/run/stagecoach"

/* Returns the directory of the controller's sockets; 'rundir' is the directory
 * of the host's programs. */
char *run_directory_of_controller(const char *rundir);

/* Checks that only this process's user and root can change what is in 'path':
 * it is a directory, and like those above it, it belongs to one of them and
 * others cannot write it, except with the sticky bit above it.  Returns NULL
 * or a malloc()'d message. */
char *run_directory_check(const char *path);

#endif /* base/run-directory.h */
