/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/pipeline/forward.h"

#include <stdlib.h>
#include <time.h>

#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "shim/capture/tap.h"
#include "shim/pipeline/bursts.h"
#include "shim/pipeline/classify.h"
#include "shim/pipeline/counter.h"
#include "shim/pipeline/egress.h"
#include "shim/pipeline/flow-table.h"
#include "shim/pipeline/tag.h"
#include "shim/ports/port.h"

struct forward {
    struct forward_config config;
    struct classifier classifier;
    struct egress *egress;
    int reader;                 /* Of the flows. */

    /* The forwarding thread writes, the control thread reads. */
    uint64_t rx_packets, rx_bytes;
    bool ended;                 /* Receives no more. */
    uint32_t last_turns;        /* Since it was told to end. */

    /* The control thread writes, the forwarding thread reads. */
    bool ending;
};

#define LOAD(P) __atomic_load_n(P, __ATOMIC_ACQUIRE)
#define STORE(P, V) __atomic_store_n(P, V, __ATOMIC_RELEASE)

#define MAX_DISCARDS 256        /* Bursts: more than a ring holds. */
#define MAX_LAST_TURNS 64

/* Returns the time that everything here counts by. */
uint64_t
forward_now(void)
{
    struct timespec ts = { 0, 0 };

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
}

/* Returns NULL without memory, or with more pipelines than the flow table
 * has room for. */
struct forward *
forward_create(const struct forward_config *config)
{
    struct egress_config egress = {
        .uplink = config->uplink,
        .slots = config->slots,
        .tap = config->tap,
        .rate_bps = config->rate_bps,
        .mtu = config->mtu,
        .late_ns = config->late_ns,
    };
    struct forward *f = calloc(1, sizeof *f);

    if (!f) {
        return NULL;
    }
    f->config = *config;
    f->classifier = (struct classifier) {
        .flows = config->flows,
        .slots = config->slots,
        .misses = config->misses,
        .vxlan = config->vxlan,
    };
    f->egress = egress_create(&egress);
    f->reader = flow_table_join(config->flows);
    if (!f->egress || f->reader < 0) {
        forward_destroy(f);
        return NULL;
    }
    return f;
}

void
forward_destroy(struct forward *f)
{
    if (f) {
        egress_destroy(f->egress);
        if (f->reader >= 0) {
            flow_table_leave(f->config.flows, f->reader);
        }
        free(f);
    }
}

/* Fills in where the bytes of 'frames' are, and asks for their headers. */
static void
fetch(struct rte_mbuf **frames, uint16_t n, struct packet *packets)
{
    for (uint16_t i = 0; i < n; i++) {
        rte_prefetch0(frames[i]);
    }
    for (uint16_t i = 0; i < n; i++) {
        packets[i].data = rte_pktmbuf_mtod(frames[i], uint8_t *);
        packets[i].length = rte_pktmbuf_data_len(frames[i]);
        rte_prefetch0(packets[i].data);
    }
}

static bool
receive_from_host(struct forward *f, uint64_t now)
{
    struct rte_mbuf *frames[PORT_BURST];
    struct packet packets[PORT_BURST];
    struct verdict verdicts[PORT_BURST];
    uint16_t n = port_receive(f->config.host, frames, PORT_BURST);

    if (!n) {
        return false;
    }
    fetch(frames, n, packets);
    classify_burst_from_host(&f->classifier, packets, n, now,
                             job_slots_leased(f->config.slots, now),
                             verdicts);
    if (f->config.tag) {
        tag_burst(packets, verdicts, n);
    }
    for (uint16_t i = 0; f->config.bursts && i < n; i++) {
        bursts_count(f->config.bursts, verdicts[i].slot, BURSTS_TX,
                     rte_pktmbuf_pkt_len(frames[i]), now);
    }
    egress_push_burst(f->egress, frames, verdicts, n, now);
    return true;
}

static void
count_received(struct forward *f, const uint16_t *slots,
               const uint32_t *lengths, uint32_t n, uint64_t now)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < n; i++) {
        bytes += lengths[i];
    }
    counter_add(&f->rx_packets, n);
    counter_add(&f->rx_bytes, bytes);
    job_slots_count_rx(f->config.slots, slots, lengths, n);
    for (uint32_t i = 0; f->config.bursts && i < n; i++) {
        bursts_count(f->config.bursts, slots[i], BURSTS_RX, lengths[i], now);
    }
}

static bool
receive_from_uplink(struct forward *f, uint64_t now)
{
    struct port *host = f->config.host;
    struct rte_mbuf *frames[PORT_BURST];
    struct packet packets[PORT_BURST];
    uint32_t lengths[PORT_BURST], n_sent = 0;
    uint16_t slots[PORT_BURST];
    uint16_t n = port_receive(f->config.uplink, frames, port_room(host));

    if (n) {
        fetch(frames, n, packets);
        classify_burst_to_host(&f->classifier, packets, n, slots);
    }
    for (uint16_t i = 0; i < n; i++) {
        lengths[n_sent] = rte_pktmbuf_pkt_len(frames[i]);
        tap_see(f->config.tap, slots[i], true, packets[i].data,
                packets[i].length, lengths[n_sent], now);
        slots[n_sent] = slots[i];
        n_sent += port_send(host, frames[i]);
    }
    count_received(f, slots, lengths, n_sent, now);
    return port_flush(host, now);
}

/* Returns the nanoseconds from 'now' on until a queued packet is due, and
 * UINT64_MAX if none is queued. */
uint64_t
forward_until_due(const struct forward *f, uint64_t now)
{
    return egress_until_due(f->egress, now);
}

/* Ends with the first turn that finds nothing, so that no frame is left to be
 * received; a port that always has some must not keep us for ever. */
static void
follow_end(struct forward *f, bool received)
{
    if (!LOAD(&f->ending)) {
        f->last_turns = 0;
        STORE(&f->ended, false);
    } else if (!received || ++f->last_turns >= MAX_LAST_TURNS) {
        STORE(&f->ended, true);
    }
}

/* Moves what there is to move at 'now', forward_now() or, where packets come
 * out of a file, their time.  Returns false if there was nothing. */
bool
forward_turn(struct forward *f, uint64_t now)
{
    bool received = !f->ended && receive_from_host(f, now);
    bool sent = egress_send(f->egress, now);

    received |= f->ended ? port_flush(f->config.host, now)
                : receive_from_uplink(f, now);
    flow_table_pause(f->config.flows, f->reader);
    follow_end(f, received);
    return received || sent;
}

void
forward_end(struct forward *f, bool end)
{
    STORE(&f->ending, end);
}

bool
forward_is_ending(const struct forward *f)
{
    return LOAD(&f->ending);
}

bool
forward_has_ended(const struct forward *f)
{
    return LOAD(&f->ended);
}

static uint32_t
discard(struct port *port)
{
    struct rte_mbuf *frames[PORT_BURST];
    uint32_t total = 0;
    uint16_t n;

    for (int i = 0; i < MAX_DISCARDS
         && (n = port_receive(port, frames, PORT_BURST)); i++) {
        rte_pktmbuf_free_bulk(frames, n);
        total += n;
    }
    return total;
}

uint32_t
forward_discard(struct forward *f)
{
    return discard(f->config.host) + discard(f->config.uplink);
}

uint32_t
forward_guard(const struct forward *f)
{
    return egress_guard(f->egress);
}

void
forward_set_rate(struct forward *f, uint64_t bps)
{
    egress_set_rate(f->egress, bps);
}

uint64_t
forward_rate(const struct forward *f)
{
    return egress_rate(f->egress);
}

void
forward_set_guard(struct forward *f, uint32_t share)
{
    egress_set_guard(f->egress, share);
}

void
forward_stats(const struct forward *f, struct shim_stats *stats)
{
    egress_stats(f->egress, stats);
    stats->rx_packets = counter_get(&f->rx_packets);
    stats->rx_bytes = counter_get(&f->rx_bytes);
    stats->misses = counter_get(&f->classifier.n_misses);
    stats->malformed = counter_get(&f->classifier.n_malformed);
}
