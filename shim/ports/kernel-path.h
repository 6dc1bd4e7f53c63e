/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_KERNEL_PATH_H
#define SHIM_KERNEL_PATH_H 1

/* The kernel bypass: the kernel forwards between the two interfaces of a shim.
 *
 * When a shim dies, its two interfaces remain without a connection.  The
 * kernel can connect them: a filter at the ingress of each redirects every
 * frame to the egress of the other.  The filters are in the kernel, so they
 * outlive the process that added them, and another process can find and remove
 * them.
 *
 * A shim's sockets receive frames before the filters do.  While both exist,
 * every frame is forwarded twice: the caller must make sure that the shim does
 * not forward meanwhile.
 *
 * Uses sch_ingress, cls_u32 and act_mirred, which also kernels without
 * cls_matchall have.  Other filters on the same interfaces are kept.
 *
 *    error = kernel_path_open(netns_fd, &kp);
 *    error = kernel_path_raise(kp, "host", "uplink");
 *    ...
 *    kernel_path_lower(kp, "host", "uplink");
 *    kernel_path_close(kp);
 *
 * The object keeps its namespace alive.  Closing it leaves the bypass as it
 * is. One thread at a time; a call waits at most half a second for each reply
 * of the kernel.
 *
 * The bypass consists of ingress filters and not of a bridge: filters need no
 * device, survive their creator, and leave addresses and names unchanged.  The
 * shim's sockets see frames before the filters do, so shim and filters
 * together would duplicate every frame.  The shim therefore removes the
 * filters when it begins to forward, also after a gap in its own polls, and
 * the agent checks whether the shim's thread is running before it declares a
 * silent shim hung. */

#include <stdbool.h>

struct kernel_path;

/* 'netns' is a file descriptor of a network namespace that stays the caller's,
 * or -1 for the caller's own.  All return 0 or a positive errno. */
int kernel_path_open(int netns, struct kernel_path **);
void kernel_path_close(struct kernel_path *);

int kernel_path_raise(struct kernel_path *, const char *iface,
                      const char *other);
int kernel_path_lower(struct kernel_path *, const char *iface,
                      const char *other);

/* Returns true if the bypass exists in both directions. */
bool kernel_path_is_up(struct kernel_path *, const char *iface,
                       const char *other);

#endif /* shim/ports/kernel-path.h */
