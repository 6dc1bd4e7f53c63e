/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include <libmnl/libmnl.h>

#include "agent/actuate/tc-classes.h"
#include "agent/actuate/tc-link.h"
#include "shim/ports/route-socket.h"

struct look {
    const struct tc_plan *plan;
    struct tc_seen *seen;
};

static int
take_attr(const struct nlattr *attr, void *attrs_)
{
    const struct nlattr **attrs = attrs_;
    unsigned int type = mnl_attr_get_type(attr);

    if (type <= TCA_MAX) {
        attrs[type] = attr;
    }
    return MNL_CB_OK;
}

/* The attributes of a message, then those of its options; TCA_MAX is more than
 * either has. */
static void
take_attrs(const struct nlmsghdr *nlh, const struct nlattr *attrs[],
           const struct nlattr *options[])
{
    memset(attrs, 0, (TCA_MAX + 1) * sizeof *attrs);
    memset(options, 0, (TCA_MAX + 1) * sizeof *options);
    mnl_attr_parse(nlh, sizeof(struct tcmsg), take_attr, attrs);
    if (attrs[TCA_OPTIONS]) {
        mnl_attr_parse_nested(attrs[TCA_OPTIONS], take_attr, options);
    }
}

static bool
is_kind(const struct nlattr *attrs[], const char *kind)
{
    return attrs[TCA_KIND] && !strcmp(mnl_attr_get_str(attrs[TCA_KIND]),
                                      kind);
}

static int
see_link(const struct nlmsghdr *nlh, void *look_)
{
    struct look *look = look_;
    const struct nlattr *attr;

    mnl_attr_for_each (attr, nlh, sizeof(struct ifinfomsg)) {
        if (mnl_attr_get_type(attr) == IFLA_MTU) {
            look->seen->mtu = mnl_attr_get_u32(attr);
        }
    }
    return MNL_CB_OK;
}

static int
see_qdisc(const struct nlmsghdr *nlh, void *look_)
{
    const struct tcmsg *tc = mnl_nlmsg_get_payload(nlh);
    const struct nlattr *attrs[TCA_MAX + 1], *options[TCA_MAX + 1];
    struct tc_seen *seen = ((struct look *) look_)->seen;

    if (tc->tcm_ifindex != seen->ifindex) {
        return MNL_CB_OK;       /* Kernels dump all interfaces'. */
    }
    take_attrs(nlh, attrs, options);
    if (tc->tcm_parent == TC_H_ROOT) {
        seen->ours = tc->tcm_handle == TC_ROOT && is_kind(attrs, "htb");
        seen->others = tc->tcm_handle && !seen->ours;
    }
    for (int level = 0; level < TC_LEVELS; level++) {
        if (tc->tcm_parent == TC_LEVEL_CLASS(level)
            && tc->tcm_handle == TC_LEVEL_QUEUE(level)
            && is_kind(attrs, "bfifo")) {
            seen->queues |= 1u << level;
        }
    }
    return MNL_CB_OK;
}

/* Returns a rate in bytes per second: the kernel tells one of which 'rate'
 * has no room in 'rate64', and there alone. */
static uint64_t
whole_rate(const struct nlattr *rate64, const struct tc_ratespec *rate)
{
    return (rate64 && mnl_attr_get_payload_len(rate64) >= sizeof(uint64_t)
            ? mnl_attr_get_u64(rate64) : rate->rate);
}

/* Does the kernel's class, with these options, do what 'c' should? */
static bool
class_is_right(const struct tc_class *c, const struct tcmsg *tc,
               const struct nlattr *options[])
{
    struct tc_htb_opt want = tc_class_options(c), is;

    if (tc->tcm_handle != c->id || !options[TCA_HTB_PARMS]
        || mnl_attr_get_payload_len(options[TCA_HTB_PARMS]) < sizeof is) {
        return false;
    }
    memcpy(&is, mnl_attr_get_payload(options[TCA_HTB_PARMS]), sizeof is);
    return (whole_rate(options[TCA_HTB_RATE64], &is.rate) == c->rate_bps / 8
            && whole_rate(options[TCA_HTB_CEIL64], &is.ceil) == c->ceil_bps / 8
            && is.buffer == want.buffer && is.cbuffer == want.cbuffer
            && (c->id == TC_LINK_CLASS || is.prio == want.prio));
}

static int
see_class(const struct nlmsghdr *nlh, void *look_)
{
    const struct tcmsg *tc = mnl_nlmsg_get_payload(nlh);
    const struct nlattr *attrs[TCA_MAX + 1], *options[TCA_MAX + 1];
    struct look *look = look_;

    take_attrs(nlh, attrs, options);
    for (int level = -1; level < TC_LEVELS; level++) {
        struct tc_class c = tc_class_of(look->plan, look->seen->mtu, level);

        if (!class_is_right(&c, tc, options)) {
            continue;
        } else if (level < 0) {
            look->seen->link_right = true;
        } else {
            look->seen->levels_right |= 1u << level;
        }
    }
    return MNL_CB_OK;
}

static bool
filter_is_right(const struct tc_filter *f, const struct nlattr *options[])
{
    const struct tc_u32_sel *sel;

    if (!options[TCA_U32_SEL] || !options[TCA_U32_CLASSID]
        || mnl_attr_get_payload_len(options[TCA_U32_SEL])
           < sizeof *sel + sizeof *sel->keys) {
        return false;
    }
    sel = mnl_attr_get_payload(options[TCA_U32_SEL]);
    return (sel->nkeys == 1 && sel->keys[0].mask == htonl(f->mask)
            && sel->keys[0].val == htonl(f->value) && !sel->keys[0].off
            && mnl_attr_get_u32(options[TCA_U32_CLASSID])
               == TC_LEVEL_CLASS(f->level));
}

static int
see_filter(const struct nlmsghdr *nlh, void *look_)
{
    const struct tcmsg *tc = mnl_nlmsg_get_payload(nlh);
    const struct nlattr *attrs[TCA_MAX + 1], *options[TCA_MAX + 1];
    struct look *look = look_;
    uint32_t i = (tc->tcm_info >> 16) - 1;

    take_attrs(nlh, attrs, options);
    if (!options[TCA_U32_SEL] && is_kind(attrs, "u32")) {
        return MNL_CB_OK;       /* A table of filters, and no filter. */
    }
    look->seen->n_filters++;
    if (i < TC_N_FILTERS) {
        struct tc_filter f = tc_filter_of(i);

        if (ntohs(tc->tcm_info & 0xffff) == f.protocol
            && filter_is_right(&f, options)) {
            look->seen->filters_right |= 1u << i;
        }
    }
    return MNL_CB_OK;
}

static int
dump(struct route_socket *rs, uint16_t type, uint32_t parent, mnl_cb_t see,
     struct look *look)
{
    struct tcmsg *tc;
    struct nlmsghdr *nlh = route_socket_begin_tc(rs, type, NLM_F_DUMP,
                                                 look->seen->ifindex, &tc);

    tc->tcm_parent = parent;
    return route_socket_transact(rs, nlh, see, look);
}

static int
look_at_link(struct route_socket *rs, struct look *look)
{
    struct nlmsghdr *nlh = route_socket_begin(rs, RTM_GETLINK, NLM_F_ACK);
    struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof *ifi);

    ifi->ifi_index = look->seen->ifindex;
    return route_socket_transact(rs, nlh, see_link, look);
}

int
tc_link_look(struct route_socket *rs, const char *iface,
             const struct tc_plan *plan, struct tc_seen *seen)
{
    struct look look = { .plan = plan, .seen = seen };
    int error;

    memset(seen, 0, sizeof *seen);
    error = route_socket_find(rs, iface, &seen->ifindex);
    if (!error) {
        error = look_at_link(rs, &look);
    }
    if (!error) {
        error = dump(rs, RTM_GETQDISC, 0, see_qdisc, &look);
    }
    if (!error && seen->ours) {
        error = dump(rs, RTM_GETTCLASS, 0, see_class, &look);
    }
    if (!error && seen->ours) {
        error = dump(rs, RTM_GETTFILTER, TC_ROOT, see_filter, &look);
    }
    return error;
}
