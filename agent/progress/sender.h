/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SENDER_H
#define SENDER_H 1

/* Authorization of the senders of progress datagrams.
 *
 *
 * Motivation
 * ==========
 *
 * Progress changes the rank of a job, so it is accepted only from processes of
 * the job, of other jobs of its cojob, such as the driver of a search, and
 * from root.  The kernel passes the process that sent a datagram; its cgroup,
 * or a claim on it, identifies its job.  A sender that has exited before its
 * datagram is read is not accepted.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state.  Main thread only, as the registry. */

#include <stdbool.h>
#include <sys/types.h>

struct job;
struct registry;
struct ucred;

/* Returns true if 'sender' may report the progress of the job.  'mount' is the
 * mount of cgroup v2, or NULL. */
bool sender_may_report(const struct registry *, const char *mount,
                     const struct ucred *sender, const struct job *);

/* Stores the path of the cgroup v2, such as "/stagecoach/asha/t0", in 'text',
 * the content of /proc/PID/cgroup.  Returns false if there is none. */
bool sender_cgroup_path(const char *text, char *path, size_t size);

#endif /* agent/progress/sender.h */
