/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CGROUP_ID_H
#define CGROUP_ID_H 1

/* Path of the cgroup with a given id.
 *
 *
 * Motivation
 * ==========
 *
 * The kernel stores the id of a cgroup in each socket.  The id is also the
 * file handle of the cgroup's directory, which the kernel opens without a
 * search, so the first socket of a new cgroup needs no scan of the tree.
 *
 *
 * Usage
 * =====
 *
 *    ids = cgroup_ids_open("/sys/fs/cgroup");
 *    error = cgroup_ids_path(ids, id, &path);    // "/sys/fs/cgroup/a/b"
 *    name = cgroup_job_at(root, path, &below);   // "asha/t0"
 *
 * Opening by handle needs CAP_DAC_READ_SEARCH.  Without it, or without a
 * cgroup v2 file system, each path is EPERM or ENOENT.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The caller frees paths and names.  Main thread only. */

#include <stdbool.h>
#include <stdint.h>

struct cgroup_ids;

struct cgroup_ids *cgroup_ids_open(const char *mount);
void cgroup_ids_close(struct cgroup_ids *);
int cgroup_ids_path(const struct cgroup_ids *, uint64_t id, char **pathp);

char *cgroup_job_at(const char *root, const char *path, bool *belowp);

#endif /* agent/identify/cgroup-id.h */
