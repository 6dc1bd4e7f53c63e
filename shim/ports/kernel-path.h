/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_KERNEL_PATH_H
#define SHIM_KERNEL_PATH_H 1

/* The kernel bypass: the kernel forwards between the two interfaces of a shim.
 *
 * When a shim dies, its two interfaces remain without a connection.  The
 * kernel can connect them: a filter at the ingress of each redirects every
 * frame to the egress of the other.  Unlike a bridge, filters need no device
 * and leave addresses and names unchanged.  They are in the kernel, so they
 * outlive the process that added them, and another process can find and remove
 * them.
 *
 * A shim's sockets receive frames before the filters do.  While both exist,
 * every frame is forwarded twice.  So the shim removes the filters when it
 * begins to forward, also after a gap in its own polls, and the agent checks
 * whether the shim's thread is running before it declares a silent shim
 * hung.
 *
 * Uses sch_ingress, cls_u32 and act_mirred, which also kernels without
 * cls_matchall have.  Other filters on the same interfaces are kept.
 *
 *    error = route_socket_open(netns_fd, &rs);
 *    error = kernel_path_raise(rs, "host", "uplink");
 *    ...
 *    kernel_path_lower(rs, "host", "uplink");
 *    route_socket_close(rs);
 *
 * The socket keeps its namespace alive.  Closing it leaves the bypass as it
 * is. */

#include <stdbool.h>

#include "shim/ports/route-socket.h"

/* Return 0 or a positive errno. */
int kernel_path_raise(struct route_socket *, const char *iface,
                      const char *other);
int kernel_path_lower(struct route_socket *, const char *iface,
                      const char *other);

/* Returns true if the bypass exists in both directions. */
bool kernel_path_is_up(struct route_socket *, const char *iface,
                       const char *other);

#endif /* shim/ports/kernel-path.h */
