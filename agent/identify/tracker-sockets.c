/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/tracker-private.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "agent/identify/sock-diag.h"
#include "agent/identify/whose.h"
#include "openvswitch/vlog.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(tracker_sockets);

#define DUMP_GAP_MS 500         /* Between dumps of the sockets, or if that is
                                 * more, so many times as long as they take. */
#define DUMP_SHARE 100
#define VIEWS_GAP_MS 100        /* Between looks for namespaces. */

void
tracker_flow_gone(const struct flow *flow, void *t_)
{
    struct tracker *t = t_;

    t->class->flow_end(&flow->key, t->aux);
}

/* Takes what is known of a socket.  Returns WHOSE_LATER if that is not enough,
 * and stores in '*whenp' when it may be. */
static enum whose_answer
take_socket(struct tracker *t, const struct sock_info *info, uint64_t netns,
            long long since, long long *whenp)
{
    struct whose_socket socket = { info, netns, since };
    struct job *job;
    enum whose_answer answer = whose_decide(t->whose, &socket, t->now, &job,
                                            whenp);

    if (answer == WHOSE_JOB
        && flow_table_see(&t->flows, &info->key, job, info->cgroup, t->now)) {
        t->class->flow_begin(&info->key, job, t->aux);
    }
    if (whose_needs_scan(t->whose)) {
        tracker_hurry(t);
    }
    return answer;
}

static void
see_socket(const struct sock_info *info, void *t_)
{
    struct tracker *t = t_;
    long long when;

    if (info->cgroup
        && take_socket(t, info, t->view->inode, t->now, &when)
           == WHOSE_LATER) {
        miss_filter_report(&t->misses, &info->key, t->now);
    }
}

/* Stores in 'cgroups' those that jobs' sockets can be in.  Returns how many
 * there are, more than SOCK_DIAG_MAX_CGROUPS if they have no room. */
static size_t
cgroups_of_jobs(const struct tracker *t,
                uint64_t cgroups[SOCK_DIAG_MAX_CGROUPS])
{
    const struct registry_cgroup *c;
    const struct flow *flow;
    uint64_t last = 0;
    size_t n = 0;

    HMAP_FOR_EACH (c, node, &t->registry.cgroups) {
        if (n >= SOCK_DIAG_MAX_CGROUPS) {
            return n + 1;
        }
        cgroups[n++] = c->id;
    }
    HMAP_FOR_EACH (flow, node, &t->flows.flows) {
        size_t i = 0;

        if (flow->cgroup == last) {
            continue;
        }
        last = flow->cgroup;
        while (i < n && cgroups[i] != flow->cgroup) {
            i++;
        }
        if (i >= n) {
            if (n >= SOCK_DIAG_MAX_CGROUPS) {
                return n + 1;
            }
            cgroups[n++] = flow->cgroup;
        }
    }
    return n;
}

static int
dump_view(struct tracker *t, struct netns_view *view,
          const uint64_t *cgroups, size_t n)
{
    int error = view->sd ? 0 : ENOTCONN;

    if (!error) {
        t->view = view;
        error = sock_diag_dump(view->sd, cgroups, n, see_socket, t);
    }
    if (error) {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

        VLOG_WARN_RL(&rl, "cannot read the sockets, trying again (%s)",
                     ovs_strerror(error));
        sock_diag_close(view->sd);
        view->sd = NULL;
        view->wanted = false;
    }
    return error;
}

/* Looks at the sockets in cgroups of jobs, or at 'all'; how often depends on
 * how long that takes. */
void
tracker_dump(struct tracker *t, bool all)
{
    long long start = time_usec();
    uint64_t cgroups[SOCK_DIAG_MAX_CGROUPS];
    size_t n = all ? 0 : cgroups_of_jobs(t, cgroups);
    long long cost_ms;
    int error = 0;

    if (n || all) {
        t->stats.n_dumps++;
        flow_table_begin(&t->flows);
        for (size_t i = 0; i < t->views.n; i++) {
            int view_error = dump_view(t, &t->views.views[i], cgroups, n);

            error = view_error ? view_error : error;
        }
        if (!error) {
            flow_table_end(&t->flows, t->now, tracker_flow_gone, t);
        } else {
            t->stats.n_failed_dumps++;
        }
    }
    cost_ms = (time_usec() - start) / 1000;
    t->next_dump = t->now + MAX(DUMP_GAP_MS, cost_ms * DUMP_SHARE);
}

/* Looks for the socket with 'key' in each namespace. */
static int
find_socket(struct tracker *t, const struct shim_flow_key *key,
            struct sock_info *info, uint64_t *netnsp)
{
    for (size_t i = 0; i < t->views.n; i++) {
        struct netns_view *view = &t->views.views[i];

        t->stats.n_looks++;
        if (view->sd && !sock_diag_find(view->sd, key, info)
            && info->cgroup) {
            *netnsp = view->inode;
            return 0;
        }
    }
    return ENOENT;
}

int
tracker_tcp_info(struct tracker *t, const struct shim_flow_key *key,
                 void *tcp_info, size_t *sizep)
{
    for (size_t i = 0; i < t->views.n; i++) {
        struct sock_diag *sd = t->views.views[i].sd;

        if (sd && !sock_diag_tcp_info(sd, key, tcp_info, sizep)) {
            return 0;
        }
    }
    return ENOENT;
}

void
tracker_look_at_miss(struct tracker *t, const struct shim_flow_key *key,
             long long since)
{
    struct sock_info info;
    uint64_t netns;
    long long when;

    if (key->protocol != IPPROTO_TCP) {
        miss_filter_quiet(&t->misses, key, t->now + MISS_NOBODYS_MS);
        return;
    }
    if (find_socket(t, key, &info, &netns)) {
        if (t->now - t->last_views >= VIEWS_GAP_MS) {
            tracker_look_for_namespaces(t);
        }
        miss_filter_retry(&t->misses, key, t->now);
        return;
    }
    switch (take_socket(t, &info, netns, since, &when)) {
    case WHOSE_JOB:
        miss_filter_resolve(&t->misses, key);
        break;
    case WHOSE_NOBODY:
        miss_filter_quiet(&t->misses, key, t->now + MISS_NOBODYS_MS);
        break;
    case WHOSE_LATER:
        miss_filter_defer(&t->misses, key, when);
        break;
    }
}
