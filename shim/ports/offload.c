/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/ports/offload.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/ethtool.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* The other end of a link. */
struct peer {
    int ifindex;                /* 0 if there is none. */
    int nsid;                   /* Of its namespace, as ours numbers them; -1:
                                 * it is in ours. */
};

struct reply {
    union {
        struct nlmsghdr header;
        char bytes[32768];
    };
};

/* Sends 'request' and waits for the reply.  Returns 0 or a positive errno. */
static int
ask(struct nlmsghdr *request, struct reply *reply)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    ssize_t n = -1;
    int error = 0;

    request->nlmsg_flags = NLM_F_REQUEST;
    if (fd < 0 || send(fd, request, request->nlmsg_len, 0) < 0
        || (n = recv(fd, reply, sizeof *reply, 0)) < 0) {
        error = errno;
    }
    if (fd >= 0) {
        close(fd);
    }
    if (!error && !NLMSG_OK(&reply->header, n)) {
        error = EPROTO;
    }
    if (!error && reply->header.nlmsg_type == NLMSG_ERROR) {
        error = -((struct nlmsgerr *) NLMSG_DATA(&reply->header))->error;
    }
    return error;
}

/* Returns the attribute 'type' behind a header of 'size' bytes, or NULL. */
static const struct rtattr *
find_attribute(const struct reply *reply, size_t size, int type)
{
    const struct nlmsghdr *h = &reply->header;
    const struct rtattr *rta = (const struct rtattr *)
        ((const char *) NLMSG_DATA(h) + NLMSG_ALIGN(size));
    int left = h->nlmsg_len - NLMSG_SPACE(size);

    for (; RTA_OK(rta, left); rta = RTA_NEXT(rta, left)) {
        if (rta->rta_type == type
            && RTA_PAYLOAD(rta) >= sizeof(int32_t)) {
            return rta;
        }
    }
    return NULL;
}

static bool
is_veth(const struct reply *reply)
{
    const struct rtattr *info = find_attribute(
        reply, sizeof(struct ifinfomsg), IFLA_LINKINFO);
    const struct rtattr *kind = info ? RTA_DATA(info) : NULL;

    return (kind && RTA_OK(kind, (int) RTA_PAYLOAD(info))
            && kind->rta_type == IFLA_INFO_KIND
            && RTA_PAYLOAD(kind) >= 5 && !memcmp(RTA_DATA(kind), "veth", 5));
}

static int
find_peer(const char *iface, struct peer *peer)
{
    struct {
        struct nlmsghdr header;
        struct ifinfomsg info;
    } request = {
        .header = {
            .nlmsg_len = sizeof request,
            .nlmsg_type = RTM_GETLINK,
        },
        .info = { .ifi_index = if_nametoindex(iface) },
    };
    const struct rtattr *link, *nsid;
    struct reply reply;
    int error = request.info.ifi_index ? ask(&request.header, &reply)
                                       : ENODEV;

    *peer = (struct peer) { .nsid = -1 };
    if (error || !is_veth(&reply)) {
        return error;
    }
    link = find_attribute(&reply, sizeof(struct ifinfomsg), IFLA_LINK);
    nsid = find_attribute(&reply, sizeof(struct ifinfomsg),
                          IFLA_LINK_NETNSID);
    if (link) {
        memcpy(&peer->ifindex, RTA_DATA(link), sizeof peer->ifindex);
    }
    if (nsid) {
        memcpy(&peer->nsid, RTA_DATA(nsid), sizeof peer->nsid);
    }
    return 0;
}

/* Returns our namespace's number for that of the file 'fd', or -1. */
static int
get_nsid(int fd)
{
    struct {
        struct nlmsghdr header;
        struct rtgenmsg family;
        char pad[3];
        struct rtattr attribute;
        int32_t fd;
    } request = {
        .header = {
            .nlmsg_len = sizeof request,
            .nlmsg_type = RTM_GETNSID,
        },
        .attribute = {
            .rta_len = RTA_LENGTH(sizeof request.fd),
            .rta_type = NETNSA_FD,
        },
        .fd = fd,
    };
    const struct rtattr *rta;
    struct reply reply;
    int nsid = -1;

    if (!ask(&request.header, &reply)) {
        rta = find_attribute(&reply, sizeof(struct rtgenmsg), NETNSA_NSID);
        if (rta) {
            memcpy(&nsid, RTA_DATA(rta), sizeof nsid);
        }
    }
    return nsid;
}

/* Returns a file of the namespace that ours numbers 'nsid', or -1. */
static int
open_namespace(int nsid)
{
    glob_t paths;
    int found = -1;

    glob("/run/netns/*", 0, NULL, &paths);
    glob("/proc/[0-9]*/ns/net", GLOB_APPEND, NULL, &paths);
    for (size_t i = 0; i < paths.gl_pathc && found < 0; i++) {
        int fd = open(paths.gl_pathv[i], O_RDONLY | O_CLOEXEC);

        if (fd >= 0 && get_nsid(fd) == nsid) {
            found = fd;
        } else if (fd >= 0) {
            close(fd);
        }
    }
    globfree(&paths);
    return found;
}

/* Does 'command' with '*value', which may get the answer. */
static int
ethtool(int fd, const char *iface, uint32_t command, uint32_t *value)
{
    struct ethtool_value request = { .cmd = command, .data = *value };
    struct ifreq ifr;

    memset(&ifr, 0, sizeof ifr);
    snprintf(ifr.ifr_name, sizeof ifr.ifr_name, "%s", iface);
    ifr.ifr_data = (void *) &request;
    if (ioctl(fd, SIOCETHTOOL, &ifr)) {
        return errno;
    }
    *value = request.data;
    return 0;
}

static int
set_off(int fd, const char *iface, uint32_t command)
{
    uint32_t off = 0;

    return ethtool(fd, iface, command, &off);
}

/* At 'iface', which receives: puts nothing together.  An interface that
 * cannot do it cannot have it switched off. */
static int
receive_off(const char *iface)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int error = fd < 0 ? errno : set_off(fd, iface, ETHTOOL_SGRO);
    uint32_t flags = 0;

    if (!error && !ethtool(fd, iface, ETHTOOL_GFLAGS, &flags)
        && flags & ETH_FLAG_LRO) {
        flags &= ~ETH_FLAG_LRO;
        error = ethtool(fd, iface, ETHTOOL_SFLAGS, &flags);
    }
    if (fd >= 0) {
        close(fd);
    }
    return error == EOPNOTSUPP ? 0 : error;
}

struct sender {
    int ns;                     /* A file of its namespace, -1: ours. */
    int ifindex;
    int error;                  /* The result. */
};

/* At the interface that sends: completes checksums, without which there is no
 * segmentation either. */
static void *
send_off(void *sender_)
{
    struct sender *s = sender_;
    char iface[IFNAMSIZ];
    int fd;

    if (s->ns >= 0 && setns(s->ns, CLONE_NEWNET)) {
        s->error = errno;
        return NULL;
    }
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    s->error = fd < 0 || !if_indextoname(s->ifindex, iface) ? errno
               : set_off(fd, iface, ETHTOOL_STXCSUM);
    if (fd >= 0) {
        close(fd);
    }
    return NULL;
}

int
offload_switch_off(const char *iface)
{
    struct sender sender = { .ns = -1 };
    struct peer peer;
    pthread_t thread;
    int error = receive_off(iface);

    error = error ? error : find_peer(iface, &peer);
    if (error || !peer.ifindex) {
        return error;
    }
    if (peer.nsid >= 0) {
        sender.ns = open_namespace(peer.nsid);
        if (sender.ns < 0) {
            return ENXIO;
        }
    }
    sender.ifindex = peer.ifindex;
    /* A thread of its own, since it does not come back. */
    error = pthread_create(&thread, NULL, send_off, &sender);
    if (!error) {
        pthread_join(thread, NULL);
        error = sender.error;
    }
    if (sender.ns >= 0) {
        close(sender.ns);
    }
    return error;
}
