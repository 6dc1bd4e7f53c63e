/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/bpf/interfaces.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/identify/bpf/identity.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "shim/ports/route-socket.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(pods);

/* Of linux/bpf.h since 6.6. */
#define ATTACH_TCX_INGRESS 46
#define ATTACH_TCX_EGRESS 47
#define ATTACH_NETKIT_PEER 55 /* Since 6.7. */
#define LINK_TYPE_NETKIT 13
#define PLACE_FIRST (1u << 3) /* BPF_F_BEFORE without another program. */

static enum bpf_tc_attach_point
point_of(enum tc_program_place place)
{
    return place == TC_PROGRAM_EGRESS ? BPF_TC_EGRESS : BPF_TC_INGRESS;
}

static uint32_t
type_of(enum tc_program_place place)
{
    return place == TC_PROGRAM_EGRESS    ? ATTACH_TCX_EGRESS
           : place == TC_PROGRAM_INGRESS ? ATTACH_TCX_INGRESS
                                         : ATTACH_NETKIT_PEER;
}

/* Makes a link of TCX or netkit: the first one at ingress, where the packet
 * must still have its socket, and the last one at egress.  Returns its fd or a
 * negative errno.  Debian 12's libbpf and headers do not know it. */
static int
create_link(int program, int ifindex, enum tc_program_place place)
{
    struct {
        uint32_t program, ifindex, type, flags, relative, pad;
        uint64_t revision, rest[8];
    } attr = { .program = program, .ifindex = ifindex };
    long fd;

    attr.type = type_of(place);
    attr.flags = place == TC_PROGRAM_EGRESS ? 0 : PLACE_FIRST;
    fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof attr);
    return fd < 0 ? -errno : (int) fd;
}

static int
attach_filter(int program, int ifindex, enum tc_program_place place)
{
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex,
                .attach_point = point_of(place));
    LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = program,
                .handle = TC_PROGRAM_HANDLE, .priority = TC_PROGRAM_PRIORITY,
                .flags = BPF_TC_F_REPLACE);
    int error = bpf_tc_hook_create(&hook);

    return error && error != -EEXIST ? -error : -bpf_tc_attach(&hook, &opts);
}

/* Returns true if the pinned link 'fd' is of this interface.  A link of netkit
 * has the index of the other end, in its namespace, and 0 when that is
 * removed.
 */
static bool
is_of(int fd, int ifindex)
{
    struct {
        uint32_t type, id, program, pad, ifindex, attach_type, rest[16];
    } info = { .type = 0 };
    uint32_t size = sizeof info;

    return !bpf_obj_get_info_by_fd(fd, &info, &size)
           && (info.type == LINK_TYPE_NETKIT
                   ? info.ifindex != 0
                   : info.ifindex == (uint32_t) ifindex);
}

/* Puts 'program' in place of the pinned link's.  Returns false if there
 * is no link, or of an interface that was removed. */
static bool
replace(int program, int ifindex, const char *pin)
{
    int fd = bpf_obj_get(pin);
    bool replaced =
        fd >= 0 && is_of(fd, ifindex) && !bpf_link_update(fd, program, NULL);

    if (fd >= 0) {
        close(fd);
    }
    if (!replaced) {
        unlink(pin);
    }
    return replaced;
}

int
tc_program_attach(int program, int ifindex, enum tc_program_place place,
                  const char *pin)
{
    int error = 0, fd;

    if (replace(program, ifindex, pin)) {
        return 0;
    }
    fd = create_link(program, ifindex, place);
    if (fd == -EINVAL && place != TC_PROGRAM_NETKIT) { /* No TCX. */
        return attach_filter(program, ifindex, place);
    } else if (fd < 0) {
        return -fd;
    }
    error = bpf_obj_pin(fd, pin) ? errno : 0;
    close(fd);
    return error;
}

bool
tc_program_is_attached(int ifindex, enum tc_program_place place,
                       const char *pin)
{
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex,
                .attach_point = point_of(place));
    LIBBPF_OPTS(bpf_tc_opts, opts, .handle = TC_PROGRAM_HANDLE,
                .priority = TC_PROGRAM_PRIORITY);
    int fd = bpf_obj_get(pin);

    if (fd >= 0) {
        bool attached = is_of(fd, ifindex);

        close(fd);
        return attached;
    }
    return !bpf_tc_query(&hook, &opts);
}

size_t
tc_program_list(int ifindex, enum tc_program_place place, uint32_t *ids,
                size_t max)
{
    uint32_t n = max;

    return bpf_prog_query(ifindex, type_of(place), 0, NULL, ids, &n) ? 0 : n;
}

void
tc_program_detach(int ifindex, enum tc_program_place place, const char *pin)
{
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex,
                .attach_point = point_of(place));
    LIBBPF_OPTS(bpf_tc_opts, opts, .handle = TC_PROGRAM_HANDLE,
                .priority = TC_PROGRAM_PRIORITY);

    if (unlink(pin) && ifindex) {
        bpf_tc_detach(&hook, &opts);
    }
}

/* Pods. */

#define MESSAGE_SIZE 32768 /* Bytes, at least a message of the kernel. */
#define MAX_MESSAGES_PER_RUN 64

struct pods {
    struct identity *identity;
    struct mnl_socket *events;
    char message[MESSAGE_SIZE]; /* Aligned. */
    bool missed;                /* Events were lost: all interfaces are
                                 * checked. */
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
attach_to_pod(struct pods *pods, const char *name, const struct nlmsghdr *nlh)
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

        if (!identity_recheck(pods->identity, name)) {
            attach_to_pod(pods, name, nlh);
        }
    }
    return MNL_CB_OK;
}

/* Checks all interfaces. */
static int
scan_pods(struct pods *pods)
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
    error = error ? error : scan_pods(pods);
    if (error) {
        pods_destroy(pods);
        pods = NULL;
    }
    *podsp = pods;
    return error ? xasprintf("cannot scan the interfaces of pods (%s)",
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
    if (pods && pods->missed && !scan_pods(pods)) {
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
