/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CGROUP_H
#define CGROUP_H 1

/* Tree of cgroups of the host's jobs.
 *
 *
 * Motivation
 * ==========
 *
 * A process that "stagecoach run" starts is in ROOT/COJOB/JOB of the cgroup v2
 * file system, with all its descendants.  The kernel stores the cgroup of each
 * socket and identifies it by the inode of its directory.  So the tree is the
 * host's record of its jobs, which survives the agent, and the key from a
 * socket to a job.  Jobs may create cgroups below their own; sockets there
 * belong to the job.
 *
 *
 * Usage
 * =====
 *
 *    cgroup_scan(root, see_cgroup, aux);
 *    cgroup_scan_below("/sys/fs/cgroup/kubepods.slice/a", see_cgroup, aux);
 *    if (!cgroup_is_populated(root, "asha/t0")) {
 *        cgroup_remove(root, "asha/t0");
 *    }
 *
 * 'root' is the absolute path of ROOT.  A scan reads a bounded number of
 * directories, never follows links, and ignores invalid names.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state.  Thread-safe. */

#include <stdbool.h>
#include <stdint.h>

/* 'job' is "COJOB/JOB" and 'id' the inode of its directory, or if 'below' that
 * of a directory below it. */
typedef void cgroup_see_func(const char *job, uint64_t id, bool below,
                             void *aux);

int cgroup_scan(const char *root, cgroup_see_func *, void *aux);
int cgroup_see_job(const char *root, const char *job, cgroup_see_func *,
                   void *aux);
int cgroup_scan_below(const char *path, cgroup_see_func *, void *aux);
bool cgroup_is_populated(const char *root, const char *job);
int cgroup_remove(const char *root, const char *job);

#endif /* agent/identify/cgroup.h */
