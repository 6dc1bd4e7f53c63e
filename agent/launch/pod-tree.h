/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POD_TREE_H
#define POD_TREE_H 1

/* Finds the pods in a cgroup tree.
 *
 *
 * Usage
 * =====
 *
 *    pod_tree_scan("/sys/fs/cgroup", see_pod, aux);
 *
 * calls see_pod("/sys/fs/cgroup/kubepods.slice/...", pod, aux) once for the
 * own cgroup of each pod.  It does not read below those, nor more than eight
 * levels of directories, and does not follow links.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state.  Thread-safe. */

#include "agent/launch/pod-path.h"

typedef void pod_tree_func(const char *path, const struct pod_path *,
                           void *aux);

/* Returns 0 or an errno if 'root' itself cannot be read. */
int pod_tree_scan(const char *root, pod_tree_func *, void *aux);

#endif /* agent/launch/pod-tree.h */
