/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POD_PATH_H
#define POD_PATH_H 1

/* Kubernetes pod of a cgroup.
 *
 * Kubelet and container runtimes name cgroups after pod and container, in one
 * of two ways, below the kubelet's own ("--cgroup-root"):
 *
 *    /kubepods/burstable/podUID/CONTAINER                (driver cgroupfs)
 *    /kubepods.slice/kubepods-burstable.slice/
 *        kubepods-burstable-podUID.slice/RUNTIME-CONTAINER.scope   (systemd)
 *
 * where systemd has "_" in place of the "-" of the UID.  So the cgroup of a
 * socket identifies the pod, without any other interface.  A user can make
 * cgroups with these names below his own, so the names count only from the
 * kubelet's on, and only as long as each cgroup has its owner, root.
 *
 *    found = pod_path_find("/sys/fs/cgroup", "/kubepods/pod...", uid);
 *    error = pod_path_scan("/sys/fs/cgroup", see_pod, aux);
 *
 * Plain C without any library.  No state of the caller.  One thread. */

#include <stdbool.h>
#include <stddef.h>

/* Returns the length of the name of the pod's own cgroup and stores the UID if
 * 'path', which begins at the kubelet's cgroup, is a pod's cgroup or is below
 * one; else 0.  The UID has "-", or 32 digits for a static pod. */
size_t pod_path_parse(const char *path, char uid[37]);

/* Does the same for a 'path' with an unknown part up to a kubelet's cgroup.
 * The length includes that part. */
size_t pod_path_search(const char *path, char uid[37]);

/* Returns true and stores the UID if pod_path_search() finds a pod in 'path'
 * below 'mount', and all cgroups down to the pod's belong to root. */
bool pod_path_find(const char *mount, const char *path, char uid[37]);

typedef void pod_path_func(const char *path, const char *uid, void *aux);

/* Calls the function with 'aux' once for the own cgroup of each pod below
 * 'root', the kubelet's, with its whole path.  Does not read below those, nor
 * more than eight levels of directories, and does not follow links.  Returns
 * 0, or an errno if 'root' itself cannot be read. */
int pod_path_scan(const char *root, pod_path_func *, void *aux);

#endif /* agent/launch/pod-path.h */
