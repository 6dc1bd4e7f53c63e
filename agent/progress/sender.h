/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SENDER_H
#define SENDER_H 1

/* Whose process sent a datagram.
 *
 *
 * Motivation
 * ==========
 *
 * Who is further along gets another place in the network, so nobody may say it
 * of a job but its own processes, those of its cojob's other jobs, such as the
 * driver of a search, and root.  The kernel tells the process that sent a
 * datagram; its cgroup, or a claim of it, says whose it is.  A sender that has
 * ended before its datagram was read cannot be told from another's and counts
 * as one.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state.  Main thread only, as the registry is. */

#include <stdbool.h>
#include <sys/types.h>

struct job;
struct registry;
struct ucred;

/* Returns the job that process 'pid' works for by its cgroup, or by a claim of
 * it or of one that started it; NULL if there is none.  'mount' is where the
 * cgroup v2 file system is. */
struct job *sender_job(const struct registry *, const char *mount, pid_t pid);

/* Whether 'sender' may say how far 'job' is. */
bool sender_may_report(const struct registry *, const char *mount,
                     const struct ucred *sender, const struct job *);

/* Stores the path of cgroup v2, such as "/stagecoach/asha/t0", that 'text',
 * as in /proc/PID/cgroup, tells.  Returns false if there is none. */
bool sender_cgroup_path(const char *text, char *path, size_t size);

#endif /* agent/progress/sender.h */
