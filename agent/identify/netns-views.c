/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/netns-views.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "agent/identify/sock-diag.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(netns_views);

void
netns_views_init(struct netns_views *v)
{
    struct stat s;

    v->allocated = v->n = 1;
    v->views = xzalloc(sizeof *v->views);
    v->views[0].inode = stat("/proc/self/ns/net", &s) ? 0 : s.st_ino;
    netns_views_begin(v);
}

void
netns_views_uninit(struct netns_views *v)
{
    for (size_t i = 0; i < v->n; i++) {
        sock_diag_close(v->views[i].sd);
    }
    free(v->views);
}

/* Begins an update, in which each namespace must be requested again. */
void
netns_views_begin(struct netns_views *v)
{
    for (size_t i = 1; i < v->n; i++) {
        v->views[i].wanted = false;
    }
    if (!v->views[0].sd) {
        int error = sock_diag_open(NULL, &v->views[0].sd);

        if (error) {
            static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

            VLOG_WARN_RL(&rl, "own network namespace: cannot read the "
                         "sockets, trying again (%s)", ovs_strerror(error));
        }
    }
}

/* Requests a view of the namespace of the file at 'path', if there is one. */
void
netns_views_want(struct netns_views *v, const char *path)
{
    struct netns_view *view;
    struct sock_diag *sd;
    struct stat s;
    int error;

    if (stat(path, &s)) {
        return;
    }
    for (size_t i = 0; i < v->n; i++) {
        if (v->views[i].inode == s.st_ino) {
            v->views[i].wanted = true;
            return;
        }
    }
    if (v->n >= NETNS_VIEWS_MAX) {
        return;
    }
    error = sock_diag_open(path, &sd);
    if (error) {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

        if (error != ENOENT) {
            VLOG_WARN_RL(&rl, "%s: cannot read the sockets of this network "
                         "namespace (%s)", path, ovs_strerror(error));
        }
        return;
    }
    if (v->n >= v->allocated) {
        v->views = x2nrealloc(v->views, &v->allocated, sizeof *v->views);
    }
    view = &v->views[v->n++];
    view->inode = s.st_ino;
    view->sd = sd;
    view->wanted = true;
}

/* Ends an update: closes the views that were not requested. */
void
netns_views_end(struct netns_views *v)
{
    for (size_t i = v->n - 1; i > 0; i--) {
        if (!v->views[i].wanted) {
            sock_diag_close(v->views[i].sd);
            v->views[i] = v->views[--v->n];
        }
    }
}
