/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/tc-link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include <libmnl/libmnl.h>

#include "agent/actuate/tc-classes.h"
#include "shim/ports/route-socket.h"
#include "util.h"

struct inspection {
    const struct tc_plan *plan;
    struct tc_state *state;
};

static int
store_attr(const struct nlattr *attr, void *attrs_)
{
    const struct nlattr **attrs = attrs_;
    unsigned int type = mnl_attr_get_type(attr);

    if (type <= TCA_MAX) {
        attrs[type] = attr;
    }
    return MNL_CB_OK;
}

/* Stores the attributes of a message in 'attrs' and those of its options in
 * 'options'.  Neither has a type above TCA_MAX. */
static void
parse_attrs(const struct nlmsghdr *nlh, const struct nlattr *attrs[],
           const struct nlattr *options[])
{
    memset(attrs, 0, (TCA_MAX + 1) * sizeof *attrs);
    memset(options, 0, (TCA_MAX + 1) * sizeof *options);
    mnl_attr_parse(nlh, sizeof(struct tcmsg), store_attr, attrs);
    if (attrs[TCA_OPTIONS]) {
        mnl_attr_parse_nested(attrs[TCA_OPTIONS], store_attr, options);
    }
}

static bool
is_kind(const struct nlattr *attrs[], const char *kind)
{
    return attrs[TCA_KIND] && !strcmp(mnl_attr_get_str(attrs[TCA_KIND]),
                                      kind);
}

static int
handle_link(const struct nlmsghdr *nlh, void *in_)
{
    struct inspection *in = in_;
    const struct nlattr *attr;

    mnl_attr_for_each (attr, nlh, sizeof(struct ifinfomsg)) {
        if (mnl_attr_get_type(attr) == IFLA_MTU) {
            in->state->mtu = mnl_attr_get_u32(attr);
        }
    }
    return MNL_CB_OK;
}

static int
handle_qdisc(const struct nlmsghdr *nlh, void *in_)
{
    const struct tcmsg *tc = mnl_nlmsg_get_payload(nlh);
    const struct nlattr *attrs[TCA_MAX + 1], *options[TCA_MAX + 1];
    struct tc_state *state = ((struct inspection *) in_)->state;

    if (tc->tcm_ifindex != state->ifindex) {
        return MNL_CB_OK;       /* The dump covers all interfaces. */
    }
    parse_attrs(nlh, attrs, options);
    if (tc->tcm_parent == TC_H_ROOT) {
        state->ours = tc->tcm_handle == TC_ROOT && is_kind(attrs, "htb");
        state->others = tc->tcm_handle && !state->ours;
    }
    for (int level = 0; level < TC_LEVELS; level++) {
        if (tc->tcm_parent == TC_LEVEL_CLASS(level)
            && tc->tcm_handle == TC_LEVEL_QUEUE(level)
            && is_kind(attrs, "bfifo")) {
            state->queues |= 1u << level;
        }
    }
    return MNL_CB_OK;
}

/* Returns a rate in bytes per second.  The kernel reports a rate that does not
 * fit into 32 bits in 'rate64' only. */
static uint64_t
whole_rate(const struct nlattr *rate64, const struct tc_ratespec *rate)
{
    return (rate64 && mnl_attr_get_payload_len(rate64) >= sizeof(uint64_t)
            ? mnl_attr_get_u64(rate64) : rate->rate);
}

/* Returns true if the kernel's class 'tc' with 'options' equals 'c'. */
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
handle_class(const struct nlmsghdr *nlh, void *in_)
{
    const struct tcmsg *tc = mnl_nlmsg_get_payload(nlh);
    const struct nlattr *attrs[TCA_MAX + 1], *options[TCA_MAX + 1];
    struct inspection *in = in_;

    parse_attrs(nlh, attrs, options);
    for (int level = -1; level < TC_LEVELS; level++) {
        struct tc_class c = tc_class_of(in->plan, in->state->mtu, level);

        if (!class_is_right(&c, tc, options)) {
            continue;
        } else if (level < 0) {
            in->state->link_right = true;
        } else {
            in->state->levels_right |= 1u << level;
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
handle_filter(const struct nlmsghdr *nlh, void *in_)
{
    const struct tcmsg *tc = mnl_nlmsg_get_payload(nlh);
    const struct nlattr *attrs[TCA_MAX + 1], *options[TCA_MAX + 1];
    struct inspection *in = in_;
    uint32_t i = (tc->tcm_info >> 16) - 1;

    parse_attrs(nlh, attrs, options);
    if (!options[TCA_U32_SEL] && is_kind(attrs, "u32")) {
        return MNL_CB_OK;       /* A hash table of filters, not a filter. */
    }
    in->state->n_filters++;
    if (i < TC_N_FILTERS) {
        struct tc_filter f = tc_filter_of(i);

        if (ntohs(tc->tcm_info & 0xffff) == f.protocol
            && filter_is_right(&f, options)) {
            in->state->filters_right |= 1u << i;
        }
    }
    return MNL_CB_OK;
}

static int
dump_tc(struct route_socket *rs, uint16_t type, uint32_t parent,
        mnl_cb_t handle, struct inspection *in)
{
    struct tcmsg *tc;
    struct nlmsghdr *nlh = route_socket_begin_tc(rs, type, NLM_F_DUMP,
                                                 in->state->ifindex, &tc);

    tc->tcm_parent = parent;
    return route_socket_transact(rs, nlh, handle, in);
}

static int
read_link(struct route_socket *rs, struct inspection *in)
{
    struct nlmsghdr *nlh = route_socket_begin(rs, RTM_GETLINK, NLM_F_ACK);
    struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof *ifi);

    ifi->ifi_index = in->state->ifindex;
    return route_socket_transact(rs, nlh, handle_link, in);
}

int
tc_link_inspect(struct route_socket *rs, const char *iface,
             const struct tc_plan *plan, struct tc_state *state)
{
    struct inspection in = { .plan = plan, .state = state };
    int error;

    memset(state, 0, sizeof *state);
    error = route_socket_find(rs, iface, &state->ifindex);
    if (!error) {
        error = read_link(rs, &in);
    }
    if (!error) {
        error = dump_tc(rs, RTM_GETQDISC, 0, handle_qdisc, &in);
    }
    if (!error && state->ours) {
        error = dump_tc(rs, RTM_GETTCLASS, 0, handle_class, &in);
    }
    if (!error && state->ours) {
        error = dump_tc(rs, RTM_GETTFILTER, TC_ROOT, handle_filter, &in);
    }
    return error;
}

/* Queue limit of a level: the windows of several connections, so that waiting
 * packets are not dropped. */
#define QUEUE_BYTES 1000000

#define ALL_LEVELS ((1u << TC_LEVELS) - 1)
#define ALL_FILTERS ((1u << TC_N_FILTERS) - 1)

static bool
classes_are_right(const struct tc_state *state)
{
    return (state->link_right && state->levels_right == ALL_LEVELS
            && state->queues == ALL_LEVELS);
}

static bool
filters_are_right(const struct tc_state *state, const struct tc_plan *plan)
{
    return (plan->ordered
            ? state->filters_right == ALL_FILTERS
              && state->n_filters == TC_N_FILTERS
            : !state->n_filters);
}

bool
tc_state_is_right(const struct tc_state *state, const struct tc_plan *plan)
{
    return (state->ours && classes_are_right(state)
            && filters_are_right(state, plan));
}

static int
write_root(struct route_socket *rs, int ifindex)
{
    const struct tc_htb_glob glob = {
        .version = 3,
        .rate2quantum = 1000,
        .defcls = TC_H_MIN(TC_LEVEL_CLASS(TC_DEFAULT_LEVEL)),
    };
    struct tcmsg *tc;
    struct nlmsghdr *nlh = route_socket_begin_tc(
        rs, RTM_NEWQDISC, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, ifindex,
        &tc);
    struct nlattr *options;

    tc->tcm_parent = TC_H_ROOT;
    tc->tcm_handle = TC_ROOT;
    mnl_attr_put_strz(nlh, TCA_KIND, "htb");
    options = mnl_attr_nest_start(nlh, TCA_OPTIONS);
    mnl_attr_put(nlh, TCA_HTB_INIT, sizeof glob, &glob);
    mnl_attr_nest_end(nlh, options);
    return route_socket_transact(rs, nlh, NULL, NULL);
}

/* Creates a class, or changes the existing one. */
static int
write_class(struct route_socket *rs, int ifindex, const struct tc_class *c)
{
    const struct tc_htb_opt opt = tc_class_options(c);
    struct tcmsg *tc;
    struct nlmsghdr *nlh = route_socket_begin_tc(
        rs, RTM_NEWTCLASS, NLM_F_ACK | NLM_F_CREATE, ifindex, &tc);
    struct nlattr *options;

    tc->tcm_parent = c->parent;
    tc->tcm_handle = c->id;
    mnl_attr_put_strz(nlh, TCA_KIND, "htb");
    options = mnl_attr_nest_start(nlh, TCA_OPTIONS);
    mnl_attr_put_u64(nlh, TCA_HTB_RATE64, c->rate_bps / 8);
    mnl_attr_put_u64(nlh, TCA_HTB_CEIL64, c->ceil_bps / 8);
    mnl_attr_put(nlh, TCA_HTB_PARMS, sizeof opt, &opt);
    mnl_attr_nest_end(nlh, options);
    return route_socket_transact(rs, nlh, NULL, NULL);
}

static int
write_queue(struct route_socket *rs, int ifindex, int level)
{
    const struct tc_fifo_qopt opt = { .limit = QUEUE_BYTES };
    struct tcmsg *tc;
    struct nlmsghdr *nlh = route_socket_begin_tc(
        rs, RTM_NEWQDISC, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, ifindex,
        &tc);

    tc->tcm_parent = TC_LEVEL_CLASS(level);
    tc->tcm_handle = TC_LEVEL_QUEUE(level);
    mnl_attr_put_strz(nlh, TCA_KIND, "bfifo");
    mnl_attr_put(nlh, TCA_OPTIONS, sizeof opt, &opt);
    return route_socket_transact(rs, nlh, NULL, NULL);
}

/* Creates or changes the classes and queues that are not right. */
static int
write_classes(struct route_socket *rs, const struct tc_state *state,
             const struct tc_plan *plan)
{
    struct tc_class c = tc_class_of(plan, state->mtu, -1);
    int error = (state->link_right ? 0
                 : write_class(rs, state->ifindex, &c));

    for (int level = 0; level < TC_LEVELS && !error; level++) {
        if (!(state->levels_right & 1u << level)) {
            c = tc_class_of(plan, state->mtu, level);
            error = write_class(rs, state->ifindex, &c);
        }
        if (!error && !(state->queues & 1u << level)) {
            error = write_queue(rs, state->ifindex, level);
        }
    }
    return error;
}

static int
remove_filters(struct route_socket *rs, int ifindex)
{
    struct tcmsg *tc;
    struct nlmsghdr *nlh = route_socket_begin_tc(rs, RTM_DELTFILTER,
                                                 NLM_F_ACK, ifindex, &tc);

    tc->tcm_parent = TC_ROOT;
    return route_socket_transact(rs, nlh, NULL, NULL);
}

static int
write_filter(struct route_socket *rs, int ifindex, int i)
{
    const struct tc_filter f = tc_filter_of(i);
    struct {
        struct tc_u32_sel sel;
        struct tc_u32_key key;
    } match;
    struct tcmsg *tc;
    struct nlmsghdr *nlh = route_socket_begin_tc(
        rs, RTM_NEWTFILTER, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, ifindex,
        &tc);
    struct nlattr *options;

    memset(&match, 0, sizeof match);
    match.sel.flags = TC_U32_TERMINAL;
    match.sel.nkeys = 1;
    match.key.mask = htonl(f.mask);
    match.key.val = htonl(f.value);
    tc->tcm_parent = TC_ROOT;
    tc->tcm_info = TC_H_MAKE((i + 1u) << 16, htons(f.protocol));
    mnl_attr_put_strz(nlh, TCA_KIND, "u32");
    options = mnl_attr_nest_start(nlh, TCA_OPTIONS);
    mnl_attr_put_u32(nlh, TCA_U32_CLASSID, TC_LEVEL_CLASS(f.level));
    mnl_attr_put(nlh, TCA_U32_SEL, sizeof match, &match);
    mnl_attr_nest_end(nlh, options);
    return route_socket_transact(rs, nlh, NULL, NULL);
}

/* Replaces all filters.  Packets that match no filter meanwhile use the
 * default level and are not lost. */
static int
write_filters(struct route_socket *rs, const struct tc_state *state,
             const struct tc_plan *plan)
{
    int error = state->n_filters ? remove_filters(rs, state->ifindex) : 0;

    for (int i = 0; i < TC_N_FILTERS && plan->ordered && !error; i++) {
        error = write_filter(rs, state->ifindex, i);
    }
    return error;
}

int
tc_link_write(struct route_socket *rs, const struct tc_state *state,
              const struct tc_plan *plan)
{
    int error = (state->others ? EBUSY
                 : state->ours ? 0 : write_root(rs, state->ifindex));

    if (!error && !classes_are_right(state)) {
        error = write_classes(rs, state, plan);
    }
    if (!error && !filters_are_right(state, plan)) {
        error = write_filters(rs, state, plan);
    }
    return error;
}

int
tc_link_remove(struct route_socket *rs, const char *iface)
{
    const struct tc_plan plan = { .rate_bps = TC_MIN_RATE_BPS };
    struct tc_state state;
    struct nlmsghdr *nlh;
    struct tcmsg *tc;
    int error = tc_link_inspect(rs, iface, &plan, &state);

    if (error || !state.ours) {
        return error;
    }
    nlh = route_socket_begin_tc(rs, RTM_DELQDISC, NLM_F_ACK, state.ifindex,
                                &tc);
    tc->tcm_parent = TC_H_ROOT;
    tc->tcm_handle = TC_ROOT;
    return route_socket_transact(rs, nlh, NULL, NULL);
}
