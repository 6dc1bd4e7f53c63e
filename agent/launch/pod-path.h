/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POD_PATH_H
#define POD_PATH_H 1

/* Which pod of Kubernetes a cgroup is of.
 *
 *
 * Motivation
 * ==========
 *
 * Kubelet and container runtimes name cgroups by pod and container, in one of
 * two ways, below whatever cgroup the kubelet itself is in:
 *
 *    /kubepods/burstable/podUID/CONTAINER                (driver cgroupfs)
 *    /kubepods.slice/kubepods-burstable.slice/
 *        kubepods-burstable-podUID.slice/RUNTIME-CONTAINER.scope   (systemd)
 *
 * where systemd wants "_" in place of UID's "-".  So a cgroup alone tells the
 * pod, with no interface of anybody's, and a socket tells its cgroup.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain C without any library.  No state.  Thread-safe. */

#include <stdbool.h>

struct pod_path {
    char uid[37];               /* With "-", or 32 digits for a static pod. */
    char container[65];         /* Empty for the pod's own cgroup, and for what
                                 * is no container's. */
};

/* True, with '*pod' filled in, if 'path' (as in /proc/PID/cgroup, or absolute)
 * is the cgroup of a pod or is below one. */
bool pod_path_parse(const char *path, struct pod_path *pod);

#endif /* agent/launch/pod-path.h */
