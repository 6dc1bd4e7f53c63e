/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/ports/kernel-path.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_mirred.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include <libmnl/libmnl.h>

#include "shim/ports/route-socket.h"

#define PRIORITY 0x5363         /* Identifies the filters of the bypass. */
#define INGRESS_QDISC 0xffff0000

/* Parent of filters, for the qdiscs clsact and ingress. */
#define INGRESS TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)

struct kernel_path {
    struct route_socket *rs;
};

int
kernel_path_open(int netns, struct kernel_path **kpp)
{
    struct kernel_path *kp = calloc(1, sizeof *kp);
    int error = kp ? route_socket_open(netns, &kp->rs) : ENOMEM;

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
        route_socket_close(kp->rs);
        free(kp);
    }
}

/* Frames for the host have its address and not the interface's, so the
 * interface must be promiscuous, as it is while a shim has it open. */
static int
set_promiscuous(struct kernel_path *kp, int ifindex, bool on)
{
    struct nlmsghdr *nlh = route_socket_begin(kp->rs, RTM_NEWLINK, NLM_F_ACK);
    struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof *ifi);

    ifi->ifi_index = ifindex;
    ifi->ifi_flags = on ? IFF_PROMISC : 0;
    ifi->ifi_change = IFF_PROMISC;
    return route_socket_transact(kp->rs, nlh, NULL, NULL);
}

/* Adds or removes the qdisc for the filters.  An existing one, ingress or
 * clsact, is used. */
static int
change_qdisc(struct kernel_path *kp, int ifindex, bool make)
{
    const struct tcmsg tc = {
        .tcm_ifindex = ifindex,
        .tcm_parent = TC_H_INGRESS,
        .tcm_handle = INGRESS_QDISC,
    };
    struct nlmsghdr *nlh = route_socket_begin_tc(
        kp->rs, make ? RTM_NEWQDISC : RTM_DELQDISC,
        make ? NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL : NLM_F_ACK, &tc);
    int error;

    if (make) {
        mnl_attr_put_strz(nlh, TCA_KIND, "ingress");
    }
    error = route_socket_transact(kp->rs, nlh, NULL, NULL);
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

/* Matches every frame: one key with an empty mask. */
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

/* Returns the header of requests about the filter of an interface. */
static struct tcmsg
filter_header(int ifindex)
{
    return (struct tcmsg) {
        .tcm_ifindex = ifindex,
        .tcm_parent = INGRESS,
        .tcm_info = TC_H_MAKE(PRIORITY << 16, htons(ETH_P_ALL)),
    };
}

static int
add_filter(struct kernel_path *kp, int from, int to)
{
    const struct tcmsg tc = filter_header(from);
    struct nlmsghdr *nlh = route_socket_begin_tc(
        kp->rs, RTM_NEWTFILTER, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &tc);
    struct nlattr *options;

    mnl_attr_put_strz(nlh, TCA_KIND, "u32");
    options = mnl_attr_nest_start(nlh, TCA_OPTIONS);
    put_match_all(nlh);
    put_redirect(nlh, to);
    mnl_attr_nest_end(nlh, options);
    return route_socket_transact(kp->rs, nlh, NULL, NULL);
}

static int
delete_filter(struct kernel_path *kp, int ifindex)
{
    const struct tcmsg tc = filter_header(ifindex);
    struct nlmsghdr *nlh = route_socket_begin_tc(kp->rs, RTM_DELTFILTER,
                                                 NLM_F_ACK, &tc);

    return route_socket_transact(kp->rs, nlh, NULL, NULL);
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
    const struct tcmsg tc = { .tcm_ifindex = ifindex, .tcm_parent = INGRESS };
    struct nlmsghdr *nlh = route_socket_begin_tc(kp->rs, RTM_GETTFILTER,
                                                 NLM_F_DUMP, &tc);

    *filters = (struct filters) { 0, 0 };
    return route_socket_transact(kp->rs, nlh, count_filter, filters);
}

static bool
has_filter(struct kernel_path *kp, int ifindex)
{
    struct filters filters;

    return !count_filters(kp, ifindex, &filters) && filters.ours;
}

/* Stores the indexes of both interfaces, 0 for a missing one.  Returns 0 or
 * the errno of the first missing one. */
static int
find_both(struct kernel_path *kp, const char *iface, const char *other,
          int ifindex[2])
{
    int error = route_socket_find(kp->rs, iface, &ifindex[0]);
    int error2 = route_socket_find(kp->rs, other, &ifindex[1]);

    return error ? error : error2;
}

bool
kernel_path_is_up(struct kernel_path *kp, const char *iface,
                  const char *other)
{
    int ifindex[2];

    return (!find_both(kp, iface, other, ifindex)
            && has_filter(kp, ifindex[0]) && has_filter(kp, ifindex[1]));
}

/* Removes what kernel_path_raise() has added to one interface. */
static int
lower_one(struct kernel_path *kp, int ifindex)
{
    struct filters filters;
    int error;

    if (!has_filter(kp, ifindex)) {
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

/* A missing interface or filter is no error. */
int
kernel_path_lower(struct kernel_path *kp, const char *iface,
                  const char *other)
{
    int ifindex[2], error = 0;

    find_both(kp, iface, other, ifindex);
    for (int i = 0; i < 2; i++) {
        int e = ifindex[i] ? lower_one(kp, ifindex[i]) : 0;

        error = error ? error : e;
    }
    return error;
}

static int
redirect(struct kernel_path *kp, int from, int to)
{
    int error = change_qdisc(kp, from, true);

    if (!error) {
        error = set_promiscuous(kp, from, true);
    }
    return error ? error : add_filter(kp, from, to);
}

/* After an error, the bypass is removed completely. */
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
        error = redirect(kp, ifindex[0], ifindex[1]);
    }
    if (!error) {
        error = redirect(kp, ifindex[1], ifindex[0]);
    }
    if (error) {
        kernel_path_lower(kp, iface, other);
    }
    return error;
}
