/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/bench/ring-port.h"

#include <stdlib.h>
#include <string.h>

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "shim/clock/counter.h"
#include "shim/ports/port.h"

#define MAX_PACKET 1500         /* Maximum size of an IP packet, in bytes. */

struct port {
    uint16_t id;                /* DPDK port id. */
    struct rte_mbuf *held[PORT_BURST];
    uint16_t n_held;
    uint64_t offered, too_long;
    uint64_t refused_since;
};

static int
start_device(uint16_t id)
{
    struct rte_eth_conf conf;
    int error;

    memset(&conf, 0, sizeof conf);
    error = rte_eth_dev_configure(id, 1, 1, &conf);
    if (!error) {
        /* The driver takes frames from the ring, and needs no pool. */
        struct rte_mempool *pool = rte_pktmbuf_pool_create(
            "unused", 1, 0, 0, 128, SOCKET_ID_ANY);

        pool = pool ? pool : rte_mempool_lookup("unused");
        error = rte_eth_rx_queue_setup(id, 0, 256, SOCKET_ID_ANY, NULL, pool);
    }
    if (!error) {
        error = rte_eth_tx_queue_setup(id, 0, 256, SOCKET_ID_ANY, NULL);
    }
    return error ? error : rte_eth_dev_start(id);
}

struct port *
ring_port_create(const char *name, struct rte_ring *tx, struct rte_ring *rx)
{
    struct port *port = calloc(1, sizeof *port);
    int id = rte_eth_from_rings(name, &rx, 1, &tx, 1, SOCKET_ID_ANY);

    if (!port || id < 0 || start_device(id)) {
        free(port);
        return NULL;
    }
    port->id = id;
    return port;
}

void
ring_port_destroy(struct port *port)
{
    if (port) {
        rte_pktmbuf_free_bulk(port->held, port->n_held);
        rte_eth_dev_stop(port->id);
        rte_eth_dev_close(port->id);
        free(port);
    }
}

void
ring_port_send_burst(struct port *port, struct rte_mbuf **frames, uint16_t n)
{
    uint16_t sent = rte_eth_tx_burst(port->id, 0, frames, n);

    rte_pktmbuf_free_bulk(frames + sent, n - sent);
}

uint16_t
port_receive(struct port *port, struct rte_mbuf **frames, uint16_t max)
{
    return rte_eth_rx_burst(port->id, 0, frames, max);
}

uint16_t
port_tx_space(const struct port *port)
{
    return PORT_BURST - port->n_held;
}

static bool
is_too_long(const struct rte_mbuf *frame)
{
    const uint8_t *data = rte_pktmbuf_mtod(frame, const uint8_t *);
    uint32_t header = RTE_ETHER_HDR_LEN;

    if (data[12] == 0x81 && data[13] == 0x00) {
        header += 4;
    }
    return rte_pktmbuf_pkt_len(frame) > MAX_PACKET + header;
}

bool
port_send(struct port *port, struct rte_mbuf *frame)
{
    if (rte_pktmbuf_pkt_len(frame) < RTE_ETHER_HDR_LEN
        || is_too_long(frame)) {
        rte_pktmbuf_free(frame);
        counter_add(&port->too_long, 1);
        return false;
    }
    port->held[port->n_held++] = frame;
    return true;
}

uint16_t
port_send_burst(struct port *port, struct rte_mbuf **frames, uint16_t n)
{
    uint32_t longest = 0, shortest = UINT32_MAX;
    uint16_t taken = 0;

    for (uint16_t i = 0; i < n; i++) {
        uint32_t length = rte_pktmbuf_pkt_len(frames[i]);

        longest = length > longest ? length : longest;
        shortest = length < shortest ? length : shortest;
    }
    if (shortest >= RTE_ETHER_HDR_LEN
        && longest <= MAX_PACKET + RTE_ETHER_HDR_LEN) {
        for (uint16_t i = 0; i < n; i++) {
            port->held[port->n_held + i] = frames[i];
        }
        port->n_held += n;
        return n;
    }
    for (uint16_t i = 0; i < n; i++) {
        bool sent = port_send(port, frames[i]);

        frames[i] = sent ? frames[i] : NULL;
        taken += sent;
    }
    return taken;
}

bool
port_flush(struct port *port, uint64_t now)
{
    uint16_t n;

    if (!port->n_held) {
        return false;
    }
    counter_add(&port->offered, port->n_held);
    n = rte_eth_tx_burst(port->id, 0, port->held, port->n_held);
    if (n) {
        port->n_held -= n;
        memmove(port->held, port->held + n,
                port->n_held * sizeof *port->held);
        __atomic_store_n(&port->refused_since, 0, __ATOMIC_RELAXED);
    } else if (!port->refused_since) {
        __atomic_store_n(&port->refused_since, now, __ATOMIC_RELAXED);
    }
    return n > 0;
}
