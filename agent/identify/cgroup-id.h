/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CGROUP_ID_H
#define CGROUP_ID_H 1

/* Where the cgroup with an id is.
 *
 *
 * Motivation
 * ==========
 *
 * The kernel notes the id of a cgroup in each socket.  To look for it in the
 * tree takes as long as the tree is large, and must not be done too often; but
 * the id is also the file handle of the cgroup's directory, and the kernel
 * opens that at once.
 *
 *
 * Usage
 * =====
 *
 *    cgroup_ids_open("/sys/fs/cgroup", &ids);
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
 * Paths and names are the caller's to free().  Main thread only. */

#include <stdbool.h>
#include <stdint.h>

struct cgroup_ids;

struct cgroup_ids *cgroup_ids_open(const char *mount);
void cgroup_ids_close(struct cgroup_ids *);
int cgroup_ids_path(const struct cgroup_ids *, uint64_t id, char **pathp);

char *cgroup_job_at(const char *root, const char *path, bool *belowp);

#endif /* agent/identify/cgroup-id.h */
