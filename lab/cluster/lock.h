/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_LOCK_H
#define LAB_LOCK_H 1

/* One lab of a name at a time.
 *
 * The lock is held by a process, so a lab that was killed holds none, but its
 * lock file tells the next one which run directory it had. */

#include <sys/types.h>

/* Takes the lock in 'file' and stores a file descriptor that holds it in
 * '*fdp'.  Returns NULL, or a message if a living lab holds it.  If a dead one
 * left the file, '*old_rundirp' is its run directory, else NULL. */
char *lock_take(const char *file, int *fdp, char **old_rundirp);

/* Writes who holds the lock, for lock_holder() and the next lock_take(). */
char *lock_write(int fd, const char *rundir);
void lock_release(const char *file, int fd);

/* Process id of the living lab that holds 'file', 0 if there is none. */
pid_t lock_holder(const char *file, char **rundirp);

#endif /* lab/cluster/lock.h */
