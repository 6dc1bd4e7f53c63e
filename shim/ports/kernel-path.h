/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_KERNEL_PATH_H
#define SHIM_KERNEL_PATH_H 1

/* Two network interfaces that the kernel joins by itself.
 *
 *
 * Motivation
 * ==========
 *
 * When a shim dies, its two interfaces are still there with nobody between
 * them.  The kernel can do without us: a filter at the ingress of each that
 * redirects every frame to the egress of the other.  The filters are the
 * kernel's, so they outlive whoever set them, and whoever comes next finds
 * them.
 *
 * A shim's own sockets see frames before the filters do.  While both are
 * there, every frame goes its way twice: who raises or takes down the path
 * must see to it that the shim does not forward meanwhile.
 *
 * This is sch_ingress, cls_u32 and act_mirred, which kernels have where they
 * lack cls_matchall.  Filters of others on the same interfaces stay.
 *
 *
 * Usage
 * =====
 *
 *    error = kernel_path_open(netns_fd, &kp);
 *    error = kernel_path_raise(kp, "host", "uplink");
 *    ...
 *    kernel_path_lower(kp, "host", "uplink");
 *    kernel_path_close(kp);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The object keeps its namespace alive.  Closing it leaves the path as it is.
 * One thread at a time; a call waits for the kernel, at most half a second for
 * each of its answers. */

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

/* Is it there in both directions? */
bool kernel_path_is_up(struct kernel_path *, const char *iface,
                       const char *other);

#endif /* shim/ports/kernel-path.h */
