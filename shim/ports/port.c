/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/ports/port.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/memory.h"
#include "shim/clock/counter.h"
#include "shim/ports/af-packet.h"
#include "shim/ports/finish.h"
#include "shim/ports/port-device.h"
#include "shim/ports/port-spec.h"

#define REFUSED_NS 200000000ull         /* The driver took nothing: stuck. */
#define SILENT_NS 1000000000ull         /* The kernel sent nothing: stuck. */
#define RETRY_NS 1000000000ull          /* Between two restarts. */

struct port {
    struct port *first;         /* The port that this is a queue of, which may
                                 * be itself, ... */
    uint16_t queue;             /* ...and which one. */

    /* The loop's. */
    struct rte_mbuf *held[PORT_BURST];  /* To be sent. */
    uint16_t n_held;
    bool kick;                  /* Frames may be left in the ring. */
    uint64_t received;          /* Frames. */
    uint64_t late_bytes;        /* That a kick sent.  Read by both. */

    /* The loop writes, the control thread reads. */
    uint64_t refused_since;     /* Time, 0 if the driver takes frames. */
    uint64_t offered;           /* Frames, to the driver; again if it refused
                                 * them.  Counted before they can be sent. */
    uint64_t too_long;          /* Frames dropped when sent... */
    uint64_t refused;           /* ...or received. */
    uint64_t completed;         /* Checksums. */

    /* The rest is only in the first one. */
    struct rte_mempool *pool;
    uint16_t n_queues;
    struct port *others[PORT_MAX_QUEUES];       /* Queues from 1 on. */

    /* Changed by port_restart() while the loop keeps off. */
    struct port_device device;
    unsigned int ifindex;       /* 0 if the kernel has none. */

    /* The control thread writes, the loop reads. */
    uint32_t max_packet;        /* Bytes of IP: 'mtu' or the interface's MTU,
                                 * whichever is less. */

    /* The control thread's. */
    uint64_t ring_dropped;      /* Frames: the receive ring was full. */
    uint64_t checked_offered, checked_sent;      /* At the last progress. */
    uint64_t progress;          /* Time of it. */
    uint64_t retry;             /* No restart before this time. */
};

static inline bool
has_flag(const struct port *port, unsigned int flag)
{
    return port->first->device.spec.driver->flags & flag;
}

/* Lets packets be as long as the port's MTU and 'mtu', the interface's. */
static void
set_max_packet(struct port *port, uint32_t mtu)
{
    uint32_t max = port->device.mtu;

    __atomic_store_n(&port->max_packet, mtu < max ? mtu : max,
                     __ATOMIC_RELAXED);
}

static struct port *
new_port(uint32_t mtu, struct rte_mempool *pool)
{
    struct port *port = allocate(1, sizeof *port);

    port->first = port;
    port->n_queues = 1;
    port->device.mtu = mtu;
    port->pool = pool;
    return port;
}

/* Makes a struct port for each queue. */
static void
add_queues(struct port *port)
{
    for (uint16_t i = 1; i < port->device.n_queues; i++) {
        struct port *other = port->others[i] = allocate(1, sizeof *other);

        other->first = port;
        other->queue = i;
        port->n_queues++;
    }
}

/* The port begins anew: nothing is known against it. */
static void
reset_check(struct port *port)
{
    for (unsigned int i = 0; i < port_n_queues(port); i++) {
        __atomic_store_n(&port_queue(port, i)->refused_since, 0,
                         __ATOMIC_RELAXED);
    }
    port->progress = 0;
}

static char *
set_up(struct port *port)
{
    const char *iface = port->device.spec.iface;
    int mtu = has_flag(port, PORT_KERNEL) ? iface_mtu(iface)
                                          : (int) port->device.mtu;
    char *error;

    if (mtu < 0) {
        return message("%s: there is no such interface", iface);
    }
    port->ifindex = if_nametoindex(iface);
    error = port_device_open(&port->device, port->pool);
    set_max_packet(port, mtu);
    reset_check(port);
    return error;
}

/* Stores 'port', whose device is open unless 'error', in '*portp'. */
static char *
finish_create(struct port *port, char *error, struct port **portp)
{
    *portp = NULL;
    if (error) {
        free(port);
        return error;
    }
    add_queues(port);
    *portp = port;
    return NULL;
}

/* Creates the port of 'spec', for packets of up to 'mtu' bytes of IP.  Stores
 * NULL in '*portp' if it returns a message. */
char *
port_create(const struct port_spec *spec, unsigned int index, uint32_t mtu,
            struct rte_mempool *pool, struct port **portp)
{
    struct port *port = new_port(mtu, pool);
    char *error;

    port->device.spec = *spec;
    port->device.index = index;
    error = set_up(port);
    return finish_create(port, error, portp);
}

char *
port_create_rings(const char *name, uint32_t mtu, struct rte_mempool *pool,
                  struct rte_ring *const in[], struct rte_ring *const out[],
                  unsigned int n, struct port **portp)
{
    struct port *port = new_port(mtu, pool);
    char *error;

    set_max_packet(port, mtu);
    error = port_device_open_rings(&port->device, name, in, out, n, pool);
    return finish_create(port, error, portp);
}

void
port_destroy(struct port *port)
{
    if (!port) {
        return;
    }
    rte_pktmbuf_free_bulk(port->held, port->n_held);
    for (int i = 1; i < PORT_MAX_QUEUES && port->others[i]; i++) {
        rte_pktmbuf_free_bulk(port->others[i]->held, port->others[i]->n_held);
        free(port->others[i]);
    }
    port_device_close(&port->device);
    free(port);
}

/* Takes the port down and sets it up again, with empty rings.  The loop must
 * not touch the port meanwhile.  Returns NULL or a malloc()'d message; then
 * the port neither receives nor sends until a later restart succeeds. */
char *
port_restart(struct port *port)
{
    port_device_close(&port->device);
    return set_up(port);
}

const char *
port_iface(const struct port *port)
{
    return port->device.spec.what;
}

unsigned int
port_n_queues(const struct port *port)
{
    return port->first->n_queues;
}

/* Returns queue 'i', below port_n_queues(), of 'port'. */
struct port *
port_queue(struct port *port, unsigned int i)
{
    return i ? port->others[i] : port;
}

/* Makes packets of the 'n' frames at 'frames', and drops those of which none
 * can be made.  Returns how many are left. */
static uint16_t
finish_all(struct port *port, struct rte_mbuf **frames, uint16_t n)
{
    uint16_t left = 0;

    for (uint16_t i = 0; i < n; i++) {
        enum finish f = finish_frame(frames[i], port->first->device.mtu);

        if (f == FINISH_TOO_LONG) {
            rte_pktmbuf_free(frames[i]);
            counter_add(&port->refused, 1);
            continue;
        }
        if (f == FINISH_COMPLETED) {
            counter_add(&port->completed, 1);
        }
        frames[left++] = frames[i];
    }
    return left;
}

/* Puts each of the 'n' frames at 'frames' into one packet buffer, where all
 * that is done with them expects it, and drops those that have no room there.
 * Returns how many are left. */
static uint16_t
join_all(struct port *port, struct rte_mbuf **frames, uint16_t n)
{
    uint16_t left = 0;

    for (uint16_t i = 0; i < n; i++) {
        if (frames[i]->nb_segs > 1 && rte_pktmbuf_linearize(frames[i])) {
            rte_pktmbuf_free(frames[i]);
            counter_add(&port->refused, 1);
            continue;
        }
        frames[left++] = frames[i];
    }
    return left;
}

uint16_t
port_receive(struct port *port, struct rte_mbuf **frames, uint16_t max)
{
    const struct port_device *device = &port->first->device;
    uint16_t n;

    if (!device->up) {
        return 0;
    }
    n = rte_eth_rx_burst(device->id, port->queue, frames, max);
    port->received += n;
    if (has_flag(port, PORT_UNFINISHED)) {
        return finish_all(port, frames, n);
    }
    return has_flag(port, PORT_CHAINS) ? join_all(port, frames, n) : n;
}

/* Returns how many frames have been received, ever. */
uint64_t
port_received(const struct port *port)
{
    return port->received;
}

/* Returns how many frames port_send() takes before the next flush. */
uint16_t
port_tx_space(const struct port *port)
{
    return PORT_BURST - port->n_held;
}

static uint32_t
max_packet(const struct port *port)
{
    return __atomic_load_n(&port->first->max_packet, __ATOMIC_RELAXED);
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
    return rte_pktmbuf_pkt_len(frame) > max_packet(port) + header;
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

/* The same for 'n' frames, in their order.  Returns how many of them it took;
 * those that had to be dropped are NULL then. */
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
        && longest <= max_packet(port) + RTE_ETHER_HDR_LEN) {
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

/* Hands over what it holds, as much as the driver takes.  Returns true if that
 * was something. */
bool
port_flush(struct port *port, uint64_t now)
{
    const struct port_device *device = &port->first->device;
    uint16_t n = 0;

    if (!port->n_held) {
        return false;
    }
    if (device->up) {
        counter_add(&port->offered, port->n_held);
        n = rte_eth_tx_burst(device->id, port->queue, port->held,
                             port->n_held);
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
    int fd = port_fd(port), n;

    if (!port->kick || fd < 0 || !has_flag(port, PORT_KICK)) {
        return false;
    }
    n = af_packet_kick(fd);
    if (n > 0) {
        counter_add(&port->late_bytes, n);
    }
    port->kick = n != 0;
    return port->kick;
}

/* Returns a file descriptor that becomes readable when a frame arrives, with
 * some drivers only between port_arm() and port_disarm(), or -1. */
int
port_fd(const struct port *port)
{
    return port->first->device.fds[port->queue];
}

void
port_arm(struct port *port)
{
    port_device_arm(&port->first->device, port->queue);
}

void
port_disarm(struct port *port)
{
    port_device_disarm(&port->first->device, port->queue);
}

/* To be called between port_arm() and port_disarm() after a long wait in which
 * port_fd() has not become readable: if that happens although frames come,
 * port_fd() is -1 from then on. */
void
port_check_rx_irq(struct port *port)
{
    port_device_check_rx_irq(&port->first->device, port->queue);
}

/* Returns what 'counter', an offset in struct port, says of all queues. */
static uint64_t
sum(const struct port *port, size_t counter)
{
    uint64_t total = 0;

    for (unsigned int i = 0; i < port_n_queues(port); i++) {
        const char *queue = (char *) port_queue((struct port *) port, i);

        total += counter_get((const uint64_t *) (queue + counter));
    }
    return total;
}

/* Is the kernel's counter standing still while we offer frames?  What it has
 * sent is read first, and includes no frame that 'offered' does not: an
 * increase of 'offered' must show there later. */
static bool
is_silent(struct port *port, uint64_t now)
{
    uint64_t sent, offered;

    if (iface_sent(port->device.spec.iface, &sent)) {
        return false;
    }
    offered = sum(port, offsetof(struct port, offered));
    if (!port->progress || sent != port->checked_sent
        || offered == port->checked_offered) {
        port->checked_sent = sent;
        port->checked_offered = offered;
        port->progress = now;
    }
    return now - port->progress >= SILENT_NS;
}

/* Since when has the driver taken nothing of a queue?  0 if it does. */
static uint64_t
refused_since(struct port *port)
{
    uint64_t first = 0;

    for (unsigned int i = 0; i < port_n_queues(port); i++) {
        uint64_t since = counter_get(&port_queue(port, i)->refused_since);

        first = since && (!first || since < first) ? since : first;
    }
    return first;
}

/* Returns what is wrong with the port, whose interface is there, or NULL. */
static const char *
find_fault(struct port *port, uint64_t now)
{
    uint64_t refused = refused_since(port);

    if (!port->device.up) {
        return "the interface is back";
    }
    if (if_nametoindex(port->device.spec.iface) != port->ifindex) {
        return "the interface is another one";
    }
    if (!iface_is_up(port->device.spec.iface)) {
        port->progress = 0;
        return NULL;
    }
    if (port_fd(port) >= 0 && has_flag(port, PORT_PACKET_SOCKET)) {
        af_packet_clear_error(port_fd(port));
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
    const char *fault;
    int mtu;

    if (!has_flag(port, PORT_RESTARTS)) {
        return NULL;
    }
    mtu = iface_mtu(port->device.spec.iface);
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

/* Returns how many frames came when the device had no packet buffer. */
static uint64_t
missed(const struct port *port)
{
    struct rte_eth_stats stats;

    return (has_flag(port, PORT_COUNTS_MISSED) && port->device.up
            && !rte_eth_stats_get(port->device.id, &stats)
            ? stats.imissed + stats.rx_nombuf : 0);
}

/* Returns how many frames the port could not receive or send so far. */
uint64_t
port_dropped(struct port *port)
{
    if (has_flag(port, PORT_PACKET_SOCKET) && port_fd(port) >= 0) {
        port->ring_dropped += af_packet_dropped(port_fd(port));
    }
    return (port->ring_dropped + missed(port)
            + sum(port, offsetof(struct port, too_long))
            + port_refused(port));
}

/* Returns how many frames were too long when they came: a part of
 * port_dropped(). */
uint64_t
port_refused(const struct port *port)
{
    return sum(port, offsetof(struct port, refused));
}

/* Returns how many checksums the port had to complete. */
uint64_t
port_completed(const struct port *port)
{
    return sum(port, offsetof(struct port, completed));
}

/* Returns 0, or why frames may still come unfinished from the kernel. */
int
port_unfinished(const struct port *port)
{
    return port->device.unfinished;
}

uint64_t
port_late_bytes(const struct port *port)
{
    return sum(port, offsetof(struct port, late_bytes));
}

/* Returns true once if the port says that it can tell of frames and does
 * not. */
bool
port_lost_rx_irq(struct port *port)
{
    return __atomic_exchange_n(&port->device.deaf, false, __ATOMIC_RELAXED);
}
