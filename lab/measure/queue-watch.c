/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/measure/queue-watch.h"

#include <libmnl/libmnl.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <math.h>
#include <string.h>

#include "lab/cluster/spawn.h"
#include "util.h"

#define BIN_BYTES 1000
#define N_BINS 4096             /* The last one has all longer queues. */

struct queue_watch {
    struct mnl_socket *socket;  /* NULL without netlink. */
    uint64_t samples[N_BINS];   /* By backlog, rounded up to BIN_BYTES. */
    uint64_t n;
};

static int
open_socket(void *qw_)
{
    struct queue_watch *qw = qw_;

    qw->socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
    if (qw->socket && mnl_socket_bind(qw->socket, 0, MNL_SOCKET_AUTOPID)) {
        mnl_socket_close(qw->socket);
        qw->socket = NULL;
    }
    return 0;
}

struct queue_watch *
queue_watch_create(const char *ns)
{
    struct queue_watch *qw = xzalloc(sizeof *qw);

    netns_call(ns, open_socket, qw);
    return qw;
}

void
queue_watch_destroy(struct queue_watch *qw)
{
    if (qw) {
        if (qw->socket) {
            mnl_socket_close(qw->socket);
        }
        free(qw);
    }
}

static int
read_backlog(const struct nlattr *attr, void *backlog_)
{
    uint32_t *backlog = backlog_;

    if (mnl_attr_get_type(attr) == TCA_STATS_QUEUE
        && mnl_attr_get_payload_len(attr) >= sizeof(struct gnet_stats_queue)) {
        struct gnet_stats_queue q;

        memcpy(&q, mnl_attr_get_payload(attr), sizeof q);
        *backlog = q.backlog;
    }
    return MNL_CB_OK;
}

static int
read_qdisc(const struct nlattr *attr, void *backlog)
{
    return (mnl_attr_get_type(attr) == TCA_STATS2
            ? mnl_attr_parse_nested(attr, read_backlog, backlog) : MNL_CB_OK);
}

/* Adds a sample if the message is about the HTB of a port, whose backlog is
 * the sum of its queues. */
static int
read_message(const struct nlmsghdr *nlh, void *qw_)
{
    const struct tcmsg *tc = mnl_nlmsg_get_payload(nlh);
    struct queue_watch *qw = qw_;
    uint32_t backlog = 0;

    if (nlh->nlmsg_type == RTM_NEWQDISC && tc->tcm_parent == TC_H_ROOT
        && TC_H_MAJ(tc->tcm_handle) == 1 << 16) {
        mnl_attr_parse(nlh, sizeof *tc, read_qdisc, &backlog);
        qw->samples[MIN(DIV_ROUND_UP(backlog, BIN_BYTES), N_BINS - 1)]++;
        qw->n++;
    }
    return MNL_CB_OK;
}

void
queue_watch_sample(struct queue_watch *qw)
{
    char buffer[MNL_SOCKET_BUFFER_SIZE];
    struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
    struct tcmsg *tc = mnl_nlmsg_put_extra_header(nlh, sizeof *tc);
    ssize_t n;

    if (!qw->socket) {
        return;
    }
    nlh->nlmsg_type = RTM_GETQDISC;
    nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    tc->tcm_family = AF_UNSPEC;
    if (mnl_socket_sendto(qw->socket, nlh, nlh->nlmsg_len) < 0) {
        return;
    }
    do {
        n = mnl_socket_recvfrom(qw->socket, buffer, sizeof buffer);
    } while (n > 0 && mnl_cb_run(buffer, n, 0, 0, read_message, qw)
                      > MNL_CB_STOP);
}

double
queue_watch_quantile(const struct queue_watch *qw, double q)
{
    uint64_t until = ceil(q * qw->n), n = 0;

    for (int i = 0; i < N_BINS; i++) {
        n += qw->samples[i];
        if (n && n >= until) {
            return (double) i * BIN_BYTES;
        }
    }
    return NAN;
}
