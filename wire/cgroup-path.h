/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CGROUP_PATH_H
#define CGROUP_PATH_H 1

/* Where a job's cgroup is.
 *
 *
 * Motivation
 * ==========
 *
 * "stagecoach run" puts a job into a cgroup and the agent finds it there, so
 * both must agree on the place without talking to each other:
 *
 *    MOUNT/ROOT/COJOB/JOB
 *
 * MOUNT is wherever the cgroup v2 file system is, which differs between a pure
 * and a hybrid host; ROOT is $STAGECOACH_CGROUP.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain C without any library, since the command line tool has no libraries
 * either.  Results are the caller's to free().  Thread-safe. */

#include <stdbool.h>

/* True if 'name' can be that of a cojob, a job or a host: 1 to 31 letters,
 * digits, '.', '_' and '-', a letter or digit first. */
bool cgroup_name_is_valid(const char *name);

/* What messages say is allowed. */
#define CGROUP_NAME_RULE "1 to 31 letters, digits, '.', '_' and '-' after a " \
    "letter or digit are allowed"

/* True if 'root' can be a ROOT: relative, and no component is "." or "..". */
bool cgroup_root_is_valid(const char *root);

/* The directory that the cgroup v2 file system is mounted on, as 'mounts' (a
 * file like /proc/mounts) says.  NULL if there is none. */
char *cgroup_mount_from(const char *mounts);

#endif /* wire/cgroup-path.h */
