/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TAIL_ENTER_H
#define TAIL_ENTER_H 1

/* Takes the place and the rights of a job.
 *
 * stagecoach-tail begins with the agent's capabilities and must read a
 * tenant's files as the tenant would.  It enters the mount namespace of a
 * process of the job, so that it has the files of a container or of a private
 * /tmp, and those of /home and /tmp that the agent's unit hides.  Then it
 * gives up all rights but those of the job's user, for good.
 *
 * The process is given as a pidfd, which never refers to another process.  The
 * agent opened it before it read the user, the groups and the job of the
 * process, found the process in the job again afterwards, and checked last
 * that it still lived: all of that belongs to one process.  It refuses a
 * process whose rights were raised by its program (AT_SECURE): a tenant who
 * runs a set-user-ID program chooses its environment, but is not its user.
 *
 * The process can change its mount namespace later, to one that the tenant has
 * made.  That gains nothing.  Between entering the namespace and the change of
 * user, no path is used; afterwards the tenant's user opens the tenant's
 * files.  No descriptor of a directory leads back: the agent passes none, and
 * entering a namespace moves root and working directory.  The program and its
 * libraries are loaded before, from the agent's namespace, and nothing is
 * executed later.
 *
 * Before the change of user the process is limited: address space, CPU time,
 * open files, no file of its own, no new process, no core.  After the change
 * it has no capabilities (also as user 0), cannot gain any
 * (PR_SET_NO_NEW_PRIVS), and nobody can trace it (not dumpable), although the
 * tenant can kill it.
 *
 * Single thread: setns() requires that for mount namespaces. */

struct tail_start;

/* Limits of a tail. */
#define TAIL_ADDRESS_SPACE (64 << 20)   /* Bytes. */
#define TAIL_CPU_S 60                   /* The agent starts the next one. */
#define TAIL_OPEN_FILES 64

/* Returns NULL, or what has failed; then this process must exit.  The result
 * is static. */
const char *tail_enter(const struct tail_start *);

#endif /* agent/tail/enter.h */
