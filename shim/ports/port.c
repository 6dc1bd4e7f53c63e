/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/ports/port.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/memory.h"
#include "shim/clock/counter.h"
#include "shim/ports/af-packet.h"
#include "shim/ports/finish.h"
#include "shim/ports/offload.h"
#include "wire/shim-protocol.h"

#define N_DESCRIPTORS 1024      /* In a queue, unless the driver limits it. */
#define MAX_MISSED_IRQS 4       /* After which an interrupt is not used. */

#define REFUSED_NS 200000000ull         /* A driver that accepts nothing for
                                         * longer is stuck. */
#define SILENT_NS 1000000000ull         /* A kernel that sends nothing for
                                         * longer is stuck. */
#define RETRY_NS 1000000000ull          /* Between two restarts. */

struct port {
    /* Only for the loop. */
    struct rte_mbuf *held[PORT_BURST];  /* Frames to be sent. */
    uint16_t n_held;
    bool kick;                  /* Frames may be left in the ring. */
    uint64_t received;          /* Frames received. */
    int fd;                     /* The driver's file, readable when a frame is
                                 * in the queue; -1 without a receive
                                 * interrupt, or one that does not work. */
    uint8_t missed_irqs;        /* Waits in a row that timed out with a frame
                                 * in the queue. */

    /* Written by the loop, read by the control thread. */
    uint64_t late_bytes;        /* Bytes sent by port_kick(). */
    uint64_t refused_since;     /* Since when the driver refuses all, or 0. */
    uint64_t offered;           /* Frames given to the driver, counted before
                                 * they can be sent, and again after a
                                 * refusal. */
    uint64_t too_long;          /* Frames dropped instead of sent. */
    uint64_t refused;           /* Frames dropped when received. */
    uint64_t completed;         /* Checksums completed. */

    struct port_spec spec;
    unsigned int index;         /* Unique in the process. */
    uint32_t mtu;               /* Bytes of IP. */
    struct rte_mempool *pool;

    /* The DPDK device.  Changed by port_restart() while the loop is paused. */
    bool up;                    /* The device is open. */
    char name[256];             /* DPDK's name of the device. */
    uint16_t id;                /* DPDK's number, if 'up'. */
    bool strips;                /* The device leaves slot tags in the frames:
                                 * port_receive() removes them. */
    int unfinished;             /* 0, or the errno for which unfinished frames
                                 * may arrive, see offload.h. */
    unsigned int ifindex;       /* 0 if it is no interface of the kernel. */

    /* Written by the loop, cleared by port_lost_rx_irq(). */
    bool rx_irq_broken;         /* A receive interrupt does not work. */

    /* Written by the control thread, read by the loop. */
    uint32_t max_packet;        /* Bytes of IP: the smaller of the port's MTU
                                 * and the interface's. */

    /* Only for the control thread. */
    uint64_t ring_dropped;      /* Frames: the receive ring was full. */
    uint64_t checked_offered, checked_sent;     /* Counters at 'progress'. */
    uint64_t progress;          /* Time when the kernel last sent or nothing
                                 * was offered, or 0. */
    uint64_t retry;             /* No restart before this time. */
};

static inline bool
has_flag(const struct port *port, unsigned int flag)
{
    return port->spec.driver->flags & flag;
}

/* Limits packets to the port's MTU and 'mtu', the interface's. */
static void
set_max_packet(struct port *port, uint32_t mtu)
{
    uint32_t max = port->mtu;

    __atomic_store_n(&port->max_packet, mtu < max ? mtu : max,
                     __ATOMIC_RELAXED);
}

static char *
device_error(const struct port *port, const char *what, int error)
{
    return message("%s: %s (%s)", port->spec.what, what, strerror(error));
}

static void
set_name(struct port *port)
{
    if (port->spec.driver->device) {
        snprintf(port->name, sizeof port->name, "%s%u",
                 port->spec.driver->device, port->index);
    } else {
        snprintf(port->name, sizeof port->name, "%s", port->spec.what);
    }
}

/* Lets the device remove slot tags if it can. */
static void
choose_strip(struct port *port, struct rte_eth_conf *conf)
{
    struct rte_eth_dev_info info;

    port->strips = port->spec.slot_tags;
    if (port->strips && !rte_eth_dev_info_get(port->id, &info)
        && info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_STRIP) {
        conf->rxmode.offloads |= RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
        port->strips = false;
    }
}

static int
configure(struct port *port, bool interrupt)
{
    struct rte_eth_conf conf;

    memset(&conf, 0, sizeof conf);
    conf.intr_conf.rxq = interrupt;
    if (has_flag(port, PORT_SET_MTU)) {
        conf.rxmode.mtu = port->mtu;
    }
    choose_strip(port, &conf);
    return rte_eth_dev_configure(port->id, 1, 1, &conf);
}

static int
set_up_queues(struct port *port)
{
    uint16_t n_rx = N_DESCRIPTORS, n_tx = N_DESCRIPTORS;
    int error = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &n_rx, &n_tx);

    error = error ? error
                  : rte_eth_rx_queue_setup(port->id, 0, n_rx, SOCKET_ID_ANY,
                                           NULL, port->pool);
    return error ? error
                 : rte_eth_tx_queue_setup(port->id, 0, n_tx, SOCKET_ID_ANY,
                                          NULL);
}

/* Starts the device, with its receive interrupt if 'interrupt'. */
static int
start_device(struct port *port, bool interrupt)
{
    int error = configure(port, interrupt);

    error = error ? error : set_up_queues(port);
    error = error ? error : rte_eth_dev_start(port->id);
    if (!error) {
        rte_eth_promiscuous_enable(port->id);
    }
    return error;
}

/* Removes the device that open_device() made. */
static void
remove_device(struct port *port)
{
    port->up = false;
    port->fd = -1;
    if (port->spec.driver->device) {
        rte_vdev_uninit(port->name);
    }
}

/* Returns true if the driver finds only tags that the kernel has written into
 * the frame: a packet socket has the others. */
static bool
wants_tags_in_bytes(const struct port *port)
{
    return port->spec.slot_tags && !has_flag(port, PORT_PACKET_SOCKET);
}

/* Makes and starts the device.  Returns NULL or a malloc()'d message; then
 * 'up' is false. */
static char *
open_device(struct port *port)
{
    bool interrupt = has_flag(port, PORT_INTERRUPT);
    const struct port_spec *spec = &port->spec;
    char args[PORT_MAX_ARGS];
    int error = 0;

    port_spec_devargs(spec, port->mtu, args);
    set_name(port);
    if (spec->driver->device) {
        error = rte_vdev_init(port->name, args);
    }
    error = error ? error
            : rte_eth_dev_get_port_by_name(port->name, &port->id);
    if (error) {
        remove_device(port);
        return device_error(port, "DPDK cannot make a port of it", -error);
    }
    error = start_device(port, interrupt);
    if (error && interrupt) {
        interrupt = false;
        error = start_device(port, false);
    }
    if (error) {
        rte_eth_dev_close(port->id);
        remove_device(port);
        return device_error(port, "DPDK cannot start the port", -error);
    }
    port->up = true;
    port->missed_irqs = 0;
    port->fd = (has_flag(port, PORT_PACKET_SOCKET)
                ? af_packet_find(spec->iface)
                : interrupt ? rte_eth_dev_rx_intr_ctl_q_get_fd(port->id, 0)
                : -1);
    port->unfinished = 0;
    if (has_flag(port, PORT_KERNEL) && !spec->keep_offload) {
        port->unfinished =
            offload_switch_off(spec->iface, wants_tags_in_bytes(port));
    }
    if (has_flag(port, PORT_MAKES_IFACE)) {
        iface_set_mtu(spec->iface, port->mtu);
    }
    if (has_flag(port, PORT_PACKET_SOCKET) && port->fd >= 0) {
        af_packet_tune(port->fd, port_frame_size(port->mtu) * 512);
    }
    return NULL;
}

static void
close_device(struct port *port)
{
    if (port->up) {
        rte_eth_dev_stop(port->id);
        rte_eth_dev_close(port->id);
    }
    remove_device(port);
}

static struct port *
new_port(uint32_t mtu, struct rte_mempool *pool)
{
    struct port *port = allocate(1, sizeof *port);

    port->mtu = mtu;
    port->pool = pool;
    port->fd = -1;
    return port;
}

/* Opens the device for packets of the interface's MTU. */
static char *
open_port(struct port *port)
{
    const char *iface = port->spec.iface;
    int mtu = has_flag(port, PORT_KERNEL) ? iface_mtu(iface) : (int) port->mtu;

    if (mtu < 0) {
        return message("%s: there is no such interface", iface);
    }
    port->ifindex = if_nametoindex(iface);
    set_max_packet(port, mtu);
    return open_device(port);
}

/* Stores 'port', with an open device, in '*portp', unless 'error'. */
static char *
finish_create(struct port *port, char *error, struct port **portp)
{
    *portp = NULL;
    if (error) {
        free(port);
        return error;
    }
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

    port->spec = *spec;
    port->index = index;
    return finish_create(port, open_port(port), portp);
}

char *
port_create_rings(const char *name, uint32_t mtu, bool slot_tags,
                  struct rte_mempool *pool, struct rte_ring *in,
                  struct rte_ring *out, struct port **portp)
{
    int id = rte_eth_from_rings(name, &in, 1, &out, 1, SOCKET_ID_ANY);
    int error = id < 0 ? -rte_errno : 0;
    struct port *port = new_port(mtu, pool);

    port->spec.driver = port_driver_find("ring", 4);
    port->spec.slot_tags = slot_tags;
    snprintf(port->spec.what, sizeof port->spec.what, "%s", name);
    snprintf(port->name, sizeof port->name, "%s_%s",
             port->spec.driver->device, name);
    port->id = id;
    set_max_packet(port, mtu);
    error = error ? error : start_device(port, false);
    port->up = !error;
    return finish_create(
        port, error ? device_error(port, "DPDK cannot make a port of rings",
                                   -error) : NULL, portp);
}

void
port_destroy(struct port *port)
{
    if (!port) {
        return;
    }
    rte_pktmbuf_free_bulk(port->held, port->n_held);
    close_device(port);
    free(port);
}

/* Closes the device and opens it again, with empty rings.  The loop must not
 * use the port meanwhile.  Returns NULL or a malloc()'d message; then the port
 * neither receives nor sends until a later restart succeeds. */
char *
port_restart(struct port *port)
{
    close_device(port);
    __atomic_store_n(&port->refused_since, 0, __ATOMIC_RELAXED);
    port->progress = 0;
    return open_port(port);
}

const char *
port_iface(const struct port *port)
{
    return port->spec.what;
}

static enum finish
join_buffers(struct rte_mbuf *frame)
{
    return (frame->nb_segs > 1 && rte_pktmbuf_linearize(frame)
            ? FINISH_TOO_LONG : FINISH_WHOLE);
}

/* Puts each of the 'n' frames at 'frames' into one packet buffer, as the
 * pipeline requires, and completes it if it may be 'unfinished'.  Drops those
 * that are too long.  Returns how many are left. */
static inline uint16_t
finish_all(struct port *port, struct rte_mbuf **frames, uint16_t n,
           bool unfinished)
{
    uint16_t left = 0;

    for (uint16_t i = 0; i < n; i++) {
        enum finish f = (unfinished ? finish_frame(frames[i], port->mtu)
                                    : join_buffers(frames[i]));

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

/* Moves the slot tag of each frame into its mbuf. */
static void __attribute__((noinline))
strip_tags(struct rte_mbuf **frames, uint16_t n)
{
    const uint16_t shortest = RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN;

    for (uint16_t i = 0; i < n; i++) {
        if (!(frames[i]->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED)
            && rte_pktmbuf_data_len(frames[i]) >= shortest) {
            rte_vlan_strip(frames[i]);
        }
    }
}

uint16_t
port_receive(struct port *port, struct rte_mbuf **frames, uint16_t max)
{
    uint16_t n;

    if (!port->up) {
        return 0;
    }
    n = rte_eth_rx_burst(port->id, 0, frames, max);
    port->received += n;
    if (port->strips) {
        strip_tags(frames, n);
    }
    if (has_flag(port, PORT_UNFINISHED)) {
        return finish_all(port, frames, n, true);
    }
    return (has_flag(port, PORT_CHAINS) ? finish_all(port, frames, n, false)
            : n);
}

uint64_t
port_received(const struct port *port)
{
    return port->received;
}

/* Returns how many frames port_send() accepts before the next flush. */
uint16_t
port_tx_space(const struct port *port)
{
    return PORT_BURST - port->n_held;
}

static uint32_t
max_packet(const struct port *port)
{
    return __atomic_load_n(&port->max_packet, __ATOMIC_RELAXED);
}

/* The kernel's limit is its MTU plus the Ethernet header and one VLAN tag. */
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

/* Keeps 'frame' for the next port_flush(); port_tx_space() must not be 0.
 * Returns false if the frame was dropped as too short or too long. */
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

/* port_send() for 'n' frames.  Returns how many were not dropped; the others
 * become NULL. */
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

/* Gives the kept frames to the driver.  Returns true if it accepted any. */
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
        memmove(port->held, port->held + n, port->n_held * sizeof *port->held);
        __atomic_store_n(&port->refused_since, 0, __ATOMIC_RELAXED);
    } else if (!port->refused_since) {
        __atomic_store_n(&port->refused_since, now, __ATOMIC_RELAXED);
    }
    return n > 0;
}

/* Requests the kernel to send frames left in the ring.  Returns true if some
 * are still left. */
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

/* Returns a file descriptor that becomes readable when a frame arrives, for
 * some drivers only between port_arm() and port_disarm(), or -1. */
int
port_fd(const struct port *port)
{
    return port->fd;
}

/* Enables the receive interrupt, which makes port_fd() readable when a frame
 * arrives, but not for one that is already there. */
void
port_arm(struct port *port)
{
    if (port->up && has_flag(port, PORT_INTERRUPT)) {
        rte_eth_dev_rx_intr_enable(port->id, 0);
    }
}

void
port_disarm(struct port *port)
{
    uint64_t n;

    if (!port->up || !has_flag(port, PORT_INTERRUPT)) {
        return;
    }
    rte_eth_dev_rx_intr_disable(port->id, 0);
    /* The file does not block. */
    if (has_flag(port, PORT_EVENTFD) && port->fd >= 0
        && read(port->fd, &n, sizeof n) > 0) {
        port->missed_irqs = 0;
    }
}

static bool
is_readable(int fd)
{
    struct pollfd pfd = { .fd = fd, .events = POLLIN };

    return poll(&pfd, 1, 0) > 0;
}

/* To be called between port_arm() and port_disarm() after a long wait without
 * an interrupt.  Some drivers have a file for an interrupt that never arrives,
 * such as DPDK's (22.11) for the 82574 that qemu emulates.  So if waits time
 * out repeatedly with a frame in the queue, port_fd() becomes -1: the loop
 * must poll it from then on. */
void
port_check_rx_irq(struct port *port)
{
    if (!port->up || !has_flag(port, PORT_EVENTFD) || port->fd < 0
        || rte_eth_rx_queue_count(port->id, 0) <= 0 || is_readable(port->fd)) {
        return;
    }
    if (++port->missed_irqs >= MAX_MISSED_IRQS) {
        port->fd = -1;
        __atomic_store_n(&port->rx_irq_broken, true, __ATOMIC_RELAXED);
    }
}

/* Returns true if the interface's transmit counter stands still while frames
 * are offered.  The counter is read first, so that it includes only frames
 * that 'offered' includes. */
static bool
is_silent(struct port *port, uint64_t now)
{
    uint64_t sent, offered;

    if (iface_sent(port->spec.iface, &sent)) {
        return false;
    }
    offered = counter_get(&port->offered);
    if (!port->progress || sent != port->checked_sent
        || offered == port->checked_offered) {
        port->checked_sent = sent;
        port->checked_offered = offered;
        port->progress = now;
    }
    return now - port->progress >= SILENT_NS;
}

/* Returns the fault of the port, or NULL.  The interface must exist. */
static const char *
find_fault(struct port *port, uint64_t now)
{
    uint64_t refused = counter_get(&port->refused_since);

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
    if (port_fd(port) >= 0 && has_flag(port, PORT_PACKET_SOCKET)) {
        af_packet_clear_error(port_fd(port));
    }
    if (refused && now > refused + REFUSED_NS) {
        return "the ring is full and stays so";
    }
    return is_silent(port, now) ? "the kernel sends nothing of it" : NULL;
}

/* Returns why the port needs port_restart(), or NULL if it does not, or cannot
 * be restarted now. */
const char *
port_check(struct port *port, uint64_t now)
{
    const char *fault;
    int mtu;

    if (!has_flag(port, PORT_RESTARTS)) {
        return NULL;
    }
    mtu = iface_mtu(port->spec.iface);
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

/* Returns how many frames the device dropped for lack of a packet buffer. */
static uint64_t
count_missed(const struct port *port)
{
    struct rte_eth_stats stats;

    return (has_flag(port, PORT_COUNTS_MISSED) && port->up
            && !rte_eth_stats_get(port->id, &stats)
            ? stats.imissed + stats.rx_nombuf : 0);
}

void
port_add_stats(struct port *port, struct shim_stats *stats)
{
    uint64_t refused = counter_get(&port->refused);

    if (has_flag(port, PORT_PACKET_SOCKET) && port_fd(port) >= 0) {
        port->ring_dropped += af_packet_dropped(port_fd(port));
    }
    stats->port_dropped += (port->ring_dropped + count_missed(port) + refused
                            + counter_get(&port->too_long));
    stats->long_refused += refused;
    stats->checksums_completed += counter_get(&port->completed);
    stats->late_bytes += counter_get(&port->late_bytes);
}

/* Returns 0, or the errno for which unfinished frames may still arrive. */
int
port_unfinished(const struct port *port)
{
    return port->unfinished;
}

/* Returns true once after the receive interrupt was found not to work. */
bool
port_lost_rx_irq(struct port *port)
{
    return __atomic_exchange_n(&port->rx_irq_broken, false, __ATOMIC_RELAXED);
}
