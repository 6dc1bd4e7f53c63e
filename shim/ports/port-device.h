/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_PORT_DEVICE_H
#define SHIM_PORT_DEVICE_H 1

/* DPDK's device of a port: made, started, and taken down.
 *
 *
 * Motivation
 * ==========
 *
 * What is different from driver to driver when a device starts is here, and
 * port.c has what is the same for all while it runs.
 *
 *
 * Usage
 * =====
 *
 *    struct port_device d = { .spec = spec, .index = 0, .mtu = 1500 };
 *
 *    error = port_device_open(&d, pool);
 *    ...rte_eth_rx_burst(d.id, 0, ...)...
 *    port_device_arm(&d);
 *    ...poll d.fd...
 *    port_device_disarm(&d);
 *    port_device_close(&d);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * 'fd' is the driver's.  One thread at a time. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/ports/port-spec.h"

struct rte_mempool;
struct rte_ring;

struct port_device {
    struct port_spec spec;
    unsigned int index;         /* Unique in the process. */
    uint32_t mtu;               /* Bytes of IP. */

    /* Set by port_device_open(). */
    bool up;                    /* The device is there. */
    char name[256];             /* What DPDK calls it. */
    uint16_t id;                /* DPDK's number, if 'up'. */
    int fd;                     /* Readable when a frame is there; -1 if the
                                 * driver has nothing like that. */
    int unfinished;             /* 0, or a positive errno: why frames may come
                                 * unfinished, see offload.h. */
};

/* Returns NULL or a malloc()'d message; then 'up' is false. */
char *port_device_open(struct port_device *, struct rte_mempool *);
void port_device_close(struct port_device *);

/* Opens a device called 'name' that receives what is in 'in' and sends to
 * 'out'; 'spec' is set. */
char *port_device_open_rings(struct port_device *, const char *name,
                             struct rte_ring *in, struct rte_ring *out,
                             struct rte_mempool *);

/* From one to the other, a frame makes 'fd' readable.  One that is there
 * already may not. */
void port_device_arm(struct port_device *);
void port_device_disarm(struct port_device *);

#endif /* shim/ports/port-device.h */
