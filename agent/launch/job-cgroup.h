/* SPDX-License-Identifier: Apache-2.0 */

#ifndef JOB_CGROUP_H
#define JOB_CGROUP_H 1

/* Moves processes into the cgroup of their job.
 *
 *
 * Motivation
 * ==========
 *
 * The traffic of a process in ROOT/COJOB/JOB of the cgroup v2 tree, and of its
 * descendants, belongs to that job without further registration (see
 * agent/identify/cgroup.h).  "stagecoach run" moves itself there; the plug-in
 * of a cluster manager moves other processes before they execute their
 * program.
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

/* Creates 'dir', whose first 'skip' bytes exist, and moves process 'pid', 0
 * for the caller's, into it.  Returns 0 or a positive errno value. */
int job_cgroup_enter(char *dir, size_t skip, pid_t pid);

#endif /* agent/launch/job-cgroup.h */
