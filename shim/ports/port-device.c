/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/ports/port-device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>

#include "shim/ports/af-packet.h"
#include "shim/ports/offload.h"
#include "shim/ports/port-driver.h"

#define N_DESCRIPTORS 1024      /* Of a queue, fewer if the driver says. */

static bool
has(const struct port_device *d, unsigned int flag)
{
    return d->spec.driver->flags & flag;
}

static char *
message(const struct port_device *d, const char *what, int error)
{
    char *s;

    return asprintf(&s, "%s: %s (%s)", d->spec.what, what,
                    strerror(error)) < 0 ? strdup("no memory") : s;
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

static int
configure(struct port_device *d, bool interrupt)
{
    struct rte_eth_conf conf;

    memset(&conf, 0, sizeof conf);
    conf.intr_conf.rxq = interrupt;
    if (has(d, PORT_SET_MTU)) {
        conf.rxmode.mtu = d->mtu;
    }
    return rte_eth_dev_configure(d->id, 1, 1, &conf);
}

static int
set_up_queues(struct port_device *d, struct rte_mempool *pool)
{
    uint16_t n_rx = N_DESCRIPTORS, n_tx = N_DESCRIPTORS;
    int error = rte_eth_dev_adjust_nb_rx_tx_desc(d->id, &n_rx, &n_tx);

    if (!error) {
        error = rte_eth_rx_queue_setup(d->id, 0, n_rx, SOCKET_ID_ANY, NULL,
                                       pool);
    }
    return error ? error
           : rte_eth_tx_queue_setup(d->id, 0, n_tx, SOCKET_ID_ANY, NULL);
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
find_fd(struct port_device *d, bool interrupt)
{
    d->fd = -1;
    if (has(d, PORT_PACKET_SOCKET)) {
        d->fd = af_packet_find(d->spec.iface);
    } else if (interrupt) {
        d->fd = rte_eth_dev_rx_intr_ctl_q_get_fd(d->id, 0);
    }
}

/* Takes away what port_device_open() made of the device. */
static void
remove_device(struct port_device *d)
{
    d->up = false;
    d->fd = -1;
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
    d->fd = -1;
    port_spec_devargs(&d->spec, d->mtu, args);
    set_name(d);
    if (d->spec.driver->device) {
        error = rte_vdev_init(d->name, args);
    }
    error = error ? error : rte_eth_dev_get_port_by_name(d->name, &d->id);
    if (error) {
        remove_device(d);
        return message(d, "DPDK cannot make a port of it", -error);
    }
    error = start(d, pool, interrupt);
    if (error && interrupt) {
        interrupt = false;
        error = start(d, pool, false);
    }
    if (error) {
        rte_eth_dev_close(d->id);
        remove_device(d);
        return message(d, "DPDK cannot start the port", -error);
    }
    d->up = true;
    find_fd(d, interrupt);
    d->unfinished = (has(d, PORT_KERNEL) && !d->spec.keep_offload
                     ? offload_switch_off(d->spec.iface) : 0);
    if (has(d, PORT_MAKES_IFACE)) {
        iface_set_mtu(d->spec.iface, d->mtu);
    }
    if (has(d, PORT_PACKET_SOCKET) && d->fd >= 0) {
        af_packet_tune(d->fd, port_frame_size(d->mtu) * 512);
    }
    return NULL;
}

char *
port_device_open_rings(struct port_device *d, const char *name,
                       struct rte_ring *in, struct rte_ring *out,
                       struct rte_mempool *pool)
{
    int id = rte_eth_from_rings(name, &in, 1, &out, 1, SOCKET_ID_ANY);
    int error = id < 0 ? -rte_errno : 0;

    d->spec.driver = port_driver_find("ring", 4);
    snprintf(d->spec.what, sizeof d->spec.what, "%s", name);
    snprintf(d->name, sizeof d->name, "%s_%s", d->spec.driver->device, name);
    d->fd = -1;
    d->id = id;
    error = error ? error : start(d, pool, false);
    d->up = !error;
    return error ? message(d, "DPDK cannot make a port of rings", -error)
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
port_device_arm(struct port_device *d)
{
    if (d->up && has(d, PORT_INTERRUPT)) {
        rte_eth_dev_rx_intr_enable(d->id, 0);
    }
}

void
port_device_disarm(struct port_device *d)
{
    uint64_t n;

    if (!d->up || !has(d, PORT_INTERRUPT)) {
        return;
    }
    rte_eth_dev_rx_intr_disable(d->id, 0);
    if (has(d, PORT_EVENTFD) && d->fd >= 0
        && read(d->fd, &n, sizeof n) < 0) {
        return;         /* No frame came, and the file does not block. */
    }
}
