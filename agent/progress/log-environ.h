/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_ENVIRON_H
#define LOG_ENVIRON_H 1

/* Log specification in the environment of a job.
 *
 *
 * Motivation
 * ==========
 *
 * "stagecoach run --log" stores its argument in the environment of the
 * command, as LOG_ENVIRON.  So an agent that starts late or again finds it
 * with the job.
 *
 * A job must not make the agent read files that the job could not read itself:
 * the user of the job must own the file.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state.  Thread-safe. */

#include <stdbool.h>
#include <sys/types.h>

#define LOG_ENVIRON "STAGECOACH_LOG"

/* Reads the first few processes in cgroup 'dir'.  Returns the value, which the
 * caller frees, and stores the user of the process in '*uidp'; NULL if no
 * process has it. */
char *log_environ_find(const char *dir, uid_t *uidp);

/* Returns the value of 'name' in an environment of 'size' bytes, or NULL. */
char *log_environ_get(const char *block, size_t size, const char *name);

#endif /* agent/progress/log-environ.h */
