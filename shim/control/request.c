/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/control/request.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "shim/control/server.h"
#include "shim/classify/bursts.h"
#include "shim/classify/flow-table.h"
#include "shim/classify/job-slot.h"

static size_t
get_hello(const struct server_config *c, struct shim_hello *hello)
{
    *hello = (struct shim_hello) {
        .boot_id = c->boot_id,
        .rate_bps = c->get_rate(c->aux),
        .mtu = c->mtu,
        .pid = getpid(),
        .n_slots = job_slots_count(c->slots),
        .n_flows = flow_table_count(c->flows),
        .max_flows = flow_table_max(c->flows),
        .lease_left_ms = job_slots_lease_left_ms(c->slots, c->now()),
    };
    return sizeof *hello;
}

static size_t
list_slots(const struct server_config *c, struct shim_slot *slots)
{
    size_t n = 0;

    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        n += job_slots_get(c->slots, i, &slots[n]);
    }
    return n * sizeof *slots;
}

static size_t
get_stats(const struct server_config *c, struct shim_stats *stats)
{
    struct shim_slot_stats *slots = (struct shim_slot_stats *) (stats + 1);
    uint64_t now = c->now();

    memset(stats, 0, sizeof *stats);
    c->get_stats(c->aux, stats);
    stats->boot_id = c->boot_id;
    stats->n_flows = flow_table_count(c->flows);
    stats->flows_refused = flow_table_n_refused(c->flows);
    stats->flows_aged = flow_table_n_aged(c->flows);
    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        struct shim_slot_stats *slot = &slots[stats->n_slot_stats];

        if (job_slots_stats(c->slots, i, now, slot)) {
            stats->n_slot_stats++;
            if (c->bursts) {
                bursts_get(c->bursts, i, BURSTS_TX, now, &slot->tx_bursts);
                bursts_get(c->bursts, i, BURSTS_RX, now, &slot->rx_bursts);
            }
        }
    }
    return sizeof *stats + stats->n_slot_stats * sizeof *slots;
}

static size_t
get_bins(const struct server_config *c, const struct shim_bins_since *since,
         struct shim_bins *head)
{
    struct shim_bin *bins = (struct shim_bin *) (head + 1);
    size_t n = 0;

    memset(head, 0, sizeof *head);
    head->slot = since->slot;
    if (c->bursts) {
        n = bursts_bins(c->bursts, since->slot, c->now(), since->since,
                        &head->first, bins);
    }
    return sizeof *head + n * sizeof *bins;
}

static size_t
get_ports(const struct server_config *c, struct shim_ports *ports)
{
    memset(ports, 0, sizeof *ports);
    if (c->get_ports) {
        c->get_ports(c->aux, ports);
    }
    return sizeof *ports;
}

/* Lists as many flows as fit into one message. */
static size_t
list_flows(const struct server_config *c, struct shim_flow *flows)
{
    const size_t max = SHIM_MAX_MESSAGE - sizeof(struct shim_msg);
    uint64_t cursor = 0;

    return flow_table_list(c->flows, &cursor, flows,
                           max / sizeof *flows) * sizeof *flows;
}

static size_t
list_flow_page(const struct server_config *c, const struct shim_cursor *from,
               struct shim_cursor *cursor)
{
    const size_t max = SHIM_MAX_MESSAGE - sizeof(struct shim_msg)
                       - sizeof *cursor;
    struct shim_flow *flows = (struct shim_flow *) (cursor + 1);

    *cursor = *from;
    return (sizeof *cursor
            + flow_table_list(c->flows, &cursor->next, flows,
                              max / sizeof *flows) * sizeof *flows);
}

/* Resets the bursts of 'slot' if it is free: they are the previous job's. */
static void
reset_bursts(const struct server_config *c, uint16_t slot)
{
    struct shim_slot old;

    if (c->bursts && !job_slots_get(c->slots, slot, &old)) {
        bursts_reset(c->bursts, slot);
    }
}

static int
set_slots(const struct server_config *c, const struct shim_slot *slots,
          size_t n)
{
    int error = 0;

    for (size_t i = 0; i < n && !error; i++) {
        reset_bursts(c, slots[i].slot);
        error = job_slots_set(c->slots, &slots[i]);
    }
    return error;
}

static int
clear_slots(const struct server_config *c, const uint16_t *slots, size_t n)
{
    int error = 0;

    for (size_t i = 0; i < n && !error; i++) {
        error = job_slots_clear(c->slots, slots[i]);
    }
    return error;
}

static int
add_flows(const struct server_config *c, const struct shim_flow *flows,
          size_t n)
{
    int error = 0;

    for (size_t i = 0; i < n && !error; i++) {
        error = flow_table_set(c->flows, &flows[i].key, flows[i].slot);
    }
    return error;
}

static void
delete_flows(const struct server_config *c, const struct shim_flow_key *keys,
             size_t n)
{
    for (size_t i = 0; i < n; i++) {
        flow_table_delete(c->flows, &keys[i]);
    }
}

static void
set_lease(const struct server_config *c, const struct shim_lease *lease)
{
    job_slots_lease(c->slots, c->now(), lease->ms, lease->default_dscp);
}

int
request_execute(const struct server_config *c, uint16_t type,
                const void *body, size_t size, void *reply,
                size_t *reply_size)
{
    switch (type) {
    case SHIM_HELLO:
        *reply_size = get_hello(c, reply);
        return 0;
    case SHIM_SLOT_LIST:
        *reply_size = list_slots(c, reply);
        return 0;
    case SHIM_FLOW_LIST:
        *reply_size = list_flows(c, reply);
        return 0;
    case SHIM_FLOW_PAGE:
        *reply_size = list_flow_page(c, body, reply);
        return 0;
    case SHIM_STATS:
        *reply_size = get_stats(c, reply);
        return 0;
    case SHIM_PORTS:
        *reply_size = get_ports(c, reply);
        return 0;
    case SHIM_BINS:
        *reply_size = get_bins(c, body, reply);
        return 0;
    case SHIM_LEASE:
        set_lease(c, body);
        return 0;
    case SHIM_SLOT_SET:
        return set_slots(c, body, size / sizeof(struct shim_slot));
    case SHIM_SLOT_CLEAR:
        return clear_slots(c, body, size / sizeof(uint16_t));
    case SHIM_FLOW_ADD:
        return add_flows(c, body, size / sizeof(struct shim_flow));
    case SHIM_FLOW_DELETE:
        delete_flows(c, body, size / sizeof(struct shim_flow_key));
        return 0;
    case SHIM_RATE:
        c->set_rate(c->aux, ((const struct shim_rate *) body)->bps);
        return 0;
    case SHIM_MIN_SHARE:
        c->set_min_share(c->aux,
                         ((const struct shim_min_share *) body)->share);
        return 0;
    case SHIM_CONGESTION:
        c->set_congestion(c->aux, body);
        return 0;
    default:
        return EOPNOTSUPP;
    }
}
