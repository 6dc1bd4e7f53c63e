/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/tc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "shim/ports/route-socket.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-put.h"
#include "wire/shim-protocol.h"

/* Last, since it has macros with names of openvswitch/json.h. */
#include "base/json-check.h"

VLOG_DEFINE_THIS_MODULE(tc);

#define CHECK_MS 1000           /* Between checks of the interfaces. */
#define DEFAULT_MIN_SHARE (SHIM_MIN_SHARE_UNIT / 50)

#define QUANTUM 60000
#define TICK_NS                                       \
    64 /* Unit of HTB's times, as in /proc/net/psched \
        * of every kernel since 2.6.30. */

/* Configuration of an interface, compared with a plan. */
struct tc_state {
    const struct tc_plan *plan;
    int ifindex;
    int mtu;
    bool ours;   /* This module has created the root qdisc. */
    bool others; /* Another program has configured it. */

    /* Number of classes, queues and filters as planned, and of all filters. */
    unsigned int classes_right, queues_right, filters_right, n_filters;
};

bool
tc_filter_of(const struct tc_plan *plan, int i, struct tc_filter *f)
{
    int level = i % SHIM_N_LEVELS;
    uint32_t dscp = plan->dscps[level];

    if (i == TC_N_FILTERS - 1) {
        *f = (struct tc_filter){ ETH_P_ARP, 0, 0, SHIM_LEVEL_CONTROL };
        return true;
    } else if (i < SHIM_N_LEVELS) {
        *f = (struct tc_filter){ ETH_P_IP, 63u << 18, dscp << 18, level };
    } else {
        *f = (struct tc_filter){ ETH_P_IPV6, 63u << 22, dscp << 22, level };
    }
    return dscp <= 63;
}

/* Returns the time that 'bytes' take at 'bps', in ticks of HTB. */
static uint32_t
ticks(uint64_t bytes, uint64_t bps)
{
    double n = bytes * 8e9 / bps / TICK_NS;

    return n < UINT32_MAX ? n : UINT32_MAX;
}

struct tc_class
tc_class_of(const struct tc_plan *plan, int mtu, int level)
{
    uint64_t rate = plan->rate_bps;
    uint64_t min_rate = (double) rate * plan->min_share / SHIM_MIN_SHARE_UNIT;

    /* 250 us at the rate, but at least two packets: HTB counts whole packets
     * and would otherwise be late at each of them. */
    uint64_t two = 2 * (mtu + ETH_HLEN);
    uint64_t burst = MAX(rate / 8 / 4000, two);

    if (level < 0) {
        return (struct tc_class){ .id = TC_LINK_CLASS,
                                  .parent = TC_ROOT,
                                  .rate_bps = rate,
                                  .ceil_bps = rate,
                                  .burst = burst,
                                  .ceil_burst = burst };
    }
    return (struct tc_class){ .id = TC_LEVEL_CLASS(level),
                              .parent = TC_LINK_CLASS,
                              .rate_bps =
                                  MIN(MAX(min_rate, TC_MIN_RATE_BPS), rate),
                              .ceil_bps = rate,
                              .priority = level,
                              .burst = two,
                              .ceil_burst = burst };
}

struct tc_htb_opt
tc_class_options(const struct tc_class *c)
{
    return (struct tc_htb_opt){
        .rate = { .rate = MIN(c->rate_bps / 8, UINT32_MAX),
                  .linklayer = TC_LINKLAYER_ETHERNET },
        .ceil = { .rate = MIN(c->ceil_bps / 8, UINT32_MAX),
                  .linklayer = TC_LINKLAYER_ETHERNET },
        .buffer = ticks(c->burst, c->rate_bps),
        .cbuffer = ticks(c->ceil_burst, c->ceil_bps),
        .quantum = QUANTUM,
        .prio = c->priority,
    };
}

static bool
is_kind(const struct nlmsghdr *nlh, const char *kind)
{
    return !strcmp(route_attr_string(route_attr(nlh, TCA_KIND)), kind);
}

static int
handle_link(const struct nlmsghdr *nlh, void *state_)
{
    const struct ifinfomsg *link = mnl_nlmsg_get_payload(nlh);
    struct tc_state *state = state_;

    state->ifindex = link->ifi_index;
    state->mtu = route_attr_u32(route_attr(nlh, IFLA_MTU), 0);
    return MNL_CB_OK;
}

static int
handle_qdisc(const struct nlmsghdr *nlh, void *state_)
{
    const struct tcmsg *tc = mnl_nlmsg_get_payload(nlh);
    struct tc_state *state = state_;

    if (tc->tcm_ifindex != state->ifindex) {
        return MNL_CB_OK; /* The dump covers all interfaces. */
    }
    if (tc->tcm_parent == TC_H_ROOT) {
        state->ours = tc->tcm_handle == TC_ROOT && is_kind(nlh, "htb");
        state->others = tc->tcm_handle && !state->ours;
    }
    for (int level = 0; level < SHIM_N_LEVELS; level++) {
        if (tc->tcm_parent == TC_LEVEL_CLASS(level)
            && tc->tcm_handle == TC_LEVEL_QUEUE(level)
            && is_kind(nlh, "bfifo")) {
            state->queues_right++;
        }
    }
    return MNL_CB_OK;
}

/* Returns a rate in bytes per second.  The kernel reports a rate that does not
 * fit into 32 bits in 'rate64' only. */
static uint64_t
whole_rate(const struct nlattr *rate64, const struct tc_ratespec *rate)
{
    uint64_t whole = rate->rate;

    route_attr_copy(rate64, &whole, sizeof whole);
    return whole;
}

/* Returns true if the kernel's class 'tc' with 'options' equals 'c'. */
static bool
class_is_right(const struct tc_class *c, const struct tcmsg *tc,
               const struct nlattr *options)
{
    const struct nlattr *rate64 = route_attr_in(options, TCA_HTB_RATE64);
    const struct nlattr *ceil64 = route_attr_in(options, TCA_HTB_CEIL64);
    struct tc_htb_opt want = tc_class_options(c), is;

    return (tc->tcm_handle == c->id
            && route_attr_copy(route_attr_in(options, TCA_HTB_PARMS), &is,
                               sizeof is)
            && whole_rate(rate64, &is.rate) == c->rate_bps / 8
            && whole_rate(ceil64, &is.ceil) == c->ceil_bps / 8
            && is.buffer == want.buffer && is.cbuffer == want.cbuffer
            && (c->id == TC_LINK_CLASS || is.prio == want.prio));
}

static int
handle_class(const struct nlmsghdr *nlh, void *state_)
{
    const struct tcmsg *tc = mnl_nlmsg_get_payload(nlh);
    const struct nlattr *options = route_attr(nlh, TCA_OPTIONS);
    struct tc_state *state = state_;

    for (int level = -1; level < SHIM_N_LEVELS; level++) {
        struct tc_class c = tc_class_of(state->plan, state->mtu, level);

        state->classes_right += class_is_right(&c, tc, options);
    }
    return MNL_CB_OK;
}

/* What selects the packets of a filter. */
struct match {
    struct tc_u32_sel sel;
    struct tc_u32_key key;
};

static bool
filter_is_right(const struct tc_filter *f, const struct nlattr *options)
{
    struct match match;

    return (route_attr_copy(route_attr_in(options, TCA_U32_SEL), &match,
                            sizeof match)
            && match.sel.nkeys == 1 && match.key.mask == htonl(f->mask)
            && match.key.val == htonl(f->value) && !match.key.off
            && route_attr_u32(route_attr_in(options, TCA_U32_CLASSID), 0)
                   == TC_LEVEL_CLASS(f->level));
}

static int
handle_filter(const struct nlmsghdr *nlh, void *state_)
{
    const struct tcmsg *tc = mnl_nlmsg_get_payload(nlh);
    const struct nlattr *options = route_attr(nlh, TCA_OPTIONS);
    struct tc_state *state = state_;
    uint32_t i = (tc->tcm_info >> 16) - 1;
    struct tc_filter f;

    if (!route_attr_in(options, TCA_U32_SEL) && is_kind(nlh, "u32")) {
        return MNL_CB_OK; /* A hash table of filters, not a filter. */
    }
    state->n_filters++;
    if (i < TC_N_FILTERS && tc_filter_of(state->plan, i, &f)
        && ntohs(tc->tcm_info & 0xffff) == f.protocol
        && filter_is_right(&f, options)) {
        state->filters_right++;
    }
    return MNL_CB_OK;
}

static int
link_inspect(struct route_socket *rs, const char *iface,
             const struct tc_plan *plan, struct tc_state *state)
{
    int error;

    *state = (struct tc_state){ .plan = plan };
    error = route_socket_get_link(rs, iface, handle_link, state);
    if (!error) {
        error = route_socket_list_tc(rs, RTM_GETQDISC, state->ifindex, 0,
                                     handle_qdisc, state);
    }
    if (!error && state->ours) {
        error = route_socket_list_tc(rs, RTM_GETTCLASS, state->ifindex, 0,
                                     handle_class, state);
    }
    if (!error && state->ours) {
        error = route_socket_list_tc(rs, RTM_GETTFILTER, state->ifindex,
                                     TC_ROOT, handle_filter, state);
    }
    return error;
}

/* Queue limit of a level: the windows of several connections, so that waiting
 * packets are not dropped. */
#define QUEUE_BYTES 1000000

static bool
classes_are_right(const struct tc_state *state)
{
    return (state->classes_right == SHIM_N_LEVELS + 1
            && state->queues_right == SHIM_N_LEVELS);
}

static bool
filters_are_right(const struct tc_state *state)
{
    unsigned int n = 0;
    struct tc_filter f;

    for (int i = 0; i < TC_N_FILTERS && state->plan->ordered; i++) {
        n += tc_filter_of(state->plan, i, &f);
    }
    return state->n_filters == n && (!n || state->filters_right == n);
}

static bool
is_right(const struct tc_state *state)
{
    return state->ours && classes_are_right(state) && filters_are_right(state);
}

/* Begins a request about what 'parent' has, with the kind unless that is
 * NULL. */
static struct nlmsghdr *
begin(struct route_socket *rs, uint16_t type, uint16_t flags, int ifindex,
      uint32_t parent, uint32_t handle, const char *kind)
{
    const struct tcmsg tc = { .tcm_ifindex = ifindex,
                              .tcm_parent = parent,
                              .tcm_handle = handle };
    struct nlmsghdr *nlh =
        route_socket_begin_tc(rs, type, NLM_F_ACK | flags, &tc);

    if (kind) {
        mnl_attr_put_strz(nlh, TCA_KIND, kind);
    }
    return nlh;
}

static int
write_root(struct route_socket *rs, int ifindex)
{
    const struct tc_htb_glob glob = { .version = 3,
                                      .rate2quantum = 1000,
                                      .defcls = TC_H_MIN(TC_LEVEL_CLASS(
                                          SHIM_LEVEL_DEFAULT)) };
    struct nlmsghdr *nlh = begin(rs, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL,
                                 ifindex, TC_H_ROOT, TC_ROOT, "htb");
    struct nlattr *options = mnl_attr_nest_start(nlh, TCA_OPTIONS);

    mnl_attr_put(nlh, TCA_HTB_INIT, sizeof glob, &glob);
    mnl_attr_nest_end(nlh, options);
    return route_socket_transact(rs, nlh, NULL, NULL);
}

/* Creates a class, or changes the existing one. */
static int
write_class(struct route_socket *rs, int ifindex, const struct tc_class *c)
{
    const struct tc_htb_opt opt = tc_class_options(c);
    struct nlmsghdr *nlh = begin(rs, RTM_NEWTCLASS, NLM_F_CREATE, ifindex,
                                 c->parent, c->id, "htb");
    struct nlattr *options = mnl_attr_nest_start(nlh, TCA_OPTIONS);

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
    struct nlmsghdr *nlh =
        begin(rs, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, ifindex,
              TC_LEVEL_CLASS(level), TC_LEVEL_QUEUE(level), "bfifo");

    mnl_attr_put(nlh, TCA_OPTIONS, sizeof opt, &opt);
    return route_socket_transact(rs, nlh, NULL, NULL);
}

/* Creates or changes all classes and queues, which keep their packets. */
static int
write_classes(struct route_socket *rs, const struct tc_state *state)
{
    int error = 0;

    for (int level = -1; level < SHIM_N_LEVELS && !error; level++) {
        const struct tc_class c = tc_class_of(state->plan, state->mtu, level);

        error = write_class(rs, state->ifindex, &c);
        if (!error && level >= 0) {
            error = write_queue(rs, state->ifindex, level);
        }
    }
    return error;
}

static int
write_filter(struct route_socket *rs, int ifindex, int i,
             const struct tc_filter *f)
{
    struct nlmsghdr *nlh = begin(rs, RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL,
                                 ifindex, TC_ROOT, 0, "u32");
    struct tcmsg *tc = mnl_nlmsg_get_payload(nlh);
    const struct match match = {
        .sel = { .flags = TC_U32_TERMINAL, .nkeys = 1 },
        .key = { .mask = htonl(f->mask), .val = htonl(f->value) }
    };
    struct nlattr *options = mnl_attr_nest_start(nlh, TCA_OPTIONS);

    tc->tcm_info = TC_H_MAKE((i + 1u) << 16, htons(f->protocol));
    mnl_attr_put_u32(nlh, TCA_U32_CLASSID, TC_LEVEL_CLASS(f->level));
    mnl_attr_put(nlh, TCA_U32_SEL, sizeof match, &match);
    mnl_attr_nest_end(nlh, options);
    return route_socket_transact(rs, nlh, NULL, NULL);
}

/* Replaces all filters.  Packets that match no filter meanwhile use the
 * default level and are not lost. */
static int
write_filters(struct route_socket *rs, const struct tc_state *state)
{
    const struct tc_plan *plan = state->plan;
    int error = 0;

    if (state->n_filters) {
        error = route_socket_transact(
            rs, begin(rs, RTM_DELTFILTER, 0, state->ifindex, TC_ROOT, 0, NULL),
            NULL, NULL);
    }
    for (int i = 0; i < TC_N_FILTERS && plan->ordered && !error; i++) {
        struct tc_filter f;

        if (tc_filter_of(plan, i, &f)) {
            error = write_filter(rs, state->ifindex, i, &f);
        }
    }
    return error;
}

/* Changes what differs from the plan.  Returns EBUSY if another program has
 * configured the root qdisc. */
static int
link_write(struct route_socket *rs, const struct tc_state *state)
{
    int error = (state->others ? EBUSY
                 : state->ours ? 0
                               : write_root(rs, state->ifindex));

    if (!error && !classes_are_right(state)) {
        error = write_classes(rs, state);
    }
    if (!error && !filters_are_right(state)) {
        error = write_filters(rs, state);
    }
    return error;
}

/* Removes the queues that this module has created, if any. */
static int
link_remove(struct route_socket *rs, const char *iface)
{
    const struct tc_plan plan = { .rate_bps = TC_MIN_RATE_BPS };
    struct tc_state state;
    int error = link_inspect(rs, iface, &plan, &state);

    if (error || !state.ours) {
        return error;
    }
    return route_socket_transact(
        rs,
        begin(rs, RTM_DELQDISC, 0, state.ifindex, TC_H_ROOT, TC_ROOT, NULL),
        NULL, NULL);
}

/* Interfaces. */

struct tc {
    struct route_socket *rs; /* NULL if it could not be opened, or without
                              * interfaces. */
    struct tc_iface *ifaces;
    size_t n_ifaces;
    struct tc_plan plan; /* Without a rate. */
    bool has_plan;       /* Before that the queues of a previous agent
                          * stay. */
    long long next;      /* time_msec() of the next check. */
};

char *
tc_iface_parse(const char *text, struct tc_iface *iface)
{
    const char *colon = strrchr(text, ':');
    size_t n = colon ? colon - text : 0;
    uint64_t rate = colon ? json_rate_parse(colon + 1) : 0;

    if (!n || n >= sizeof iface->name || memchr(text, '/', n) || !rate) {
        return xasprintf(
            "\"%s\"; expected an interface of 1 to %d characters, a colon "
            "and " JSON_RATE_RULE,
            text, IFNAMSIZ - 1);
    }
    memset(iface, 0, sizeof *iface);
    memcpy(iface->name, text, n);
    iface->rate_bps = rate;
    return NULL;
}

struct tc *
tc_create(const struct tc_iface *ifaces, size_t n)
{
    struct tc *tc = xzalloc(sizeof *tc);
    int error = n ? route_socket_open(-1, &tc->rs) : 0;

    if (error) {
        VLOG_ERR("the queues of interfaces are not managed (%s)",
                 ovs_strerror(error));
    }
    tc->ifaces = xmemdup(ifaces, n * sizeof *ifaces);
    tc->n_ifaces = n;
    for (size_t i = 0; i < n; i++) {
        tc->ifaces[i].error = error;
    }
    return tc;
}

void
tc_destroy(struct tc *tc)
{
    for (size_t i = 0; tc->rs && i < tc->n_ifaces; i++) {
        link_remove(tc->rs, tc->ifaces[i].name);
    }
    route_socket_close(tc->rs);
    free(tc->ifaces);
    free(tc);
}

void
tc_set(struct tc *tc, long long until, uint32_t min_share,
       const uint8_t dscps[SHIM_N_LEVELS])
{
    struct tc_plan plan;

    memset(&plan, 0, sizeof plan);
    plan.ordered = until > time_msec();
    plan.min_share =
        (min_share == SHIM_MIN_SHARE_DEFAULT ? DEFAULT_MIN_SHARE : min_share);
    memcpy(plan.dscps, dscps, sizeof plan.dscps);
    if (!tc->has_plan || memcmp(&plan, &tc->plan, sizeof plan)) {
        memcpy(&tc->plan, &plan, sizeof plan);
        tc->has_plan = true;
        tc->next = 0;
    }
}

/* Inspects an interface, corrects what differs from the plan, and inspects it
 * again: only the kernel's state counts. */
static int
check_iface(struct tc *tc, const struct tc_iface *iface)
{
    struct tc_plan plan = tc->plan;
    struct tc_state state;
    int error;

    plan.rate_bps = iface->rate_bps;
    error = link_inspect(tc->rs, iface->name, &plan, &state);
    if (error || is_right(&state)) {
        return error;
    }
    VLOG_INFO("%s: %s", iface->name, state.ours
              ? "changing queues" : "creating queues");
    error = link_write(tc->rs, &state);
    if (!error) {
        error = link_inspect(tc->rs, iface->name, &plan, &state);
    }
    return error ? error : is_right(&state) ? 0 : EAGAIN;
}

static const char *
error_to_string(int error)
{
    return (error == EBUSY ? "another program has configured its queues, only "
                             "the kernel's default is replaced"
            : error == EAGAIN ? "the kernel's state differs from what was "
                                "written"
            : error == EPERM ? "CAP_NET_ADMIN is missing"
            : ovs_strerror(error));
}

void
tc_run(struct tc *tc)
{
    long long now = time_msec();

    if (!tc->rs || !tc->has_plan || now < tc->next) {
        return;
    }
    tc->next = now + CHECK_MS;
    for (size_t i = 0; i < tc->n_ifaces; i++) {
        struct tc_iface *iface = &tc->ifaces[i];
        int error = check_iface(tc, iface);

        if (error && error != iface->error) {
            VLOG_WARN("%s: no queues: %s", iface->name,
                      error_to_string(error));
        }
        iface->error = error;
    }
}

void
tc_wait(const struct tc *tc)
{
    if (tc->rs && tc->has_plan) {
        poll_timer_wait_until(tc->next);
    }
}

struct json *
tc_to_json(const struct tc *tc)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < tc->n_ifaces; i++) {
        const struct tc_iface *iface = &tc->ifaces[i];
        int error = iface->error;
        struct json *json = json_object_create();

        json_object_put_string(json, "iface", iface->name);
        json_put_integer(json, "rate_bps", iface->rate_bps);
        json_object_put_string(json, "state", error ? "failed" : "in sync");
        json_object_put_string(json, "reason",
                               error ? error_to_string(error) : "");
        json_array_add(array, json);
    }
    return array;
}
