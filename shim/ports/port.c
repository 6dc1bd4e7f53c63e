/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/ports/port.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "shim/pipeline/counter.h"
#include "shim/ports/af-packet.h"

#define REFUSED_NS 200000000ull         /* The driver took nothing: stuck. */
#define SILENT_NS 1000000000ull         /* The kernel sent nothing: stuck. */
#define RETRY_NS 1000000000ull          /* Between two restarts. */

struct port {
    struct port_spec spec;
    char device[32];            /* DPDK's name. */
    uint32_t mtu;               /* That the rings were made for. */
    struct rte_mempool *pool;

    /* Changed by port_restart() while the loop keeps off. */
    bool up;                    /* The device is there. */
    uint16_t id;                /* DPDK's number. */
    int fd;                     /* The driver's socket, -1 if not found. */
    unsigned int ifindex;

    /* The loop's. */
    struct rte_mbuf *held[PORT_BURST];  /* To be sent. */
    uint16_t n_held;
    bool kick;                  /* Frames may be left in the ring. */
    uint64_t late_bytes;        /* That a kick sent.  Read by both. */

    /* The loop writes, the control thread reads. */
    uint64_t refused_since;     /* Time, 0 if the driver takes frames. */
    uint64_t offered;           /* Frames, to the driver; again if it refused
                                 * them.  Counted before they can be sent. */
    uint64_t too_long;          /* Frames dropped. */

    /* The control thread writes, the loop reads. */
    uint32_t max_packet;        /* Bytes of IP: 'mtu' or the interface's MTU,
                                 * whichever is less. */

    /* The control thread's. */
    uint64_t ring_dropped;      /* Frames: the receive ring was full. */
    uint64_t checked_offered, checked_sent;      /* At the last progress. */
    uint64_t progress;          /* Time of it. */
    uint64_t retry;             /* No restart before this time. */
};

static char *
message(const struct port *port, const char *what, int error)
{
    char *s;

    return asprintf(&s, "%s: %s (%s)", port->spec.iface, what,
                    strerror(error)) < 0 ? NULL : s;
}

static int
start_device(struct port *port)
{
    struct rte_eth_conf conf;
    int error;

    memset(&conf, 0, sizeof conf);
    error = rte_eth_dev_configure(port->id, 1, 1, &conf);
    if (!error) {
        error = rte_eth_rx_queue_setup(port->id, 0, 256, SOCKET_ID_ANY, NULL,
                                       port->pool);
    }
    if (!error) {
        error = rte_eth_tx_queue_setup(port->id, 0, 256, SOCKET_ID_ANY, NULL);
    }
    if (!error) {
        error = rte_eth_dev_start(port->id);
    }
    if (!error) {
        rte_eth_promiscuous_enable(port->id);
    }
    return error;
}

static void
take_down(struct port *port)
{
    port->fd = -1;
    if (port->up) {
        rte_eth_dev_stop(port->id);
        rte_eth_dev_close(port->id);
        port->up = false;
    }
    rte_vdev_uninit(port->device);
}

static void
set_max_packet(struct port *port, uint32_t mtu)
{
    __atomic_store_n(&port->max_packet, mtu < port->mtu ? mtu : port->mtu,
                     __ATOMIC_RELAXED);
}

static void
reset_check(struct port *port)
{
    __atomic_store_n(&port->refused_since, 0, __ATOMIC_RELAXED);
    port->progress = 0;
}

static char *
set_up(struct port *port)
{
    char args[128];
    int error, mtu = iface_mtu(port->spec.iface);

    if (mtu < 0) {
        return message(port, "cannot open the interface", ENODEV);
    }
    port_spec_devargs(&port->spec, port->mtu, args, sizeof args);
    port->ifindex = if_nametoindex(port->spec.iface);
    error = rte_vdev_init(port->device, args);
    if (error) {
        return message(port, "DPDK cannot make a port of it", -error);
    }
    error = rte_eth_dev_get_port_by_name(port->device, &port->id);
    if (!error) {
        error = start_device(port);
    }
    port->up = !error;
    if (error) {
        take_down(port);
        return message(port, "DPDK cannot start the port", -error);
    }

    port->fd = af_packet_find(port->spec.iface);
    if (port->fd >= 0) {
        af_packet_tune(port->fd, port_frame_size(port->mtu) * 512);
    }
    set_max_packet(port, mtu);
    reset_check(port);
    return NULL;
}

/* Creates the port of 'spec', for packets of up to 'mtu' bytes of IP.  Stores
 * NULL in '*portp' if it returns a message. */
char *
port_create(const struct port_spec *spec, unsigned int index, uint32_t mtu,
            struct rte_mempool *pool, struct port **portp)
{
    struct port *port = calloc(1, sizeof *port);
    char *error;

    *portp = NULL;
    if (!port) {
        return strdup("no memory");
    }
    port->spec = *spec;
    port->mtu = mtu;
    port->pool = pool;
    port->fd = -1;
    snprintf(port->device, sizeof port->device, "net_af_packet%u", index);
    error = set_up(port);
    if (error) {
        free(port);
    } else {
        *portp = port;
    }
    return error;
}

char *
port_create_rings(const char *name, uint32_t mtu, struct rte_mempool *pool,
                  struct rte_ring *in, struct rte_ring *out,
                  struct port **portp)
{
    struct port *port = calloc(1, sizeof *port);
    char *error;
    int id;

    *portp = NULL;
    if (!port) {
        return strdup("no memory");
    }
    snprintf(port->spec.iface, sizeof port->spec.iface, "%s", name);
    snprintf(port->device, sizeof port->device, "net_ring_%s", name);
    port->mtu = mtu;
    port->pool = pool;
    port->fd = -1;
    set_max_packet(port, mtu);
    id = rte_eth_from_rings(name, &in, 1, &out, 1, SOCKET_ID_ANY);
    port->id = id;
    port->up = id >= 0 && !start_device(port);
    if (!port->up) {
        error = message(port, "DPDK cannot make a port of rings",
                        id < 0 ? rte_errno : EIO);
        free(port);
        return error;
    }
    *portp = port;
    return NULL;
}

void
port_destroy(struct port *port)
{
    if (port) {
        rte_pktmbuf_free_bulk(port->held, port->n_held);
        take_down(port);
        free(port);
    }
}

uint16_t
port_receive(struct port *port, struct rte_mbuf **frames, uint16_t max)
{
    return port->up ? rte_eth_rx_burst(port->id, 0, frames, max) : 0;
}

/* Returns how many frames port_send() takes before the next flush. */
uint16_t
port_room(const struct port *port)
{
    return PORT_BURST - port->n_held;
}

/* The kernel's limit is its MTU, with the Ethernet header and one VLAN tag
 * besides. */
static bool
is_too_long(const struct port *port, const struct rte_mbuf *frame)
{
    const uint8_t *data = rte_pktmbuf_mtod(frame, const uint8_t *);
    uint32_t header = RTE_ETHER_HDR_LEN;

    if (data[12] == 0x81 && data[13] == 0x00) {
        header += 4;
    }
    return (rte_pktmbuf_pkt_len(frame)
            > __atomic_load_n(&port->max_packet, __ATOMIC_RELAXED) + header);
}

/* Takes 'frame' for the next port_flush(), which must have room for it.
 * Returns false if it had to be dropped. */
bool
port_send(struct port *port, struct rte_mbuf *frame)
{
    if (rte_pktmbuf_pkt_len(frame) < RTE_ETHER_HDR_LEN
        || is_too_long(port, frame)) {
        rte_pktmbuf_free(frame);
        counter_add(&port->too_long, 1);
        return false;
    }
    port->held[port->n_held++] = frame;
    return true;
}

/* Hands over what it holds, as much as the driver takes.  Returns true if that
 * was something. */
bool
port_flush(struct port *port, uint64_t now)
{
    uint16_t n = 0;

    if (!port->n_held) {
        return false;
    }
    if (port->up) {
        counter_add(&port->offered, port->n_held);
        n = rte_eth_tx_burst(port->id, 0, port->held, port->n_held);
        port->kick = true;
    }
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

/* Sends what may be left in the ring since the last flush.  Returns true if
 * some is still there. */
bool
port_kick(struct port *port)
{
    int n;

    if (!port->kick || port->fd < 0) {
        return false;
    }
    n = af_packet_kick(port->fd);
    if (n > 0) {
        counter_add(&port->late_bytes, n);
    }
    port->kick = n != 0;
    return port->kick;
}

/* Returns a file descriptor that becomes readable when a frame arrives, or
 * -1. */
int
port_fd(const struct port *port)
{
    return port->fd;
}

/* Is the kernel's counter standing still while we offer frames?  What it has
 * sent is read first, and includes no frame that 'offered' does not: an
 * increase of 'offered' must show there later. */
static bool
is_silent(struct port *port, uint64_t now)
{
    uint64_t sent, offered;

    if (iface_sent(port->spec.iface, &sent)) {
        return false;
    }
    offered = __atomic_load_n(&port->offered, __ATOMIC_ACQUIRE);
    if (!port->progress || sent != port->checked_sent
        || offered == port->checked_offered) {
        port->checked_sent = sent;
        port->checked_offered = offered;
        port->progress = now;
    }
    return now - port->progress >= SILENT_NS;
}

/* Returns what is wrong with the port, whose interface is there, or NULL. */
static const char *
find_fault(struct port *port, uint64_t now)
{
    uint64_t refused = __atomic_load_n(&port->refused_since,
                                       __ATOMIC_RELAXED);

    if (!port->up) {
        return "the interface is back";
    }
    if (if_nametoindex(port->spec.iface) != port->ifindex) {
        return "the interface is another one";
    }
    if (!iface_is_up(port->spec.iface)) {
        port->progress = 0;
        return NULL;
    }
    if (port->fd >= 0) {
        af_packet_clear_error(port->fd);
    }
    if (refused && now > refused + REFUSED_NS) {
        return "the ring is full and stays so";
    }
    return is_silent(port, now) ? "the kernel sends nothing of it" : NULL;
}

/* Looks after the port.  Returns NULL if it is well, or cannot be helped now,
 * otherwise why it needs port_restart(). */
const char *
port_check(struct port *port, uint64_t now)
{
    int mtu = iface_mtu(port->spec.iface);
    const char *fault;

    if (mtu < 0) {
        return NULL;
    }
    set_max_packet(port, mtu);
    fault = find_fault(port, now);
    if (!fault || now < port->retry) {
        return NULL;
    }
    port->retry = now + RETRY_NS;
    return fault;
}

/* Takes the port down and sets it up again, with empty rings.  The loop must
 * not touch the port meanwhile.  Returns NULL or a malloc()'d message; then
 * the port neither receives nor sends until a later restart succeeds. */
char *
port_restart(struct port *port)
{
    take_down(port);
    return set_up(port);
}

const char *
port_iface(const struct port *port)
{
    return port->spec.iface;
}

/* Returns how many frames the port could not receive or send so far. */
uint64_t
port_dropped(struct port *port)
{
    if (port->fd >= 0) {
        port->ring_dropped += af_packet_dropped(port->fd);
    }
    return port->ring_dropped + counter_get(&port->too_long);
}

uint64_t
port_late_bytes(const struct port *port)
{
    return counter_get(&port->late_bytes);
}
