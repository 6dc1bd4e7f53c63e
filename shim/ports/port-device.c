/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/ports/port-device.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>

#include "base/memory.h"
#include "shim/ports/af-packet.h"
#include "shim/ports/offload.h"
#include "shim/ports/port-spec.h"

#define N_DESCRIPTORS 1024      /* In a queue, unless the driver limits it. */
#define MAX_MISSED_IRQS 4       /* After which an interrupt is not used. */
#define FLOW_HASH (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP)

static bool
has(const struct port_device *d, unsigned int flag)
{
    return d->spec.driver->flags & flag;
}

static char *
device_error(const struct port_device *d, const char *what, int error)
{
    return message("%s: %s (%s)", d->spec.what, what, strerror(error));
}

static void
set_name(struct port_device *d)
{
    if (d->spec.driver->device) {
        snprintf(d->name, sizeof d->name, "%s%u", d->spec.driver->device,
                 d->index);
    } else {
        snprintf(d->name, sizeof d->name, "%s", d->spec.what);
    }
}

/* Uses the wanted number of queues if the device has them and keeps each flow
 * in one of them, otherwise one. */
static void
choose_queues(struct port_device *d, struct rte_eth_conf *conf)
{
    uint16_t n = d->spec.n_queues;
    struct rte_eth_dev_info info;

    d->n_queues = 1;
    if (n < 2 || rte_eth_dev_info_get(d->id, &info)
        || info.max_rx_queues < n || info.max_tx_queues < n) {
        return;
    }
    if (d->spread) {
        d->n_queues = n;
    } else if (has(d, PORT_SPREADS)
               && (info.flow_type_rss_offloads & RTE_ETH_RSS_TCP)) {
        d->n_queues = n;
        conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        conf->rx_adv_conf.rss_conf.rss_hf = (FLOW_HASH
                                             & info.flow_type_rss_offloads);
    }
}

static int
configure(struct port_device *d, bool interrupt)
{
    struct rte_eth_conf conf;

    memset(&conf, 0, sizeof conf);
    conf.intr_conf.rxq = interrupt;
    if (has(d, PORT_SET_MTU)) {
        conf.rxmode.mtu = d->mtu;
    }
    choose_queues(d, &conf);
    return rte_eth_dev_configure(d->id, d->n_queues, d->n_queues, &conf);
}

static int
set_up_queues(struct port_device *d, struct rte_mempool *pool)
{
    uint16_t n_rx = N_DESCRIPTORS, n_tx = N_DESCRIPTORS;
    int error = rte_eth_dev_adjust_nb_rx_tx_desc(d->id, &n_rx, &n_tx);

    for (uint16_t i = 0; i < d->n_queues && !error; i++) {
        error = rte_eth_rx_queue_setup(d->id, i, n_rx, SOCKET_ID_ANY, NULL,
                                       pool);
        error = error ? error
                : rte_eth_tx_queue_setup(d->id, i, n_tx, SOCKET_ID_ANY, NULL);
    }
    return error;
}

/* Starts the device, with its receive interrupt if 'interrupt'. */
static int
start(struct port_device *d, struct rte_mempool *pool, bool interrupt)
{
    int error = configure(d, interrupt);

    error = error ? error : set_up_queues(d, pool);
    error = error ? error : rte_eth_dev_start(d->id);
    if (!error) {
        rte_eth_promiscuous_enable(d->id);
    }
    return error;
}

static void
forget_fds(struct port_device *d)
{
    for (uint16_t i = 0; i < PORT_MAX_QUEUES; i++) {
        d->fds[i] = -1;
        d->missed_irqs[i] = 0;
    }
}

static void
find_fds(struct port_device *d, bool interrupt)
{
    forget_fds(d);
    if (has(d, PORT_PACKET_SOCKET)) {
        d->fds[0] = af_packet_find(d->spec.iface);
        return;
    }
    for (uint16_t i = 0; i < d->n_queues && interrupt; i++) {
        d->fds[i] = rte_eth_dev_rx_intr_ctl_q_get_fd(d->id, i);
    }
}

/* Removes the device that port_device_open() made. */
static void
remove_device(struct port_device *d)
{
    d->up = false;
    forget_fds(d);
    if (d->spec.driver->device) {
        rte_vdev_uninit(d->name);
    }
}

char *
port_device_open(struct port_device *d, struct rte_mempool *pool)
{
    bool interrupt = has(d, PORT_INTERRUPT);
    char args[PORT_MAX_ARGS];
    int error = 0;

    d->up = false;
    forget_fds(d);
    port_spec_devargs(&d->spec, d->mtu, args);
    set_name(d);
    if (d->spec.driver->device) {
        error = rte_vdev_init(d->name, args);
    }
    error = error ? error : rte_eth_dev_get_port_by_name(d->name, &d->id);
    if (error) {
        remove_device(d);
        return device_error(d, "DPDK cannot make a port of it", -error);
    }
    error = start(d, pool, interrupt);
    if (error && interrupt) {
        interrupt = false;
        error = start(d, pool, false);
    }
    if (error) {
        rte_eth_dev_close(d->id);
        remove_device(d);
        return device_error(d, "DPDK cannot start the port", -error);
    }
    d->up = true;
    find_fds(d, interrupt);
    d->unfinished = (has(d, PORT_KERNEL) && !d->spec.keep_offload
                     ? offload_switch_off(d->spec.iface) : 0);
    if (has(d, PORT_MAKES_IFACE)) {
        iface_set_mtu(d->spec.iface, d->mtu);
    }
    if (has(d, PORT_PACKET_SOCKET) && d->fds[0] >= 0) {
        af_packet_tune(d->fds[0], port_frame_size(d->mtu) * 512);
    }
    return NULL;
}

char *
port_device_open_rings(struct port_device *d, const char *name,
                       struct rte_ring *const in[],
                       struct rte_ring *const out[], unsigned int n,
                       struct rte_mempool *pool)
{
    int id = rte_eth_from_rings(name, in, n, out, n, SOCKET_ID_ANY);
    int error = id < 0 ? -rte_errno : 0;

    d->spec.driver = port_driver_find("ring", 4);
    d->spec.n_queues = n;
    d->spread = true;
    snprintf(d->spec.what, sizeof d->spec.what, "%s", name);
    snprintf(d->name, sizeof d->name, "%s_%s", d->spec.driver->device, name);
    forget_fds(d);
    d->id = id;
    error = error ? error : start(d, pool, false);
    d->up = !error;
    return error ? device_error(d, "DPDK cannot make a port of rings", -error)
                 : NULL;
}

void
port_device_close(struct port_device *d)
{
    if (d->up) {
        rte_eth_dev_stop(d->id);
        rte_eth_dev_close(d->id);
    }
    remove_device(d);
}

void
port_device_arm(struct port_device *d, uint16_t queue)
{
    if (d->up && has(d, PORT_INTERRUPT)) {
        rte_eth_dev_rx_intr_enable(d->id, queue);
    }
}

void
port_device_disarm(struct port_device *d, uint16_t queue)
{
    uint64_t n;

    if (!d->up || !has(d, PORT_INTERRUPT)) {
        return;
    }
    rte_eth_dev_rx_intr_disable(d->id, queue);
    /* The file does not block. */
    if (has(d, PORT_EVENTFD) && d->fds[queue] >= 0
        && read(d->fds[queue], &n, sizeof n) > 0) {
        d->missed_irqs[queue] = 0;
    }
}

static bool
is_readable(int fd)
{
    struct pollfd pfd = { .fd = fd, .events = POLLIN };

    return poll(&pfd, 1, 0) > 0;
}

/* Some drivers have a file for an interrupt that never arrives, such as DPDK's
 * (22.11) for the 82574 that qemu emulates.  So if waits time out repeatedly
 * with a frame in 'queue', the loop must poll it from then on. */
void
port_device_check_rx_irq(struct port_device *d, uint16_t queue)
{
    if (!d->up || !has(d, PORT_EVENTFD) || d->fds[queue] < 0
        || rte_eth_rx_queue_count(d->id, queue) <= 0
        || is_readable(d->fds[queue])) {
        return;
    }
    if (++d->missed_irqs[queue] >= MAX_MISSED_IRQS) {
        d->fds[queue] = -1;
        __atomic_store_n(&d->rx_irq_broken, true, __ATOMIC_RELAXED);
    }
}
