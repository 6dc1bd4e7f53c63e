/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/shim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "base/memory.h"
#include "shim/capture/tap.h"
#include "shim/cc/cc.h"
#include "shim/cc/takeover-state.h"
#include "shim/clock/clock.h"
#include "shim/control/server.h"
#include "shim/classify/bursts.h"
#include "shim/loop/egress.h"
#include "shim/classify/flow-table.h"
#include "shim/loop/forward.h"
#include "shim/classify/job-slot.h"
#include "shim/loop/lanes.h"
#include "shim/loop/loop.h"
#include "shim/classify/miss.h"
#include "shim/ports/port-driver.h"
#include "shim/ports/port.h"
#include "shim/takeover.h"

#define PAGE 4096               /* Bytes, of those that are not huge. */
#define TAP_BYTES (8u << 20)    /* Of frames that a capture has not read yet;
                                 * no memory before the first one. */
#define MBUF_OVERHEAD 512       /* Bytes a packet buffer needs besides. */

static uint32_t
room_of_packet(const struct options *o)
{
    return (port_frame_size(o->mtu) + RTE_PKTMBUF_HEADROOM
            + o->host.driver->buffer_bytes + o->uplink.driver->buffer_bytes);
}

/* Of the port's own rings, in as many queues as it may have. */
static uint32_t
port_packets(const struct options *o, const struct port_driver *driver)
{
    return driver->pool_packets * (driver->flags & PORT_SPREADS ? o->n_lanes
                                   : 1);
}

static uint32_t
pool_packets(const struct options *o)
{
    return (egress_pool_packets(o->rate_bps, o->mtu)
            + port_packets(o, o->host.driver)
            + port_packets(o, o->uplink.driver)
            + (o->n_lanes - 1) * LANE_PACKETS);
}

/* Without huge pages DPDK lets no packet buffer begin in a page and end in the
 * next one if it fits into one. */
uint64_t
shim_pool_bytes(const struct options *o, bool huge)
{
    uint64_t buffer = room_of_packet(o) + MBUF_OVERHEAD;

    if (!huge) {
        buffer = (buffer + PAGE - 1) / PAGE * PAGE;
    }
    return pool_packets(o) * buffer;
}

void
shim_get_stats(void *s_, struct shim_stats *stats)
{
    const struct shim *s = s_;

    forward_stats(s->forward, stats);
    stats->busy_ns = loop_busy_ns(s->loop);
    stats->port_dropped = port_dropped(s->host) + port_dropped(s->uplink);
    stats->late_bytes = port_late_bytes(s->host)
                        + port_late_bytes(s->uplink);
    stats->port_restarts = s->port_restarts;
    stats->checksums_completed = port_completed(s->host)
                                 + port_completed(s->uplink);
    stats->long_refused = port_refused(s->host) + port_refused(s->uplink);
}

static uint64_t
get_rate(void *s_)
{
    struct shim *s = s_;

    return forward_rate(s->forward);
}

static void
set_rate(void *s_, uint64_t bps)
{
    struct shim *s = s_;

    forward_set_rate(s->forward, bps);
    shim_say(s, "the uplink's rate is now %"PRIu64" bit/s", bps);
}

static void
set_min_share(void *s_, uint32_t share)
{
    struct shim *s = s_;

    forward_set_min_share(s->forward, share);
}

static void
get_ports(void *s_, struct shim_ports *ports)
{
    struct shim *s = s_;

    snprintf(ports->host, sizeof ports->host, "%s", port_iface(s->host));
    snprintf(ports->uplink, sizeof ports->uplink, "%s",
             port_iface(s->uplink));
    ports->polls = loop_polls(s->loop);
    ports->poll_age_ns = loop_poll_age_ns(s->loop);
}

static int
be_taken_over(void *s_, uint32_t step, struct shim_state *state)
{
    struct shim *s = s_;
    int error;

    state->rate_bps = forward_rate(s->forward);
    state->min_share = forward_min_share(s->forward);
    error = takeover_step(s, step);
    if (s->old_side.leaving) {
        server_abandon(s->server);
    }
    return error;
}

/* Without congestion control nothing was learned. */
static int
get_connections(void *s_, void *body, size_t *size)
{
    const struct takeover_state nothing = { .law = {
        .gamma = SHIM_CONGESTION_DEFAULT, .beta = SHIM_CONGESTION_DEFAULT,
        .floor = SHIM_CONGESTION_DEFAULT,
    } };
    struct shim *s = s_;

    if (!s->old_side.deadline) {
        return EINVAL;
    }
    *size = forward_save(s->forward, body);
    if (!*size) {
        memcpy(body, &nothing, sizeof nothing);
        *size = sizeof nothing;
    }
    return 0;
}

static void
set_congestion(void *s_, const struct shim_congestion *told)
{
    struct shim *s = s_;

    forward_set_congestion(s->forward, told);
}

static char *
create_tables(struct shim *s)
{
    uint64_t timeout = s->options.flow_timeout_s * UINT64_C(1000000000);

    s->flows = flow_table_create(s->options.max_flows, s->boot_id);
    if (s->flows) {
        flow_table_set_timeout(s->flows, timeout, clock_now());
    }
    s->slots = job_slots_create();
    s->misses = miss_create();
    s->bursts = bursts_create();
    s->tap = tap_create(TAP_BYTES);
    return (s->flows && s->slots && s->misses && s->bursts && s->tap ? NULL
            : duplicate("no memory"));
}

static char *
create_port(struct shim *s, const struct port_spec *spec, unsigned int index,
            struct port **portp)
{
    char *error = port_create(spec, index, s->options.mtu, s->pool, portp);
    int unfinished = error ? 0 : port_unfinished(*portp);

    if (unfinished) {
        shim_say(s, "%s: cannot switch off offloads at its other end (%s), packets "
            "that come too long are dropped", spec->what,
            strerror(unfinished));
    }
    return error;
}

static char *
create_ports(struct shim *s)
{
    const struct options *o = &s->options;
    char *error;

    s->pool = rte_pktmbuf_pool_create(
        "packets", pool_packets(o), 256, 0,
        room_of_packet(o), SOCKET_ID_ANY);
    if (!s->pool) {
        return duplicate("no memory for packet buffers");
    }
    error = create_port(s, &o->host, 0, &s->host);
    return error ? error : create_port(s, &o->uplink, 1, &s->uplink);
}

/* Returns the port of lane 'i', NULL if it has none of its own. */
static struct port *
lane_queue(const struct shim *s, struct port *port, unsigned int i)
{
    return (port_n_queues(port) == s->options.n_lanes ? port_queue(port, i)
            : NULL);
}

static char *
create_loops(struct shim *s)
{
    s->loop = loop_create(s->forward, s->host, s->uplink, s->options.poll);
    for (unsigned int i = 1; s->loop && i < s->options.n_lanes; i++) {
        s->lane_loops[i] = loop_add_lane(s->loop, forward_lane(s->forward, i),
                                         lane_queue(s, s->host, i),
                                         lane_queue(s, s->uplink, i));
        if (!s->lane_loops[i]) {
            return duplicate("no memory");
        }
    }
    return s->loop ? NULL : duplicate("no memory");
}

static char *
create_forward(struct shim *s)
{
    const struct options *o = &s->options;
    struct cc_config cc = {
        .slots = s->slots,
        .downlink_bps = o->downlink_bps ? o->downlink_bps : o->rate_bps,
        .seed = s->boot_id,
        .mtu = o->mtu,
        .max_flows = CC_MAX_FLOWS,
    };
    struct forward_config config = {
        .host = s->host,
        .uplink = s->uplink,
        .flows = s->flows,
        .slots = s->slots,
        .misses = s->misses,
        .bursts = s->bursts,
        .tap = s->tap,
        .rate_bps = s->options.rate_bps,
        .mtu = s->options.mtu,
        .late_ns = s->options.late_us * UINT64_C(1000),
        .tag = s->options.tag,
        .vxlan = s->options.vxlan,
        .cc = o->cc ? &cc : NULL,
        .n_lanes = s->options.n_lanes,
    };

    memcpy(cc.control_ports, o->control_ports, sizeof cc.control_ports);
    s->forward = forward_create(&config);
    return s->forward ? create_loops(s) : duplicate("no memory");
}

static char *
create_server(struct shim *s)
{
    struct server_config config = {
        .flows = s->flows,
        .slots = s->slots,
        .misses = s->misses,
        .bursts = s->bursts,
        .tap = s->tap,
        .boot_id = s->boot_id,
        .mtu = s->options.mtu,
        .aux = s,
        .get_stats = shim_get_stats,
        .get_rate = get_rate,
        .set_rate = set_rate,
        .set_min_share = set_min_share,
        .set_congestion = set_congestion,
        .now = clock_now,
        .get_ports = get_ports,
        .take_over = be_taken_over,
        .get_connections = get_connections,
        .publish_later = s->old != NULL,
    };

    return server_create(s->options.control, &config, &s->server);
}

char *
shim_create(struct shim *s)
{
    char *error = create_tables(s);

    error = error ? error : create_ports(s);
    error = error ? error : create_forward(s);
    error = error ? error : takeover_begin(s);
    error = error ? error : create_server(s);
    return error ? error : takeover_finish(s);
}

void
shim_destroy(struct shim *s)
{
    if (s->old) {
        takeover_end(s->old);
    }
    server_destroy(s->server);
    loop_destroy(s->loop);
    forward_destroy(s->forward);
    port_destroy(s->uplink);
    port_destroy(s->host);
    rte_mempool_free(s->pool);
    tap_destroy(s->tap);
    bursts_destroy(s->bursts);
    miss_destroy(s->misses);
    job_slots_destroy(s->slots);
    flow_table_destroy(s->flows);
}
