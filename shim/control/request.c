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
fill_hello(const struct server_config *c, struct shim_hello *hello)
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
fill_slots(const struct server_config *c, struct shim_slot *slots)
{
    size_t n = 0;

    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        n += job_slots_get(c->slots, i, &slots[n]);
    }
    return n * sizeof *slots;
}

static size_t
fill_stats(const struct server_config *c, void *body)
{
    struct shim_stats *stats = body;
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
fill_bins(const struct server_config *c, const char *request, void *body)
{
    struct shim_bins *head = body;
    struct shim_bin *bins = (struct shim_bin *) (head + 1);
    struct shim_bins_since since;
    size_t n = 0;

    memcpy(&since, request, sizeof since);
    memset(head, 0, sizeof *head);
    head->slot = since.slot;
    if (c->bursts) {
        n = bursts_bins(c->bursts, since.slot, c->now(), since.since,
                        &head->first, bins);
    }
    return sizeof *head + n * sizeof *bins;
}

static size_t
fill_ports(const struct server_config *c, struct shim_ports *ports)
{
    memset(ports, 0, sizeof *ports);
    if (c->get_ports) {
        c->get_ports(c->aux, ports);
    }
    return sizeof *ports;
}

/* As many as one message has room for. */
static size_t
fill_flows(const struct server_config *c, struct shim_flow *flows)
{
    const size_t max = SHIM_MAX_MESSAGE - sizeof(struct shim_msg);
    uint64_t cursor = 0;

    return flow_table_list(c->flows, &cursor, flows,
                           max / sizeof *flows) * sizeof *flows;
}

static size_t
fill_page(const struct server_config *c, const char *request, char *body)
{
    const size_t max = SHIM_MAX_MESSAGE - sizeof(struct shim_msg)
                       - sizeof(struct shim_cursor);
    struct shim_flow *flows = (void *) (body + sizeof(struct shim_cursor));
    struct shim_cursor cursor;
    uint32_t n;

    memcpy(&cursor, request, sizeof cursor);
    n = flow_table_list(c->flows, &cursor.next, flows,
                        max / sizeof *flows);
    memcpy(body, &cursor, sizeof cursor);
    return sizeof cursor + n * sizeof *flows;
}

/* Another job gets a slot: what was before is not its. */
static void
forget_bursts(const struct server_config *c, uint16_t slot)
{
    struct shim_slot old;

    if (c->bursts && !job_slots_get(c->slots, slot, &old)) {
        bursts_reset(c->bursts, slot);
    }
}

static int
set_slots(const struct server_config *c, const char *body, size_t size)
{
    int error = 0;

    for (size_t at = 0; at < size && !error; at += sizeof(struct shim_slot)) {
        struct shim_slot slot;

        memcpy(&slot, body + at, sizeof slot);
        forget_bursts(c, slot.slot);
        error = job_slots_set(c->slots, &slot);
    }
    return error;
}

static int
clear_slots(const struct server_config *c, const char *body, size_t size)
{
    int error = 0;

    for (size_t at = 0; at < size && !error; at += sizeof(uint16_t)) {
        uint16_t slot;

        memcpy(&slot, body + at, sizeof slot);
        error = job_slots_clear(c->slots, slot);
    }
    return error;
}

static int
add_flows(const struct server_config *c, const char *body, size_t size)
{
    int error = 0;

    for (size_t at = 0; at < size && !error; at += sizeof(struct shim_flow)) {
        struct shim_flow flow;

        memcpy(&flow, body + at, sizeof flow);
        error = flow_table_set(c->flows, &flow.key, flow.slot);
    }
    return error;
}

static int
delete_flows(const struct server_config *c, const char *body, size_t size)
{
    for (size_t at = 0; at < size; at += sizeof(struct shim_flow_key)) {
        struct shim_flow_key key;

        memcpy(&key, body + at, sizeof key);
        flow_table_delete(c->flows, &key);
    }
    return 0;
}

static int
take_lease(const struct server_config *c, const char *body)
{
    struct shim_lease lease;

    memcpy(&lease, body, sizeof lease);
    job_slots_lease(c->slots, c->now(), lease.ms,
                    lease.default_dscp);
    return 0;
}

static int
take_rate(const struct server_config *c, const char *body)
{
    struct shim_rate rate;

    memcpy(&rate, body, sizeof rate);
    c->set_rate(c->aux, rate.bps);
    return 0;
}

static int
take_guard(const struct server_config *c, const char *body)
{
    struct shim_guard guard;

    memcpy(&guard, body, sizeof guard);
    c->set_guard(c->aux, guard.share);
    return 0;
}

static int
take_congestion(const struct server_config *c, const char *body)
{
    struct shim_congestion congestion;

    memcpy(&congestion, body, sizeof congestion);
    c->set_congestion(c->aux, &congestion);
    return 0;
}

/* Does a request of 'type' ask for something? */
bool
request_asks(uint16_t type)
{
    return (type == SHIM_HELLO || type == SHIM_SLOT_LIST
            || type == SHIM_FLOW_LIST || type == SHIM_FLOW_PAGE
            || type == SHIM_STATS || type == SHIM_PORTS
            || type == SHIM_BINS);
}

/* Does such a request, with the body 'request' that is known to be good, and
 * fills in 'body', the reply's.  Returns its size. */
size_t
request_ask(const struct server_config *c, uint16_t type, const char *request,
            void *body)
{
    switch (type) {
    case SHIM_HELLO:
        return fill_hello(c, body);
    case SHIM_SLOT_LIST:
        return fill_slots(c, body);
    case SHIM_FLOW_LIST:
        return fill_flows(c, body);
    case SHIM_FLOW_PAGE:
        return fill_page(c, request, body);
    case SHIM_STATS:
        return fill_stats(c, body);
    case SHIM_PORTS:
        return fill_ports(c, body);
    case SHIM_BINS:
        return fill_bins(c, request, body);
    default:
        return 0;
    }
}

/* Does a request that changes the shim's tables or settings, whose body is
 * known to be good.  Returns its status, EOPNOTSUPP if 'type' is none of
 * those. */
int
request_change(const struct server_config *c, uint16_t type,
               const char *body, size_t size)
{
    switch (type) {
    case SHIM_LEASE:
        return take_lease(c, body);
    case SHIM_SLOT_SET:
        return set_slots(c, body, size);
    case SHIM_SLOT_CLEAR:
        return clear_slots(c, body, size);
    case SHIM_FLOW_ADD:
        return add_flows(c, body, size);
    case SHIM_FLOW_DELETE:
        return delete_flows(c, body, size);
    case SHIM_RATE:
        return take_rate(c, body);
    case SHIM_GUARD:
        return take_guard(c, body);
    case SHIM_CONGESTION:
        return take_congestion(c, body);
    default:
        return EOPNOTSUPP;
    }
}
