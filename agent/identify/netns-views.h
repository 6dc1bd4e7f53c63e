/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NETNS_VIEWS_H
#define NETNS_VIEWS_H 1

/* The network namespaces whose sockets are looked at.
 *
 *
 * Motivation
 * ==========
 *
 * Jobs in containers have their sockets in namespaces of their own, which come
 * and go with them.  Each is looked at through a socket that was made in it.
 * That socket keeps a namespace alive which everybody else has left, so a view
 * is given up as soon as nobody wants it any more.
 *
 *
 * Usage
 * =====
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
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sock_diag;

/* More are passed over. */
#define NETNS_VIEWS_MAX 256

struct netns_view {
    uint64_t inode;             /* Of the namespace. */
    struct sock_diag *sd;       /* Our own may be null: it could not be
                                 * opened. */
    bool wanted;                /* In the turn that is going on. */
};

struct netns_views {
    struct netns_view *views;
    size_t n, allocated;
};

void netns_views_init(struct netns_views *);
void netns_views_uninit(struct netns_views *);

void netns_views_begin(struct netns_views *);
int netns_views_want(struct netns_views *, const char *path);
void netns_views_end(struct netns_views *);

#endif /* agent/identify/netns-views.h */
