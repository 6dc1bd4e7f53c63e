/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ATTRIBUTION_H
#define ATTRIBUTION_H 1

/* Attributes a socket to a job.
 *
 * Most sockets can be attributed by a table lookup of their cgroup: either the
 * cgroup belongs to one job, or none of its processes belongs to any job.  The
 * processes of a cgroup are inspected only if the socket was opened after the
 * last inspection of the cgroup.  An inspection reads the environment of each
 * process, the claims on it and on its ancestors, and the open sockets of
 * those that belong to a job.  Inspections of one cgroup are limited to 1/40
 * of the time (GAP_SHARE); while the limit applies, attribution_decide()
 * returns ATTRIBUTION_RETRY and the time of the next attempt.
 *
 *    struct attribution_socket socket = { .info = info, .netns = inode,
 *                                         .since = reported };
 *
 *    switch (attribution_decide(a, &socket, now, &job, &when)) {
 *    case ATTRIBUTION_JOB: ...
 *    case ATTRIBUTION_NONE: ...
 *    case ATTRIBUTION_RETRY: ...again at 'when'...
 *    }
 *
 * Writes claims into the registry, which belongs to the caller and must
 * outlive this object.  Memory is bounded: with too many cgroups, all are
 * forgotten.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/identify/sock-diag.h"

struct job;
struct port_rule;
struct registry;
struct attribution;

/* What it refers to must outlive the object. */
struct attribution_config {
    int mount_fd;               /* See cgroup_path_of_id(). */
    const char *cgroup_root;    /* Of the tree of jobs, NULL without cgroup
                                 * v2. */
    const struct port_rule *ports;
    size_t n_ports;
};

struct attribution_socket {
    const struct sock_info *info;
    uint64_t netns;             /* Inode of the namespace of the socket. */
    long long since;            /* Time at which the socket was known to
                                 * exist. */
};

enum attribution_result {
    ATTRIBUTION_JOB,
    ATTRIBUTION_NONE,
    ATTRIBUTION_RETRY,
};

struct attribution *attribution_create(const struct attribution_config *,
                                       struct registry *);
void attribution_destroy(struct attribution *);

enum attribution_result attribution_decide(struct attribution *,
                                           const struct attribution_socket *,
                                           long long now, struct job **jobp,
                                           long long *whenp);
void attribution_clear(struct attribution *);

/* Returns true, once, if the path of a cgroup could not be found by its id, so
 * that a scan of the tree is needed. */
bool attribution_needs_scan(struct attribution *);

#endif /* agent/identify/attribution.h */
