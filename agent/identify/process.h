/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PROCESS_H
#define PROCESS_H 1

/* Data of a process from /proc.
 *
 * Processes may exit at any time and their ids are reused.  Each function
 * reads once and reports a missing process; a process is the same as before if
 * its start time is the same.
 *
 *    if (process_read(pid, &process) && process.born == born) {
 *        ...it is still the same...
 *    }
 *
 * No state.  Thread-safe. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
    pid_t pid;
    pid_t parent;
    uint64_t born;              /* Start time, clock ticks since boot. */
};

/* Read a file, which may be one of a process, into 'buffer' as a string that
 * is truncated to its size; one read has all of such a file.  Return the
 * number of bytes or a negative errno. */
ssize_t small_file_read(const char *path, char *buffer, size_t size);
ssize_t process_read_file(pid_t, const char *name, char *buffer, size_t size);

bool process_read(pid_t, struct process *);
char *process_environ(pid_t, size_t *sizep);
bool process_user(pid_t, uid_t *);
bool process_is_of_host(pid_t);

/* Stores the path of its cgroup of version 2, such as "/stagecoach/asha/t0";
 * the second function takes it from the content of /proc/PID/cgroup.  Return
 * false without one. */
bool process_cgroup(pid_t, char *path, size_t size);
bool process_parse_cgroup(const char *text, char *path, size_t size);

size_t processes_of_cgroup(const char *path, pid_t **pidsp);

#endif /* agent/identify/process.h */
