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
#include <string.h>

#include <libmnl/libmnl.h>

#include "shim/ports/route-socket.h"

#define PRIORITY 0x5363         /* Identifies the filters of the bypass. */
#define INGRESS_QDISC 0xffff0000

/* Parent of filters, for the qdiscs clsact and ingress. */
#define INGRESS TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)

/* Frames for the host have its address and not the interface's, so the
 * interface must be promiscuous, as it is while a shim has it open. */
static int
set_promiscuous(struct route_socket *rs, int ifindex, bool on)
{
    struct nlmsghdr *nlh = route_socket_begin(rs, RTM_NEWLINK, NLM_F_ACK);
    struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof *ifi);

    ifi->ifi_index = ifindex;
    ifi->ifi_flags = on ? IFF_PROMISC : 0;
    ifi->ifi_change = IFF_PROMISC;
    return route_socket_transact(rs, nlh, NULL, NULL);
}

/* Adds or removes the qdisc for the filters.  An existing one, ingress or
 * clsact, is used. */
static int
change_qdisc(struct route_socket *rs, int ifindex, bool make)
{
    const struct tcmsg tc = {
        .tcm_ifindex = ifindex, .tcm_parent = TC_H_INGRESS,
        .tcm_handle = INGRESS_QDISC
    };
    struct nlmsghdr *nlh = route_socket_begin_tc(
        rs, make ? RTM_NEWQDISC : RTM_DELQDISC,
        make ? NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL : NLM_F_ACK, &tc);
    int error;

    if (make) {
        mnl_attr_put_strz(nlh, TCA_KIND, "ingress");
    }
    error = route_socket_transact(rs, nlh, NULL, NULL);
    return make && error == EEXIST ? 0 : error;
}

static void
put_redirect(struct nlmsghdr *nlh, int to)
{
    struct tc_mirred mirred = {
        .action = TC_ACT_STOLEN, .eaction = TCA_EGRESS_REDIR, .ifindex = to
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

static struct nlmsghdr *
begin_filter(struct route_socket *rs, uint16_t type, uint16_t flags,
             int ifindex)
{
    const struct tcmsg tc = {
        .tcm_ifindex = ifindex, .tcm_parent = INGRESS,
        .tcm_info = TC_H_MAKE(PRIORITY << 16, htons(ETH_P_ALL))
    };

    return route_socket_begin_tc(rs, type, NLM_F_ACK | flags, &tc);
}

static int
add_filter(struct route_socket *rs, int from, int to)
{
    struct nlmsghdr *nlh = begin_filter(rs, RTM_NEWTFILTER,
                                        NLM_F_CREATE | NLM_F_EXCL, from);
    struct nlattr *options;

    mnl_attr_put_strz(nlh, TCA_KIND, "u32");
    options = mnl_attr_nest_start(nlh, TCA_OPTIONS);
    put_match_all(nlh);
    put_redirect(nlh, to);
    mnl_attr_nest_end(nlh, options);
    return route_socket_transact(rs, nlh, NULL, NULL);
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
count_filters(struct route_socket *rs, int ifindex, struct filters *filters)
{
    *filters = (struct filters) { 0, 0 };
    return route_socket_list_tc(rs, RTM_GETTFILTER, ifindex, INGRESS,
                                count_filter, filters);
}

static bool
has_filter(struct route_socket *rs, int ifindex)
{
    struct filters filters;

    return !count_filters(rs, ifindex, &filters) && filters.ours;
}

/* Stores the indexes of both interfaces, 0 for a missing one.  Returns 0 or
 * the errno of the first missing one. */
static int
find_both(struct route_socket *rs, const char *iface, const char *other,
          int ifindex[2])
{
    int error = route_socket_find(rs, iface, &ifindex[0]);
    int error2 = route_socket_find(rs, other, &ifindex[1]);

    return error ? error : error2;
}

bool
kernel_path_is_up(struct route_socket *rs, const char *iface,
                  const char *other)
{
    int ifindex[2];

    return (!find_both(rs, iface, other, ifindex)
            && has_filter(rs, ifindex[0]) && has_filter(rs, ifindex[1]));
}

/* Removes what kernel_path_raise() has added to one interface. */
static int
lower_one(struct route_socket *rs, int ifindex)
{
    struct filters filters;
    int error;

    if (!has_filter(rs, ifindex)) {
        return 0;
    }
    error = route_socket_transact(
        rs, begin_filter(rs, RTM_DELTFILTER, 0, ifindex), NULL, NULL);
    if (!error) {
        error = set_promiscuous(rs, ifindex, false);
    }
    if (!error && !count_filters(rs, ifindex, &filters) && !filters.others) {
        error = change_qdisc(rs, ifindex, false);
    }
    return error;
}

/* A missing interface or filter is no error. */
int
kernel_path_lower(struct route_socket *rs, const char *iface,
                  const char *other)
{
    int ifindex[2], error = 0;

    find_both(rs, iface, other, ifindex);
    for (int i = 0; i < 2; i++) {
        int e = ifindex[i] ? lower_one(rs, ifindex[i]) : 0;

        error = error ? error : e;
    }
    return error;
}

static int
redirect(struct route_socket *rs, int from, int to)
{
    int error = change_qdisc(rs, from, true);

    if (!error) {
        error = set_promiscuous(rs, from, true);
    }
    return error ? error : add_filter(rs, from, to);
}

/* After an error, the bypass is removed completely. */
int
kernel_path_raise(struct route_socket *rs, const char *iface,
                  const char *other)
{
    int ifindex[2], error;

    if (kernel_path_is_up(rs, iface, other)) {
        return 0;
    }
    kernel_path_lower(rs, iface, other);
    error = find_both(rs, iface, other, ifindex);
    if (!error) {
        error = redirect(rs, ifindex[0], ifindex[1]);
    }
    if (!error) {
        error = redirect(rs, ifindex[1], ifindex[0]);
    }
    if (error) {
        kernel_path_lower(rs, iface, other);
    }
    return error;
}
