/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_ENVIRON_H
#define LOG_ENVIRON_H 1

/* The log that a job's own environment names.
 *
 *
 * Motivation
 * ==========
 *
 * "stagecoach run --log" leaves what it was told in the environment of its
 * command, as LOG_ENVIRON.  So the agent needs no memory of it, and one that
 * starts late or again finds it where it finds the job.
 *
 * What a job says of itself must not make the agent read what the job could
 * not: the user who runs it must own the file.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state.  Thread-safe. */

#include <stdbool.h>
#include <sys/types.h>

#define LOG_ENVIRON "STAGECOACH_LOG"

/* Looks at the first few processes in cgroup 'dir'.  Returns the value, for
 * the caller to free, and stores the user of the process in '*uidp'; NULL if
 * none has it. */
char *log_environ_find(const char *dir, uid_t *uidp);

/* Returns the value of 'name' in an environment of 'size' bytes, NULL if it is
 * not in there. */
char *log_environ_get(const char *block, size_t size, const char *name);

#endif /* agent/progress/log-environ.h */
