/* SPDX-License-Identifier: Apache-2.0 */

#ifndef RUN_DIRECTORY_H
#define RUN_DIRECTORY_H 1

/* Directories of sockets, and whose they are.
 *
 *
 * Motivation
 * ==========
 *
 * Who may write a directory can replace what others make in it: with a link
 * there, root creates or changes files of its own.  So a directory belongs to
 * one user:
 *
 *    /run/stagecoach              root: agent (progress.sock, agent.ctl) and
 *                                 shim (shim.sock), which both run as root
 *    /run/stagecoach/controller   the user of controller and databases, which
 *                                 the network can reach
 *
 * A directory that somebody chose ($STAGECOACH_RUNDIR, --rundir), as each host
 * of the lab has, is one user's and has the sockets of all.
 *
 * Programs that run as root check theirs when they start and end with an error
 * if another user could change it.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The caller frees results.  No state.  Thread-safe. */

#define RUN_DIRECTORY "/run/stagecoach"

/* Returns the directory of the controller's sockets if that of the host's is
 * 'rundir'. */
char *run_directory_of_controller(const char *rundir);

/* Checks that only this process's user and root can change what is in 'path':
 * it is a directory, and like those above it, it belongs to one of them and
 * others cannot write it, except with the sticky bit above it.  Returns NULL
 * or a malloc()'d message. */
char *run_directory_check(const char *path);

#endif /* base/run-directory.h */
