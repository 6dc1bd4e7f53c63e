/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_PORT_DEVICE_H
#define SHIM_PORT_DEVICE_H 1

/* The DPDK device of a port: opened, started and closed.
 *
 * The differences between drivers at the start of a device are here; port.c is
 * the same for all drivers.
 *
 *    struct port_device d = { .spec = spec, .index = 0, .mtu = 1500 };
 *
 *    error = port_device_open(&d, pool);
 *    ...rte_eth_rx_burst(d.id, 0, ...)...
 *    port_device_arm(&d, 0);
 *    ...poll d.fds[0]...
 *    port_device_disarm(&d, 0);
 *    port_device_close(&d);
 *
 * The driver owns the files of 'fds'.  One thread at a time; while 'up', one
 * for each queue. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/ports/port-spec.h"

struct rte_mempool;
struct rte_ring;

struct port_device {
    struct port_spec spec;
    unsigned int index;         /* Unique in the process. */
    uint32_t mtu;               /* Bytes of IP. */
    bool spread;                /* The receive queues already keep each flow
                                 * in one of them. */

    /* Set by port_device_open(). */
    bool up;                    /* The device is open. */
    char name[256];             /* DPDK's name of the device. */
    uint16_t id;                /* DPDK's number, if 'up'. */
    uint16_t n_queues;          /* In each direction. */
    int fds[PORT_MAX_QUEUES];   /* Readable when a frame is in the queue; -1
                                 * without a receive interrupt, or one that
                                 * does not work. */
    uint8_t missed_irqs[PORT_MAX_QUEUES];       /* Waits in a row that timed
                                                 * out with a frame in the
                                                 * queue. */
    bool rx_irq_broken;         /* A receive interrupt does not work; atomic,
                                 * cleared by port_lost_rx_irq(). */
    int unfinished;             /* 0, or the errno for which unfinished frames
                                 * may arrive, see offload.h. */
};

/* Returns NULL or a malloc()'d message; then 'up' is false. */
char *port_device_open(struct port_device *, struct rte_mempool *);
void port_device_close(struct port_device *);

/* Opens a device 'name' that receives from the 'n' rings of 'in' and sends to
 * those of 'out'.  Sets 'spec'. */
char *port_device_open_rings(struct port_device *, const char *name,
                             struct rte_ring *const in[],
                             struct rte_ring *const out[], unsigned int n,
                             struct rte_mempool *);

/* Enable and disable the receive interrupt, which makes the file of 'queue'
 * readable when a frame arrives, but not for one that is already there. */
void port_device_arm(struct port_device *, uint16_t queue);
void port_device_disarm(struct port_device *, uint16_t queue);

/* To be called between the two after a long wait without an interrupt. */
void port_device_check_rx_irq(struct port_device *, uint16_t queue);

#endif /* shim/ports/port-device.h */
