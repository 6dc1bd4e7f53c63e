/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/bpf/pods.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "agent/identify/bpf/identity.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "shim/ports/route-socket.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(pods);

#define MESSAGE_SIZE 32768 /* Bytes, at least a message of the kernel. */
#define MAX_MESSAGES_PER_RUN 64

struct pods {
    struct identity *identity;
    struct mnl_socket *events;
    bool missed; /* Events were lost: all are looked at. */
    char message[MESSAGE_SIZE];
};

/* Kinds of interfaces that lead to pods and virtual machines. */
static const struct {
    const char *kind;
    enum identity_hook hook;
} kinds[] = { { "veth", IDENTITY_VETH },
              { "netkit", IDENTITY_NETKIT },
              { "tun", IDENTITY_TAP } };

/* Attaches the program of the interface's kind, if it leads to pods.  The end
 * of netkit in a pod's namespace, if that is ours, has none (EACCES). */
static void
attach(struct pods *pods, const char *name, const struct nlmsghdr *nlh)
{
    const struct ifinfomsg *link = mnl_nlmsg_get_payload(nlh);
    int bridge = route_attr_u32(route_attr(nlh, IFLA_MASTER), 0);
    int netns = route_attr_u32(route_attr(nlh, IFLA_LINK_NETNSID), -1);

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        int error;

        if (strcmp(route_link_kind(nlh), kinds[i].kind)) {
            continue;
        }
        error = identity_add_pod(pods->identity, link->ifi_index,
                                 kinds[i].hook, bridge, netns);
        if (error && error != ENODEV && error != EACCES) {
            static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

            VLOG_WARN_RL(&rl, "%s: no program marks what its pod sends (%s)",
                         name, ovs_strerror(error));
        }
    }
}

/* Handles a message about an interface, or a namespace. */
static int
see_link(const struct nlmsghdr *nlh, void *pods_)
{
    struct pods *pods = pods_;
    const struct ifinfomsg *link = mnl_nlmsg_get_payload(nlh);

    if (nlh->nlmsg_type == RTM_DELNSID) {
        identity_remove_netns_id(
            pods->identity, route_attr_u32(route_attr(nlh, NETNSA_NSID), -1));
    } else if (nlh->nlmsg_type == RTM_DELLINK) { /* Or moved into its pod. */
        identity_remove_pod(pods->identity, link->ifi_index);
    } else if (nlh->nlmsg_type == RTM_NEWLINK) {
        const char *name = route_attr_string(route_attr(nlh, IFLA_IFNAME));

        if (!identity_look(pods->identity, name)) {
            attach(pods, name, nlh);
        }
    }
    return MNL_CB_OK;
}

/* Looks at all interfaces. */
static int
look(struct pods *pods)
{
    struct route_socket *rs;
    int error = route_socket_open(-1, &rs);

    if (!error) {
        error = route_socket_list_links(rs, see_link, pods);
        route_socket_close(rs);
    }
    return error;
}

char *
pods_create(struct identity *identity, struct pods **podsp)
{
    struct pods *pods = xzalloc(sizeof *pods);
    int group = RTNLGRP_NSID, error = 0;

    pods->identity = identity;
    pods->events =
        mnl_socket_open2(NETLINK_ROUTE, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (!pods->events
        || mnl_socket_bind(pods->events, RTMGRP_LINK, MNL_SOCKET_AUTOPID)
        || mnl_socket_setsockopt(pods->events, NETLINK_ADD_MEMBERSHIP, &group,
                                 sizeof group)) {
        error = errno;
    }
    error = error ? error : look(pods);
    if (error) {
        pods_destroy(pods);
        pods = NULL;
    }
    *podsp = pods;
    return error ? xasprintf("cannot look at the interfaces of pods (%s)",
                             ovs_strerror(error))
                 : NULL;
}

void
pods_destroy(struct pods *pods)
{
    if (pods) {
        if (pods->events) {
            mnl_socket_close(pods->events);
        }
        free(pods);
    }
}

void
pods_run(struct pods *pods)
{
    for (int i = 0; pods && i < MAX_MESSAGES_PER_RUN; i++) {
        ssize_t n = mnl_socket_recvfrom(pods->events, pods->message,
                                        sizeof pods->message);

        if (n < 0) {
            pods->missed |= errno == ENOBUFS;
            break;
        }
        mnl_cb_run(pods->message, n, 0, 0, see_link, pods);
    }
    if (pods && pods->missed && !look(pods)) {
        pods->missed = false;
    }
}

void
pods_wait(const struct pods *pods)
{
    if (pods) {
        poll_fd_wait(mnl_socket_get_fd(pods->events), POLLIN);
    }
}
