/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/bpf/uplink-queues.h"

#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "agent/actuate/tc-link.h"
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
    bool has_ours; /* The root is the one of tc-link.h. */
    bool has_mq;   /* The root is mq: its leaves count. */
    bool differs;  /* Some of what counts has no map, or another one. */
    char kind[16]; /* Of the qdisc with 'bands', else "". */
    uint8_t bands[N_PRIORITIES]; /* By priority; 0 is served first. */
};

/* Returns the payload of attribute 'type' among the 'size' bytes at 'data', or
 * NULL.  Stores its size in '*sizep'. */
static const void *
find_attr(const void *data, size_t size, uint16_t type, size_t *sizep)
{
    const struct nlattr *attr;

    *sizep = 0;
    mnl_attr_for_each_payload(data, size)
    {
        if (mnl_attr_get_type(attr) == type) {
            *sizep = mnl_attr_get_payload_len(attr);
            return mnl_attr_get_payload(attr);
        }
    }
    return NULL;
}

/* Reads the map of ets, which has an attribute for each priority. */
static bool
read_ets(const void *options, size_t size, uint8_t bands[N_PRIORITIES])
{
    const struct nlattr *attr;
    size_t n = 0;

    options = find_attr(options, size, TCA_ETS_PRIOMAP, &size);
    mnl_attr_for_each_payload(options, size)
    {
        if (n < N_PRIORITIES) {
            bands[n++] = mnl_attr_get_u8(attr);
        }
    }
    return n == N_PRIORITIES;
}

/* Reads the map of a qdisc of this kind.  Returns false if it has none. */
static bool
read_bands(const char *kind, const void *options, size_t size,
           uint8_t bands[N_PRIORITIES])
{
    const struct tc_mqprio_qopt *mqprio = options;
    const struct tc_prio_qopt *prio = options;

    if (!strcmp(kind, "ets")) {
        return read_ets(options, size, bands);
    } else if (!strcmp(kind, "mqprio") && size >= sizeof *mqprio) {
        for (int i = 0; i < N_PRIORITIES; i++) {
            bands[i] = mqprio->num_tc - 1 - mqprio->prio_tc_map[i];
        }
        return true;
    } else if (!strcmp(kind, "fq")) {
        prio = find_attr(options, size, FQ_PRIOMAP, &size);
    } else if (strcmp(kind, "prio") && strcmp(kind, "pfifo_fast")) {
        return false;
    }
    if (size >= sizeof *prio) {
        memcpy(bands, prio->priomap, N_PRIORITIES);
    }
    return size >= sizeof *prio;
}

/* Notes a qdisc whose queues count. */
static void
see_queues(struct seen *s, const char *kind, const void *options, size_t size)
{
    uint8_t bands[N_PRIORITIES];

    if (!read_bands(kind, options, size, bands)) {
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
    const char *attrs = mnl_nlmsg_get_payload_offset(nlh, sizeof *tc);
    size_t size = (const char *) mnl_nlmsg_get_payload_tail(nlh) - attrs;
    size_t kind_size, options_size;
    const char *kind = find_attr(attrs, size, TCA_KIND, &kind_size);
    const void *options = find_attr(attrs, size, TCA_OPTIONS, &options_size);
    struct seen *s = seen;

    if (tc->tcm_ifindex != s->ifindex || !kind_size
        || kind[kind_size - 1]) { /* The dump covers all interfaces. */
        return MNL_CB_OK;
    }
    if (tc->tcm_parent == TC_H_ROOT) {
        s->has_root = true;
        s->root = tc->tcm_handle;
        s->has_mq = !strcmp(kind, "mq");
        s->has_ours = s->root == TC_ROOT && !strcmp(kind, "htb");
        if (!s->has_mq) {
            see_queues(s, kind, options, options_size);
        }
    } else if (s->has_mq && TC_H_MAJ(tc->tcm_parent) == s->root) {
        see_queues(s, kind, options, options_size);
    }
    return MNL_CB_OK;
}

/* Notes the interface below a VLAN, or a port. */
static int
see_link(const struct nlmsghdr *nlh, void *seen)
{
    const struct ifinfomsg *link = mnl_nlmsg_get_payload(nlh);
    const char *attrs = mnl_nlmsg_get_payload_offset(nlh, sizeof *link);
    size_t size = (const char *) mnl_nlmsg_get_payload_tail(nlh) - attrs, n;
    struct seen *s = seen;
    const void *info = find_attr(attrs, size, IFLA_LINKINFO, &n);
    const char *kind = find_attr(info, n, IFLA_INFO_KIND, &n);
    bool is_vlan = n && !kind[n - 1] && !strcmp(kind, "vlan");
    const int *index =
        find_attr(attrs, size, is_vlan ? IFLA_LINK : IFLA_MASTER, &n);

    if (n == sizeof *index && !s->below) {
        if (is_vlan && link->ifi_index == s->ifindex) {
            s->below = *index;
        } else if (!is_vlan && *index == s->ifindex) {
            s->below = link->ifi_index;
        }
    }
    return MNL_CB_OK;
}

/* Asks about an interface, and then about the one below, until there are
 * queues. */
static int
look(struct route_socket *rs, int ifindex, struct seen *s)
{
    for (int depth = 0; depth < MAX_DEPTH && ifindex; depth++) {
        const struct tcmsg tc = { .tcm_ifindex = ifindex };
        struct nlmsghdr *nlh = route_socket_begin_tc(
            rs, RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, &tc);
        int error;

        *s = (struct seen){ .ifindex = ifindex };
        error = route_socket_transact(rs, nlh, see_qdisc, s);
        if (error || s->has_root) {
            return error;
        }
        nlh = route_socket_begin(rs, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP);
        mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
        error = route_socket_transact(rs, nlh, see_link, s);
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
