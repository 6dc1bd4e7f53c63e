/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/ports/route-socket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/inet_diag.h>
#include <linux/net_namespace.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
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
open_socket(struct route_socket *rs, int protocol)
{
    static const struct timeval limit = { .tv_usec = 500 * 1000 };

    rs->socket = mnl_socket_open2(protocol, SOCK_CLOEXEC);
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
open_socket_in(struct route_socket *rs, int protocol, int netns)
{
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    int error = home < 0 || setns(netns, CLONE_NEWNET) ? errno : 0;

    if (!error) {
        error = open_socket(rs, protocol);
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

static int
open_netlink(int protocol, int netns, struct route_socket **rsp)
{
    struct route_socket *rs = calloc(1, sizeof *rs);
    int error = !rs         ? ENOMEM
                : netns < 0 ? open_socket(rs, protocol)
                            : open_socket_in(rs, protocol, netns);

    if (error) {
        route_socket_close(rs);
        rs = NULL;
    }
    *rsp = rs;
    return error;
}

int
route_socket_open(int netns, struct route_socket **rsp)
{
    return open_netlink(NETLINK_ROUTE, netns, rsp);
}

int
route_socket_open_diag(int netns, struct route_socket **rsp)
{
    return open_netlink(NETLINK_SOCK_DIAG, netns, rsp);
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
        struct nlmsghdr *reply = (struct nlmsghdr *) rs->buffer;
        int result;

        if (n < 0) {
            return errno;
        }
        /* A late reply to a request that has timed out. */
        if (n >= (ssize_t) sizeof *reply && reply->nlmsg_seq != seq) {
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

int
route_socket_get_link(struct route_socket *rs, const char *iface, mnl_cb_t see,
                      void *aux)
{
    struct nlmsghdr *nlh = route_socket_begin(rs, RTM_GETLINK, NLM_F_ACK);

    mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
    mnl_attr_put_strz(nlh, IFLA_IFNAME, iface);
    return route_socket_transact(rs, nlh, see, aux);
}

int
route_socket_list_links(struct route_socket *rs, mnl_cb_t see, void *aux)
{
    struct nlmsghdr *nlh = route_socket_begin(rs, RTM_GETLINK, NLM_F_DUMP);

    mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
    return route_socket_transact(rs, nlh, see, aux);
}

int
route_socket_list_tcp(struct route_socket *rs, uint32_t states, int extension,
                      int storage, mnl_cb_t see, void *aux)
{
    static const uint8_t families[] = { AF_INET, AF_INET6 };
    int error = 0;

    for (int i = 0; i < 2 && !error; i++) {
        struct nlmsghdr *nlh =
            route_socket_begin(rs, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP);
        struct inet_diag_req_v2 *req =
            mnl_nlmsg_put_extra_header(nlh, sizeof *req);

        req->sdiag_family = families[i];
        req->sdiag_protocol = IPPROTO_TCP;
        req->idiag_ext = extension ? 1 << (extension - 1) : 0;
        req->idiag_states = states;
        if (storage >= 0) {
            struct nlattr *nest =
                mnl_attr_nest_start(nlh, INET_DIAG_REQ_SK_BPF_STORAGES);

            mnl_attr_put_u32(nlh, SK_DIAG_BPF_STORAGE_REQ_MAP_FD, storage);
            mnl_attr_nest_end(nlh, nest);
        }
        error = route_socket_transact(rs, nlh, see, aux);
    }
    return error;
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
    *ifindex = 0;
    return route_socket_get_link(rs, iface, take_ifindex, ifindex);
}

static int
take_route(const struct nlmsghdr *nlh, void *route_)
{
    const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
    struct route *route = route_;

    route->type = rtm->rtm_type;
    route->ifindex = route_attr_u32(route_attr(nlh, RTA_OIF), 0);
    return MNL_CB_OK;
}

int
route_socket_get_route(struct route_socket *rs, int family,
                       const uint8_t *address, struct route *route)
{
    struct nlmsghdr *nlh = route_socket_begin(rs, RTM_GETROUTE, NLM_F_ACK);
    size_t size = family == AF_INET ? 4 : 16;
    struct rtmsg *rtm = mnl_nlmsg_put_extra_header(nlh, sizeof *rtm);

    rtm->rtm_family = family;
    rtm->rtm_dst_len = 8 * size;
    mnl_attr_put(nlh, RTA_DST, size, address);
    *route = (struct route){ .type = RTN_UNSPEC };
    return route_socket_transact(rs, nlh, take_route, route);
}

static int
take_nsid(const struct nlmsghdr *nlh, void *nsid)
{
    *(int *) nsid = route_attr_u32(route_attr(nlh, NETNSA_NSID), -1);
    return MNL_CB_OK;
}

int
route_socket_get_nsid(struct route_socket *rs, int fd)
{
    struct nlmsghdr *nlh = route_socket_begin(rs, RTM_GETNSID, NLM_F_ACK);
    int nsid = -1;

    mnl_nlmsg_put_extra_header(nlh, sizeof(struct rtgenmsg));
    mnl_attr_put_u32(nlh, NETNSA_FD, fd);
    route_socket_transact(rs, nlh, take_nsid, &nsid);
    return nsid;
}

struct nlmsghdr *
route_socket_begin_tc(struct route_socket *rs, uint16_t type, uint16_t flags,
                      const struct tcmsg *tc)
{
    struct nlmsghdr *nlh = route_socket_begin(rs, type, flags);

    memcpy(mnl_nlmsg_put_extra_header(nlh, sizeof *tc), tc, sizeof *tc);
    return nlh;
}

int
route_socket_list_tc(struct route_socket *rs, uint16_t type, int ifindex,
                     uint32_t parent, mnl_cb_t see, void *aux)
{
    const struct tcmsg tc = { .tcm_ifindex = ifindex, .tcm_parent = parent };
    struct nlmsghdr *nlh = route_socket_begin_tc(rs, type, NLM_F_DUMP, &tc);

    return route_socket_transact(rs, nlh, see, aux);
}

/* Attributes. */

const struct nlattr *
route_attr(const struct nlmsghdr *nlh, uint16_t type)
{
    const struct nlattr *attr;
    size_t header = sizeof(struct tcmsg);

    if (nlh->nlmsg_type <= RTM_SETLINK) {
        header = sizeof(struct ifinfomsg);
    } else if (nlh->nlmsg_type == RTM_NEWROUTE) {
        header = sizeof(struct rtmsg);
    } else if (nlh->nlmsg_type >= RTM_NEWNSID) {
        header = sizeof(struct rtgenmsg);
    }
    mnl_attr_for_each(attr, nlh, header)
    {
        if (mnl_attr_get_type(attr) == type) {
            return attr;
        }
    }
    return NULL;
}

const struct nlattr *
route_attr_in(const struct nlattr *nest, uint16_t type)
{
    const struct nlattr *attr;

    if (nest) {
        mnl_attr_for_each_nested(attr, nest)
        {
            if (mnl_attr_get_type(attr) == type) {
                return attr;
            }
        }
    }
    return NULL;
}

bool
route_attr_copy(const struct nlattr *attr, void *to, size_t size)
{
    bool whole = attr && mnl_attr_get_payload_len(attr) >= size;

    if (whole) {
        memcpy(to, mnl_attr_get_payload(attr), size);
    }
    return whole;
}

uint32_t
route_attr_u32(const struct nlattr *attr, uint32_t deflt)
{
    route_attr_copy(attr, &deflt, sizeof deflt);
    return deflt;
}

const char *
route_attr_string(const struct nlattr *attr)
{
    return attr && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0
               ? mnl_attr_get_str(attr)
               : "";
}

const char *
route_link_kind(const struct nlmsghdr *nlh)
{
    return route_attr_string(
        route_attr_in(route_attr(nlh, IFLA_LINKINFO), IFLA_INFO_KIND));
}
