/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/actuator.h"

#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/actuate/shim-tables.h"
#include "agent/actuate/tc.h"
#include "agent/identify/bpf/identity.h"
#include "base/clock.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/shash.h"
#include "openvswitch/vlog.h"
#include "shim/classify/bursts.h"
#include "shim/ports/route-socket.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(kernel);

/* Queues of an uplink. */

#define MAX_DEPTH 4 /* A VLAN, a bond, its cards, and one more. */

/* Of linux/pkt_sched.h since 6.7. */
#define FQ_PRIOMAP 16

#define N_PRIORITIES (TC_PRIO_MAX + 1)

/* Queues of an interface, as far as they are known. */
struct seen {
    int ifindex;
    int below;     /* Index of the interface below, or 0. */
    uint32_t root; /* Handle, valid with 'has_root'. */
    bool has_root;
    bool has_ours; /* The root is the one of tc.h. */
    bool has_mq;   /* The root is mq: its leaves count. */
    bool differs;  /* A qdisc with queues that count has no map, or a different
                    * one. */
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

/* Reads the map of a qdisc of this kind.  Returns false if the kind has no
 * map. */
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

/* Notes a qdisc with queues that count. */
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

/* Requests the qdiscs of an interface, and then of the interface below it,
 * until one has queues. */
static int
scan(struct route_socket *rs, int ifindex, struct seen *s)
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
    int error = scan(rs, ifindex, &s);

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

/* The actuator. */

#define COUNT_MS 200   /* Between readings of the counters. */
#define QUEUES_MS 1000 /* Between checks of the queues of uplinks. */

/* Time from the end of an agent to the end of its order, unless another agent
 * continues. */
#define HAND_OVER_NS 1500000000ull

/* Bursts of a slot. */
struct kernel_bursts {
    struct burst_train trains[2];
    uint64_t next; /* First bin that has not been counted. */
};

struct kernel_actuator {
    struct actuator base;
    struct identity *identity;
    struct kernel_config config;
    struct route_socket *rs; /* NULL if it could not be opened. */
    struct shash queues;     /* struct uplink_queues by uplink. */
    uint8_t levels;          /* As in struct actuator_wanted. */
    long long next_scan;     /* At the queues. */
    struct slot_changes changes;
    struct traffic counted;
    struct kernel_bursts *bursts[IDENTITY_SLOTS];
    long long next_count;
};

_Static_assert(IDENTITY_SLOTS == SHIM_MAX_SLOTS, "slots have one range");
_Static_assert(IDENTITY_BIN_NS == BURST_BIN, "bins have one size");
_Static_assert(IDENTITY_BINS == BURST_N_BINS, "bins have one range");
_Static_assert(IDENTITY_ORDER_LEVELS == SHIM_N_LEVELS
                   && IDENTITY_CONTROL_LEVEL == SHIM_LEVEL_CONTROL
                   && IDENTITY_DEFAULT_LEVEL == SHIM_LEVEL_DEFAULT,
               "levels are the same");

static struct kernel_actuator *
kernel_actuator_cast(const struct actuator *a)
{
    return CONTAINER_OF(a, struct kernel_actuator, base);
}

/* The clock of bins and of the lease, ns. */
static uint64_t
now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC_COARSE);
}

/* Rows. */

static void
write_row(struct kernel_actuator *k, const struct shim_slot *row)
{
    struct identity_row *to = &identity_rows(k->identity)[row->slot];
    struct identity_row new = { .dscp = row->dscp,
                                .level = row->level,
                                .has_control =
                                    row->level != SHIM_LEVEL_CONTROL
                                    && row->level != SHIM_LEVEL_DEFAULT,
                                .used = true };

    ovs_strlcpy(new.name, row->name, sizeof new.name);
    if (strcmp(to->name, new.name)) { /* Another job's counters. */
        struct identity_traffic *t = identity_traffic(k->identity);

        memset(&t[row->slot], 0, sizeof *t);
        free(k->bursts[row->slot]);
        k->bursts[row->slot] = NULL;
    }
    *to = new;
}

static void
write_rows(struct kernel_actuator *k)
{
    k->base.changed = false;
    slot_table_changes(&k->base.slots, &k->changes);
    for (size_t i = 0; i < k->changes.n_set; i++) {
        write_row(k, &k->changes.set[i]);
    }
    for (size_t i = 0; i < k->changes.n_clear; i++) {
        identity_rows(k->identity)[k->changes.clear[i]].used = false;
    }
}

/* Takes over the rows that the kernel has. */
static void
adopt_rows(struct kernel_actuator *k)
{
    const struct identity_row *rows = identity_rows(k->identity);
    struct shim_slot *adopted = xcalloc(IDENTITY_SLOTS, sizeof *adopted);
    size_t n = 0;

    for (uint16_t slot = 1; slot < IDENTITY_SLOTS; slot++) {
        if (rows[slot].used) {
            adopted[n] = (struct shim_slot){ .slot = slot,
                                             .level = rows[slot].level,
                                             .dscp = rows[slot].dscp };
            ovs_strlcpy(adopted[n++].name, rows[slot].name,
                        sizeof adopted->name);
        }
    }
    slot_table_adopt(&k->base.slots, adopted, n);
    free(adopted);
}

static void
kernel_set(struct actuator *a, const struct actuator_wanted *wanted)
{
    struct kernel_actuator *k = kernel_actuator_cast(a);
    struct identity_settings *s = identity_settings(k->identity);
    long long left = MAX(wanted->until - time_msec(), 0);

    s->default_dscp = wanted->default_dscp;
    s->control_dscp = wanted->control.dscp;
    s->level_dscps = wanted->control.levels;
    if (k->levels != wanted->levels) {
        k->levels = wanted->levels;
        k->next_scan = 0;
    }
    s->lease_until = left ? now_ns() + left * 1000000ull : 0;
}

/* Queues. */

/* Gives packets the priorities that the queues of an uplink know now. */
static void
scan_queues(const char *iface, int ifindex, void *k_)
{
    struct kernel_actuator *k = k_;
    struct uplink_queues new, *old = shash_find_data(&k->queues, iface);

    if (uplink_queues_find(k->rs, ifindex, k->levels, &new)) {
        return;
    }
    if (!old) {
        old = xcalloc(1, sizeof *old);
        shash_add(&k->queues, iface, old);
    }
    if (new.n && (new.n != old->n || strcmp(new.kind, old->kind))) {
        VLOG_INFO("%s: levels have %d queues of %s", iface, new.n, new.kind);
    } else if (!new.n && old->n) {
        VLOG_INFO("%s: levels have no queues, only switches order", iface);
    }
    *old = new;
    identity_set_priorities(k->identity, ifindex, new.n ? new.priority : NULL);
}

/* Queues are nothing to one that only counts. */
static bool
scans_queues(const struct kernel_actuator *k)
{
    return k->rs && identity_settings(k->identity)->mode != IDENTITY_COUNTS;
}

/* Counters. */

/* Returns the bytes of bin 'n' of a direction, 0 if it has none. */
static uint32_t
bytes_of_bin(const struct identity_traffic *t, int direction, uint64_t n)
{
    uint64_t bin = t->bins[direction][n % IDENTITY_BINS];

    return bin >> 32 == (n & UINT32_MAX) ? (uint32_t) bin : 0;
}

/* Counts and reports the bins of 'slot' that have ended before bin 'end'. */
static void
count_bins(struct kernel_actuator *k, uint16_t slot, const char *job,
           uint64_t end)
{
    const struct identity_traffic *t = &identity_traffic(k->identity)[slot];
    struct kernel_bursts *b = k->bursts[slot];
    struct shim_bin bins[IDENTITY_BINS];
    uint64_t first;
    size_t n = 0;

    if (!b) {
        b = k->bursts[slot] = xzalloc(sizeof *b);
        b->next = end - 1;
    }
    first = MAX(b->next, end - (IDENTITY_BINS - 1));
    for (uint64_t i = first; i < end; i++, n++) {
        bins[n] =
            (struct shim_bin){ bytes_of_bin(t, 0, i), bytes_of_bin(t, 1, i) };
        if (bins[n].tx) {
            burst_train_count(&b->trains[0], bins[n].tx, i * BURST_BIN);
        }
        if (bins[n].rx) {
            burst_train_count(&b->trains[1], bins[n].rx, i * BURST_BIN);
        }
    }
    b->next = end;
    if (n) {
        k->base.events->bins(job, first, bins, n, k->base.aux);
    }
}

/* Stores the counters of 'slot' in '*stats' and adds them to those of the
 * whole, in the form in which a shim has them. */
static void
take_slot(struct kernel_actuator *k, uint16_t slot, struct shim_stats *whole,
          struct shim_slot_stats *stats)
{
    const struct identity_traffic *t = &identity_traffic(k->identity)[slot];

    *stats =
        (struct shim_slot_stats){ .slot = slot,
                                  .level =
                                      identity_rows(k->identity)[slot].level,
                                  .tx_packets = t->tx_packets,
                                  .tx_bytes = t->tx_bytes,
                                  .rx_packets = t->rx_packets,
                                  .rx_bytes = t->rx_bytes };
    whole->tx_ip_bytes += t->tx_bytes;
    whole->tx_default_bytes += t->default_bytes;
}

/* Adds what an interface has sent and received, of whatever job or none, by
 * the kernel's own count.  RDMA passes a card without the kernel and is not in
 * it. */
static int
add_bytes(const struct nlmsghdr *nlh, void *whole_)
{
    struct rtnl_link_stats64 stats = { .tx_bytes = 0 };
    struct shim_stats *whole = whole_;

    /* A kernel may have fewer counters than these headers. */
    route_attr_copy(route_attr(nlh, IFLA_STATS64), &stats,
                    offsetof(struct rtnl_link_stats64, rx_errors));
    whole->tx_bytes += stats.tx_bytes;
    whole->rx_bytes += stats.rx_bytes;
    return MNL_CB_OK;
}

static void
count(struct kernel_actuator *k)
{
    struct shim_slot_stats *stats = xcalloc(IDENTITY_SLOTS, sizeof *stats);
    struct shim_stats whole = { .boot_id = 1 };
    uint64_t now = now_ns();
    size_t n = 0;

    for (uint16_t slot = 0; slot < IDENTITY_SLOTS; slot++) {
        const char *job = slot ? slot_table_name(&k->base.slots, slot) : NULL;

        if (job || !slot) {
            take_slot(k, slot, &whole, &stats[n++]);
        }
    }
    for (size_t i = 0; k->rs && i < k->config.n_uplinks; i++) {
        route_socket_get_link(k->rs, k->config.uplinks[i], add_bytes, &whole);
    }
    traffic_add_stats(&k->counted, &whole, stats, n, actuator_report_traffic,
                      &k->base);
    for (size_t i = 1; i < n; i++) {
        const char *job = slot_table_name(&k->base.slots, stats[i].slot);
        struct shim_burst_stats tx = { .bytes = 0 }, rx = { .bytes = 0 };

        count_bins(k, stats[i].slot, job, now / BURST_BIN);
        burst_train_get(&k->bursts[stats[i].slot]->trains[0], now, &tx);
        burst_train_get(&k->bursts[stats[i].slot]->trains[1], now, &rx);
        k->base.events->bursts(job, &tx, &rx, k->base.aux);
    }
    free(stats);
}

static void
kernel_run(struct actuator *a)
{
    struct kernel_actuator *k = kernel_actuator_cast(a);
    long long now = time_msec();

    if (k->base.changed) {
        write_rows(k);
        k->next_count = now; /* Counters of new slots begin at 0. */
    }
    if (scans_queues(k) && now >= k->next_scan) {
        k->next_scan = now + QUEUES_MS;
        identity_for_each_uplink(k->identity, scan_queues, k);
    }
    if (now >= k->next_count) {
        k->next_count = now + COUNT_MS;
        count(k);
    }
}

static void
kernel_wait(const struct actuator *a)
{
    const struct kernel_actuator *k = kernel_actuator_cast(a);

    poll_timer_wait_until(k->base.changed ? 0 : k->next_count);
    if (scans_queues(k)) {
        poll_timer_wait_until(k->next_scan);
    }
}

static void
kernel_get_status(const struct actuator *a, struct actuator_status *status)
{
    const struct kernel_actuator *k = kernel_actuator_cast(a);
    bool connected = !identity_is_blind(k->identity);

    *status =
        (struct actuator_status){ .connected = connected,
                                  .in_sync = connected && !k->base.changed,
                                  .rate_bps = k->config.rate_bps,
                                  .about = "",
                                  .totals = &k->counted.total };
}

static void
kernel_destroy(struct actuator *a)
{
    struct kernel_actuator *k = kernel_actuator_cast(a);
    struct identity_settings *s = identity_settings(k->identity);

    s->lease_until = MIN(s->lease_until, now_ns() + HAND_OVER_NS);
    route_socket_close(k->rs);
    shash_destroy_free_data(&k->queues);
    for (size_t i = 0; i < IDENTITY_SLOTS; i++) {
        free(k->bursts[i]);
    }
    slot_table_uninit(&k->base.slots);
    free(k);
}

static const struct actuator_class kernel_actuator_class = {
    .destroy = kernel_destroy,
    .run = kernel_run,
    .wait = kernel_wait,
    .set = kernel_set,
    .get_status = kernel_get_status,
};

struct actuator *
kernel_actuator_create(struct identity *identity,
                       const struct kernel_config *config,
                       const struct actuator_events *events, void *aux)
{
    struct kernel_actuator *k = xzalloc(sizeof *k);
    int error = route_socket_open(-1, &k->rs);

    if (error) {
        VLOG_WARN("cannot read the queues of uplinks, only switches order "
                  "(%s)",
                  ovs_strerror(error));
    }

    actuator_init(&k->base, &kernel_actuator_class, events, aux);
    k->base.has_numbers = true;
    k->identity = identity;
    k->config = *config;
    shash_init(&k->queues);
    adopt_rows(k);
    return &k->base;
}
