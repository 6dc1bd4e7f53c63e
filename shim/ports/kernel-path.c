/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/ports/kernel-path.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_mirred.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <libmnl/libmnl.h>

#define PRIORITY 0x5363         /* By which we know our filters again. */
#define INGRESS_QDISC 0xffff0000
#define INGRESS TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)     /* Of clsact and
                                                         * of ingress. */

struct kernel_path {
    struct mnl_socket *socket;
    unsigned int seq;
    char buffer[8192];          /* Of a request, then of its answer. */
};

static int
open_socket(struct kernel_path *kp)
{
    static const struct timeval limit = { .tv_usec = 500 * 1000 };

    kp->socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
    if (!kp->socket) {
        return errno;
    }
    setsockopt(mnl_socket_get_fd(kp->socket), SOL_SOCKET, SO_RCVTIMEO,
               &limit, sizeof limit);
    return mnl_socket_bind(kp->socket, 0, MNL_SOCKET_AUTOPID) ? errno : 0;
}

/* A socket stays in the namespace that it was made in, so the thread is there
 * only for a moment. */
static int
open_socket_in(struct kernel_path *kp, int netns)
{
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    int error = home < 0 || setns(netns, CLONE_NEWNET) ? errno : 0;

    if (!error) {
        error = open_socket(kp);
        /* Going on in the wrong namespace would be worse than to stop. */
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
kernel_path_open(int netns, struct kernel_path **kpp)
{
    struct kernel_path *kp = calloc(1, sizeof *kp);
    int error = !kp ? ENOMEM
                : netns < 0 ? open_socket(kp) : open_socket_in(kp, netns);

    if (error) {
        kernel_path_close(kp);
        kp = NULL;
    }
    *kpp = kp;
    return error;
}

void
kernel_path_close(struct kernel_path *kp)
{
    if (kp) {
        if (kp->socket) {
            mnl_socket_close(kp->socket);
        }
        free(kp);
    }
}

static struct nlmsghdr *
begin(struct kernel_path *kp, uint16_t type, uint16_t flags)
{
    struct nlmsghdr *nlh = mnl_nlmsg_put_header(kp->buffer);

    nlh->nlmsg_type = type;
    nlh->nlmsg_flags = NLM_F_REQUEST | flags;
    nlh->nlmsg_seq = ++kp->seq;
    return nlh;
}

/* Sends the request in the buffer and calls 'see' with 'aux' for each message
 * of the answer. */
static int
transact(struct kernel_path *kp, const struct nlmsghdr *nlh, mnl_cb_t see,
         void *aux)
{
    unsigned int id = mnl_socket_get_portid(kp->socket);
    unsigned int seq = nlh->nlmsg_seq;

    if (mnl_socket_sendto(kp->socket, nlh, nlh->nlmsg_len) < 0) {
        return errno;
    }
    for (;;) {
        ssize_t n = mnl_socket_recvfrom(kp->socket, kp->buffer,
                                        sizeof kp->buffer);
        struct nlmsghdr *answer = (struct nlmsghdr *) kp->buffer;
        int result;

        if (n < 0) {
            return errno;
        }
        /* What comes late, to a request that was given up. */
        if (n >= (ssize_t) sizeof *answer && answer->nlmsg_seq != seq) {
            continue;
        }
        result = mnl_cb_run(kp->buffer, n, seq, id, see, aux);
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

/* Stores 0 in '*ifindex' if there is no 'iface'. */
static int
find(struct kernel_path *kp, const char *iface, int *ifindex)
{
    struct nlmsghdr *nlh = begin(kp, RTM_GETLINK, NLM_F_ACK);

    mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
    mnl_attr_put_strz(nlh, IFLA_IFNAME, iface);
    *ifindex = 0;
    return transact(kp, nlh, take_ifindex, ifindex);
}

/* The shim's sockets do this as long as they are there: frames for the host
 * carry its address and not the interface's. */
static int
set_promiscuous(struct kernel_path *kp, int ifindex, bool on)
{
    struct nlmsghdr *nlh = begin(kp, RTM_NEWLINK, NLM_F_ACK);
    struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof *ifi);

    ifi->ifi_index = ifindex;
    ifi->ifi_flags = on ? IFF_PROMISC : 0;
    ifi->ifi_change = IFF_PROMISC;
    return transact(kp, nlh, NULL, NULL);
}

static struct nlmsghdr *
begin_tc(struct kernel_path *kp, uint16_t type, uint16_t flags, int ifindex,
         struct tcmsg **tcp)
{
    struct nlmsghdr *nlh = begin(kp, type, flags);
    struct tcmsg *tc = mnl_nlmsg_put_extra_header(nlh, sizeof *tc);

    tc->tcm_family = AF_UNSPEC;
    tc->tcm_ifindex = ifindex;
    *tcp = tc;
    return nlh;
}

/* Makes or removes the place for filters.  One that is there already, which
 * may be clsact as well, does. */
static int
change_qdisc(struct kernel_path *kp, int ifindex, bool make)
{
    struct tcmsg *tc;
    struct nlmsghdr *nlh = begin_tc(kp, make ? RTM_NEWQDISC : RTM_DELQDISC,
                                    make ? NLM_F_ACK | NLM_F_CREATE
                                           | NLM_F_EXCL : NLM_F_ACK,
                                    ifindex, &tc);
    int error;

    tc->tcm_parent = TC_H_INGRESS;
    tc->tcm_handle = INGRESS_QDISC;
    if (make) {
        mnl_attr_put_strz(nlh, TCA_KIND, "ingress");
    }
    error = transact(kp, nlh, NULL, NULL);
    return make && error == EEXIST ? 0 : error;
}

static void
put_redirect(struct nlmsghdr *nlh, int to)
{
    struct tc_mirred mirred = {
        .action = TC_ACT_STOLEN,
        .eaction = TCA_EGRESS_REDIR,
        .ifindex = to,
    };
    struct nlattr *actions = mnl_attr_nest_start(nlh, TCA_U32_ACT);
    struct nlattr *action = mnl_attr_nest_start(nlh, 1);
    struct nlattr *options;

    mnl_attr_put_strz(nlh, TCA_ACT_KIND, "mirred");
    options = mnl_attr_nest_start(nlh, TCA_ACT_OPTIONS);
    mnl_attr_put(nlh, TCA_MIRRED_PARMS, sizeof mirred, &mirred);
    mnl_attr_nest_end(nlh, options);
    mnl_attr_nest_end(nlh, action);
    mnl_attr_nest_end(nlh, actions);
}

/* One key with an empty mask: every frame. */
static void
put_match_all(struct nlmsghdr *nlh)
{
    struct {
        struct tc_u32_sel sel;
        struct tc_u32_key key;
    } all;

    memset(&all, 0, sizeof all);
    all.sel.flags = TC_U32_TERMINAL;
    all.sel.nkeys = 1;
    mnl_attr_put(nlh, TCA_U32_SEL, sizeof all, &all);
}

static int
add_filter(struct kernel_path *kp, int from, int to)
{
    struct tcmsg *tc;
    struct nlmsghdr *nlh = begin_tc(kp, RTM_NEWTFILTER, NLM_F_ACK
                                    | NLM_F_CREATE | NLM_F_EXCL, from, &tc);
    struct nlattr *options;

    tc->tcm_parent = INGRESS;
    tc->tcm_info = TC_H_MAKE(PRIORITY << 16, htons(ETH_P_ALL));
    mnl_attr_put_strz(nlh, TCA_KIND, "u32");
    options = mnl_attr_nest_start(nlh, TCA_OPTIONS);
    put_match_all(nlh);
    put_redirect(nlh, to);
    mnl_attr_nest_end(nlh, options);
    return transact(kp, nlh, NULL, NULL);
}

static int
delete_filter(struct kernel_path *kp, int ifindex)
{
    struct tcmsg *tc;
    struct nlmsghdr *nlh = begin_tc(kp, RTM_DELTFILTER, NLM_F_ACK, ifindex,
                                    &tc);

    tc->tcm_parent = INGRESS;
    tc->tcm_info = TC_H_MAKE(PRIORITY << 16, htons(ETH_P_ALL));
    return transact(kp, nlh, NULL, NULL);
}

struct filters {
    int ours, others;
};

static int
count_filter(const struct nlmsghdr *nlh, void *filters_)
{
    const struct tcmsg *tc = mnl_nlmsg_get_payload(nlh);
    struct filters *filters = filters_;

    if (nlh->nlmsg_type == RTM_NEWTFILTER) {
        if (tc->tcm_info >> 16 == PRIORITY) {
            filters->ours++;
        } else {
            filters->others++;
        }
    }
    return MNL_CB_OK;
}

static int
count_filters(struct kernel_path *kp, int ifindex, struct filters *filters)
{
    struct tcmsg *tc;
    struct nlmsghdr *nlh = begin_tc(kp, RTM_GETTFILTER, NLM_F_DUMP, ifindex,
                                    &tc);

    *filters = (struct filters) { 0, 0 };
    tc->tcm_parent = INGRESS;
    return transact(kp, nlh, count_filter, filters);
}

static bool
is_there(struct kernel_path *kp, int ifindex)
{
    struct filters filters;

    return !count_filters(kp, ifindex, &filters) && filters.ours;
}

/* Stores 0 for an interface that does not exist.  Returns the errno of the
 * first that does not. */
static int
find_both(struct kernel_path *kp, const char *iface, const char *other,
          int ifindex[2])
{
    int error = find(kp, iface, &ifindex[0]);
    int error2 = find(kp, other, &ifindex[1]);

    return error ? error : error2;
}

bool
kernel_path_is_up(struct kernel_path *kp, const char *iface,
                  const char *other)
{
    int ifindex[2];

    return (!find_both(kp, iface, other, ifindex)
            && is_there(kp, ifindex[0]) && is_there(kp, ifindex[1]));
}

/* Undoes what kernel_path_raise() did to one interface, as far as it did. */
static int
clear(struct kernel_path *kp, int ifindex)
{
    struct filters filters;
    int error;

    if (!is_there(kp, ifindex)) {
        return 0;
    }
    error = delete_filter(kp, ifindex);
    if (!error) {
        error = set_promiscuous(kp, ifindex, false);
    }
    if (!error && !count_filters(kp, ifindex, &filters) && !filters.others) {
        error = change_qdisc(kp, ifindex, false);
    }
    return error;
}

/* What is missing is no error: then there is nothing to take down. */
int
kernel_path_lower(struct kernel_path *kp, const char *iface,
                  const char *other)
{
    int ifindex[2], error = 0;

    find_both(kp, iface, other, ifindex);
    for (int i = 0; i < 2; i++) {
        int e = ifindex[i] ? clear(kp, ifindex[i]) : 0;

        error = error ? error : e;
    }
    return error;
}

static int
join(struct kernel_path *kp, int from, int to)
{
    int error = change_qdisc(kp, from, true);

    if (!error) {
        error = set_promiscuous(kp, from, true);
    }
    return error ? error : add_filter(kp, from, to);
}

/* After a failure nothing of it is left. */
int
kernel_path_raise(struct kernel_path *kp, const char *iface,
                  const char *other)
{
    int ifindex[2], error;

    if (kernel_path_is_up(kp, iface, other)) {
        return 0;
    }
    kernel_path_lower(kp, iface, other);
    error = find_both(kp, iface, other, ifindex);
    if (!error) {
        error = join(kp, ifindex[0], ifindex[1]);
    }
    if (!error) {
        error = join(kp, ifindex[1], ifindex[0]);
    }
    if (error) {
        kernel_path_lower(kp, iface, other);
    }
    return error;
}
