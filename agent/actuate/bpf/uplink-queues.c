/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/bpf/uplink-queues.h"

#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "agent/actuate/tc.h"
#include "shim/ports/route-socket.h"
#include "util.h"

#define MAX_DEPTH 4 /* A VLAN of a bond of cards, and one more. */

/* Of linux/pkt_sched.h since 6.7. */
#define FQ_PRIOMAP 16

#define N_PRIORITIES (TC_PRIO_MAX + 1)

/* What is known of an interface. */
struct seen {
    int ifindex;
    int below;     /* Index of the interface below, or 0. */
    uint32_t root; /* Handle, valid with 'has_root'. */
    bool has_root;
    bool has_ours; /* The root is the one of tc.h. */
    bool has_mq;   /* The root is mq: its leaves count. */
    bool differs;  /* Some of what counts has no map, or another one. */
    char kind[16]; /* Of the qdisc with 'bands', else "". */
    uint8_t bands[N_PRIORITIES]; /* By priority; 0 is served first. */
};

/* Reads the map of ets, which has an attribute for each priority. */
static bool
read_ets(const struct nlattr *map, uint8_t bands[N_PRIORITIES])
{
    const struct nlattr *attr;
    size_t n = 0;

    if (map) {
        mnl_attr_for_each_nested(attr, map)
        {
            if (n < N_PRIORITIES) {
                bands[n++] = mnl_attr_get_u8(attr);
            }
        }
    }
    return n == N_PRIORITIES;
}

/* Reads the map of a qdisc of this kind.  Returns false if it has none. */
static bool
read_bands(const char *kind, const struct nlattr *options,
           uint8_t bands[N_PRIORITIES])
{
    struct tc_mqprio_qopt mqprio;
    struct tc_prio_qopt prio;

    if (!strcmp(kind, "ets")) {
        return read_ets(route_attr_in(options, TCA_ETS_PRIOMAP), bands);
    } else if (!strcmp(kind, "mqprio")
               && route_attr_copy(options, &mqprio, sizeof mqprio)) {
        for (int i = 0; i < N_PRIORITIES; i++) {
            bands[i] = mqprio.num_tc - 1 - mqprio.prio_tc_map[i];
        }
        return true;
    } else if (!strcmp(kind, "fq")) {
        options = route_attr_in(options, FQ_PRIOMAP);
    } else if (strcmp(kind, "prio") && strcmp(kind, "pfifo_fast")) {
        return false;
    }
    if (!route_attr_copy(options, &prio, sizeof prio)) {
        return false;
    }
    memcpy(bands, prio.priomap, N_PRIORITIES);
    return true;
}

/* Notes a qdisc whose queues count. */
static void
see_queues(struct seen *s, const char *kind, const struct nlattr *options)
{
    uint8_t bands[N_PRIORITIES];

    if (!read_bands(kind, options, bands)) {
        s->differs = true;
    } else if (!s->kind[0]) {
        ovs_strlcpy(s->kind, kind, sizeof s->kind);
        memcpy(s->bands, bands, sizeof s->bands);
    } else if (memcmp(s->bands, bands, sizeof s->bands)) {
        s->differs = true;
    }
}

static int
see_qdisc(const struct nlmsghdr *nlh, void *seen)
{
    const struct tcmsg *tc = mnl_nlmsg_get_payload(nlh);
    const char *kind = route_attr_string(route_attr(nlh, TCA_KIND));
    const struct nlattr *options = route_attr(nlh, TCA_OPTIONS);
    struct seen *s = seen;

    if (tc->tcm_ifindex != s->ifindex || !*kind) {
        return MNL_CB_OK; /* The dump covers all interfaces. */
    }
    if (tc->tcm_parent == TC_H_ROOT) {
        s->has_root = true;
        s->root = tc->tcm_handle;
        s->has_mq = !strcmp(kind, "mq");
        s->has_ours = s->root == TC_ROOT && !strcmp(kind, "htb");
        if (!s->has_mq) {
            see_queues(s, kind, options);
        }
    } else if (s->has_mq && TC_H_MAJ(tc->tcm_parent) == s->root) {
        see_queues(s, kind, options);
    }
    return MNL_CB_OK;
}

/* Notes the interface below a VLAN, or a port. */
static int
see_link(const struct nlmsghdr *nlh, void *seen)
{
    const struct ifinfomsg *link = mnl_nlmsg_get_payload(nlh);
    bool is_vlan = !strcmp(route_link_kind(nlh), "vlan");
    int index =
        route_attr_u32(route_attr(nlh, is_vlan ? IFLA_LINK : IFLA_MASTER), 0);
    struct seen *s = seen;

    if (!s->below && is_vlan && link->ifi_index == s->ifindex) {
        s->below = index;
    } else if (!s->below && !is_vlan && index == s->ifindex) {
        s->below = link->ifi_index;
    }
    return MNL_CB_OK;
}

/* Asks about an interface, and then about the one below, until there are
 * queues. */
static int
look(struct route_socket *rs, int ifindex, struct seen *s)
{
    for (int depth = 0; depth < MAX_DEPTH && ifindex; depth++) {
        int error;

        *s = (struct seen){ .ifindex = ifindex };
        error =
            route_socket_list_tc(rs, RTM_GETQDISC, ifindex, 0, see_qdisc, s);
        if (error || s->has_root) {
            return error;
        }
        error = route_socket_list_links(rs, see_link, s);
        if (error) {
            return error;
        }
        ifindex = s->below;
    }
    return 0;
}

/* Stores the lowest priority of each band that has one, in the order of the
 * bands.  Returns their number. */
static int
first_priorities(const uint8_t bands[N_PRIORITIES],
                 uint32_t priorities[N_PRIORITIES])
{
    int n = 0;

    for (int band = 0; band <= UINT8_MAX; band++) {
        const uint8_t *at = memchr(bands, band, N_PRIORITIES);

        if (at) {
            priorities[n++] = at - bands;
        }
    }
    return n;
}

/* Divides the levels among the queues with these priorities. */
static void
divide(const uint32_t *priorities, uint8_t levels, struct uplink_queues *q)
{
    const int last = SHIM_LEVEL_DEFAULT;
    int n_levels = 0, i = 0;

    levels |= 1u << last;
    for (int level = 0; level <= last; level++) {
        n_levels += levels >> level & 1;
    }
    for (int level = 0; level <= last; level++) {
        int at = n_levels > q->n ? i * q->n / n_levels : i;
        bool is_used = level < last && levels >> level & 1;

        q->priority[level] = priorities[is_used ? at : q->n - 1];
        i += is_used;
    }
}

int
uplink_queues_find(struct route_socket *rs, int ifindex, uint8_t levels,
                   struct uplink_queues *q)
{
    uint32_t priorities[N_PRIORITIES];
    struct seen s = { .ifindex = 0 };
    int error = look(rs, ifindex, &s);

    memset(q, 0, sizeof *q);
    if (s.has_ours) {
        q->n = SHIM_N_LEVELS;
        ovs_strlcpy(q->kind, "htb", sizeof q->kind);
        for (int level = 0; level < SHIM_N_LEVELS; level++) {
            q->priority[level] = TC_LEVEL_CLASS(level);
        }
    } else if (s.kind[0] && !s.differs) {
        q->n = first_priorities(s.bands, priorities);
        ovs_strlcpy(q->kind, s.kind, sizeof q->kind);
        divide(priorities, levels, q);
    }
    return error;
}
