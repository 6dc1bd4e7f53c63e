/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/tc-link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include <libmnl/libmnl.h>

#include "agent/actuate/tc-classes.h"
#include "shim/ports/route-socket.h"
#include "util.h"

/* What one level may have queued: the windows of some connections that wait,
 * whose packets would otherwise be lost while they do. */
#define QUEUE_BYTES 1000000

#define ALL_LEVELS ((1u << TC_LEVELS) - 1)
#define ALL_FILTERS ((1u << TC_N_FILTERS) - 1)

static bool
classes_are_right(const struct tc_seen *seen)
{
    return (seen->link_right && seen->levels_right == ALL_LEVELS
            && seen->queues == ALL_LEVELS);
}

static bool
filters_are_right(const struct tc_seen *seen, const struct tc_plan *plan)
{
    return (plan->ordered
            ? seen->filters_right == ALL_FILTERS
              && seen->n_filters == TC_N_FILTERS
            : !seen->n_filters);
}

bool
tc_seen_is_right(const struct tc_seen *seen, const struct tc_plan *plan)
{
    return (seen->ours && classes_are_right(seen)
            && filters_are_right(seen, plan));
}

static int
make_root(struct route_socket *rs, int ifindex)
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

/* Makes a class, or changes the one that there is. */
static int
make_class(struct route_socket *rs, int ifindex, const struct tc_class *c)
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
make_queue(struct route_socket *rs, int ifindex, int level)
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

/* Makes what is not right of the classes and queues. */
static int
make_classes(struct route_socket *rs, const struct tc_seen *seen,
             const struct tc_plan *plan)
{
    struct tc_class c = tc_class_of(plan, seen->mtu, -1);
    int error = (seen->link_right ? 0
                 : make_class(rs, seen->ifindex, &c));

    for (int level = 0; level < TC_LEVELS && !error; level++) {
        if (!(seen->levels_right & 1u << level)) {
            c = tc_class_of(plan, seen->mtu, level);
            error = make_class(rs, seen->ifindex, &c);
        }
        if (!error && !(seen->queues & 1u << level)) {
            error = make_queue(rs, seen->ifindex, level);
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
make_filter(struct route_socket *rs, int ifindex, int i)
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

/* Begins with the filters anew: what none of them chooses has the default
 * level meanwhile, and is not lost. */
static int
make_filters(struct route_socket *rs, const struct tc_seen *seen,
             const struct tc_plan *plan)
{
    int error = seen->n_filters ? remove_filters(rs, seen->ifindex) : 0;

    for (int i = 0; i < TC_N_FILTERS && plan->ordered && !error; i++) {
        error = make_filter(rs, seen->ifindex, i);
    }
    return error;
}

int
tc_link_write(struct route_socket *rs, const struct tc_seen *seen,
              const struct tc_plan *plan)
{
    int error = (seen->others ? EBUSY
                 : seen->ours ? 0 : make_root(rs, seen->ifindex));

    if (!error && !classes_are_right(seen)) {
        error = make_classes(rs, seen, plan);
    }
    if (!error && !filters_are_right(seen, plan)) {
        error = make_filters(rs, seen, plan);
    }
    return error;
}

int
tc_link_remove(struct route_socket *rs, const char *iface)
{
    const struct tc_plan plan = { .rate_bps = TC_MIN_RATE_BPS };
    struct tc_seen seen;
    struct nlmsghdr *nlh;
    struct tcmsg *tc;
    int error = tc_link_look(rs, iface, &plan, &seen);

    if (error || !seen.ours) {
        return error;
    }
    nlh = route_socket_begin_tc(rs, RTM_DELQDISC, NLM_F_ACK, seen.ifindex,
                                &tc);
    tc->tcm_parent = TC_H_ROOT;
    tc->tcm_handle = TC_ROOT;
    return route_socket_transact(rs, nlh, NULL, NULL);
}
