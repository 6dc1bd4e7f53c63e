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

/* Returns true if 'name' is a valid name of a cojob, a job or a host: 1 to 31
 * letters, digits, '.', '_' and '-', a letter or digit first. */
bool cgroup_name_is_valid(const char *name);

/* Returns true if 'job' is "COJOB/JOB", both valid names. */
bool cgroup_job_is_valid(const char *job);

/* The rule of names for messages. */
#define CGROUP_NAME_RULE "1 to 31 letters, digits, '.', '_' and '-' after a " \
    "letter or digit are allowed"

/* Converts 'text' to a valid name: other characters become "-", a first one
 * that is no letter or digit "x"; a name of more than 31 characters is cut to
 * 22 characters, "-", and 8 digits of a hash, the same on each host.  Empty if
 * 'text' is empty. */
void cgroup_name_fit(const char *text, char name[32]);

/* Returns true if 'root' is a valid ROOT: relative, without components "." and
 * "..". */
bool cgroup_root_is_valid(const char *root);

/* Returns the mount point of cgroup v2 in 'mounts', a file like /proc/mounts,
 * or NULL. */
char *cgroup_mount_from(const char *mounts);

#endif /* wire/cgroup-path.h */
