/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NETNS_VIEWS_H
#define NETNS_VIEWS_H 1

/* Network namespaces whose sockets the agent reads.
 *
 * Sockets of jobs in containers are in namespaces of their own.  The agent
 * reads each namespace through a netlink socket that was opened in it, a view.
 * A view keeps its namespace alive, so the agent closes it when no job
 * process is in the namespace and no claim names it.
 *
 *    netns_views_begin(v);
 *    netns_views_want(v, "/run/netns/a");
 *    netns_views_want(v, "/proc/4711/ns/net");
 *    netns_views_end(v);
 *    for (size_t i = 0; i < v->n; i++) {
 *        ...v->views[i].sd...
 *    }
 *
 * The first view is always that of the agent's own namespace.
 *
 * Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sock_diag;

/* Further namespaces are ignored. */
#define NETNS_VIEWS_MAX 256

struct netns_view {
    uint64_t inode;             /* Inode of the namespace. */
    struct sock_diag *sd;       /* NULL if the socket of the agent's own
                                 * namespace could not be opened. */
    bool wanted;                /* Requested in the current update. */
};

struct netns_views {
    struct netns_view *views;
    size_t n, allocated;
};

void netns_views_init(struct netns_views *);
void netns_views_uninit(struct netns_views *);

void netns_views_begin(struct netns_views *);
void netns_views_want(struct netns_views *, const char *path);
void netns_views_end(struct netns_views *);

#endif /* agent/identify/netns-views.h */
