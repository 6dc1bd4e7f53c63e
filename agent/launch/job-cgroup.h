/* SPDX-License-Identifier: Apache-2.0 */

#ifndef JOB_CGROUP_H
#define JOB_CGROUP_H 1

/* Puts processes into the cgroup of their job.
 *
 *
 * Motivation
 * ==========
 *
 * A process that is in ROOT/COJOB/JOB of the cgroup v2 tree, and everything
 * that it starts, is tagged with nothing more said (see
 * agent/identify/cgroup.h).  "stagecoach run" puts itself there; the plug-in
 * of a cluster manager puts others there, before they are what they will be.
 *
 *
 * Usage
 * =====
 *
 *    char dir[] = "/sys/fs/cgroup/stagecoach/asha/t0";
 *
 *    error = job_cgroup_enter(dir, strlen("/sys/fs/cgroup"), pid);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain C without any library.  Thread-safe. */

#include <stddef.h>
#include <sys/types.h>

/* Makes 'dir', whose first 'skip' bytes are there, and moves process 'pid', 0
 * for the caller's, into it. */
int job_cgroup_enter(char *dir, size_t skip, pid_t pid);

#endif /* agent/launch/job-cgroup.h */
