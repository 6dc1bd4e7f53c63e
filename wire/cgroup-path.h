/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CGROUP_PATH_H
#define CGROUP_PATH_H 1

/* Path of a job's cgroup.
 *
 * "stagecoach run" creates the cgroup of a job and the agent finds it there
 * without further communication:
 *
 *    MOUNT/ROOT/COJOB/JOB
 *
 * MOUNT is the mount point of cgroup v2, which differs between a pure and a
 * hybrid host; ROOT is $STAGECOACH_CGROUP.
 *
 * Plain C without any library.  The caller frees results.  Thread-safe. */

#include <stdbool.h>

/* Returns true if 'job' is "COJOB/JOB", both valid names. */
bool cgroup_job_is_valid(const char *job);

/* Returns true if 'root' is a valid ROOT: relative, without components "." and
 * "..". */
bool cgroup_root_is_valid(const char *root);

/* Returns the mount point of cgroup v2 in 'mounts', a file like /proc/mounts,
 * or NULL. */
char *cgroup_mount_from(const char *mounts);

#endif /* wire/cgroup-path.h */
