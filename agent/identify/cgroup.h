/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CGROUP_H
#define CGROUP_H 1

/* Tree of cgroups of the host's jobs.
 *
 * A process that "stagecoach run" starts is in ROOT/COJOB/JOB of the cgroup v2
 * file system, with all its descendants.  The kernel stores the cgroup of each
 * socket and identifies it by the inode of its directory.  So the tree is the
 * host's record of its jobs, which survives the agent, and the key from a
 * socket to a job.  Jobs may create cgroups below their own; sockets there
 * belong to the job.
 *
 *    cgroup_scan(root, see_cgroup, aux);
 *    if (!cgroup_is_populated(root, "asha/t0")) {
 *        cgroup_remove(root, "asha/t0");
 *    }
 *
 *    name = cgroup_job_at(root, path);            // "asha/t0"
 *
 * 'root' is the absolute path of ROOT.  A scan reads a bounded number of
 * directories, never follows links, and ignores invalid names.
 *
 * The caller frees names.  No state.  Thread-safe. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* 'job' is "COJOB/JOB" and 'id' the inode of its directory, which user 'uid'
 * has created. */
typedef void cgroup_see_func(const char *job, uint64_t id, uid_t uid,
                             void *aux);

int cgroup_scan(const char *root, cgroup_see_func *, void *aux);
void cgroup_see_job(const char *root, const char *job, cgroup_see_func *,
                    void *aux);
bool cgroup_is_populated(const char *root, const char *job);
int cgroup_remove(const char *root, const char *job);

typedef void cgroup_path_func(const char *path, void *aux);
void cgroup_walk(const char *path, int max, cgroup_path_func *, void *aux);

char *cgroup_job_at(const char *root, const char *path);

#endif /* agent/identify/cgroup.h */
