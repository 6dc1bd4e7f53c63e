/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/ports/route-socket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <libmnl/libmnl.h>

struct route_socket {
    struct mnl_socket *socket;
    unsigned int seq;
    char buffer[32768];         /* A request, then its replies. */
};

static int
open_socket(struct route_socket *rs)
{
    static const struct timeval limit = { .tv_usec = 500 * 1000 };

    rs->socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
    if (!rs->socket) {
        return errno;
    }
    setsockopt(mnl_socket_get_fd(rs->socket), SOL_SOCKET, SO_RCVTIMEO,
               &limit, sizeof limit);
    return mnl_socket_bind(rs->socket, 0, MNL_SOCKET_AUTOPID) ? errno : 0;
}

/* A socket stays in the namespace in which it was opened, so the thread can
 * return to its own. */
static int
open_socket_in(struct route_socket *rs, int netns)
{
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    int error = home < 0 || setns(netns, CLONE_NEWNET) ? errno : 0;

    if (!error) {
        error = open_socket(rs);
        /* The thread must not continue in the wrong namespace. */
        if (setns(home, CLONE_NEWNET)) {
            abort();
        }
    }
    if (home >= 0) {
        close(home);
    }
    return error;
}

int
route_socket_open(int netns, struct route_socket **rsp)
{
    struct route_socket *rs = calloc(1, sizeof *rs);
    int error = !rs ? ENOMEM
                : netns < 0 ? open_socket(rs) : open_socket_in(rs, netns);

    if (error) {
        route_socket_close(rs);
        rs = NULL;
    }
    *rsp = rs;
    return error;
}

void
route_socket_close(struct route_socket *rs)
{
    if (rs) {
        if (rs->socket) {
            mnl_socket_close(rs->socket);
        }
        free(rs);
    }
}

struct nlmsghdr *
route_socket_begin(struct route_socket *rs, uint16_t type, uint16_t flags)
{
    struct nlmsghdr *nlh = mnl_nlmsg_put_header(rs->buffer);

    nlh->nlmsg_type = type;
    nlh->nlmsg_flags = NLM_F_REQUEST | flags;
    nlh->nlmsg_seq = ++rs->seq;
    return nlh;
}

int
route_socket_transact(struct route_socket *rs, const struct nlmsghdr *nlh,
                      mnl_cb_t see, void *aux)
{
    unsigned int id = mnl_socket_get_portid(rs->socket);
    unsigned int seq = nlh->nlmsg_seq;

    if (mnl_socket_sendto(rs->socket, nlh, nlh->nlmsg_len) < 0) {
        return errno;
    }
    for (;;) {
        ssize_t n = mnl_socket_recvfrom(rs->socket, rs->buffer,
                                        sizeof rs->buffer);
        struct nlmsghdr *answer = (struct nlmsghdr *) rs->buffer;
        int result;

        if (n < 0) {
            return errno;
        }
        /* A late reply to a request that has timed out. */
        if (n >= (ssize_t) sizeof *answer && answer->nlmsg_seq != seq) {
            continue;
        }
        result = mnl_cb_run(rs->buffer, n, seq, id, see, aux);
        if (result < 0) {
            return errno;
        }
        if (result == MNL_CB_STOP) {
            return 0;
        }
    }
}

static int
take_ifindex(const struct nlmsghdr *nlh, void *ifindex)
{
    const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);

    *(int *) ifindex = ifi->ifi_index;
    return MNL_CB_OK;
}

int
route_socket_find(struct route_socket *rs, const char *iface, int *ifindex)
{
    struct nlmsghdr *nlh = route_socket_begin(rs, RTM_GETLINK, NLM_F_ACK);

    mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
    mnl_attr_put_strz(nlh, IFLA_IFNAME, iface);
    *ifindex = 0;
    return route_socket_transact(rs, nlh, take_ifindex, ifindex);
}

struct nlmsghdr *
route_socket_begin_tc(struct route_socket *rs, uint16_t type, uint16_t flags,
                      const struct tcmsg *tc)
{
    struct nlmsghdr *nlh = route_socket_begin(rs, type, flags);

    memcpy(mnl_nlmsg_put_extra_header(nlh, sizeof *tc), tc, sizeof *tc);
    return nlh;
}
