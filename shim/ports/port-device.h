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
 *    port_device_arm(&d, 0);
 *    ...poll d.fds[0]...
 *    port_device_disarm(&d, 0);
 *    port_device_close(&d);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * 'fds' are the driver's.  One thread at a time; while it is up, one for each
 * queue. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/ports/port-spec.h"

struct rte_mempool;
struct rte_ring;

struct port_device {
    struct port_spec spec;
    unsigned int index;         /* Unique in the process. */
    uint32_t mtu;               /* Bytes of IP. */
    bool spread;                /* Who fills the receive queues keeps each
                                 * flow in one of them. */

    /* Set by port_device_open(). */
    bool up;                    /* The device is there. */
    char name[256];             /* What DPDK calls it. */
    uint16_t id;                /* DPDK's number, if 'up'. */
    uint16_t n_queues;          /* Of them in each direction. */
    int fds[PORT_MAX_QUEUES];   /* Each is readable when a frame is in the
                                 * queue; -1 if the driver has nothing like
                                 * that, or only says so. */
    uint8_t untold[PORT_MAX_QUEUES];    /* Waits in a row that ended with a
                                         * frame of which nothing told. */
    bool deaf;                  /* A queue's file has been given up.  Atomic,
                                 * until somebody has seen it. */
    int unfinished;             /* 0, or a positive errno: why frames may come
                                 * unfinished, see offload.h. */
};

/* Returns NULL or a malloc()'d message; then 'up' is false. */
char *port_device_open(struct port_device *, struct rte_mempool *);
void port_device_close(struct port_device *);

/* Opens a device called 'name' that receives what is in 'in' and sends to
 * 'out', 'n' of each; 'spec' is set. */
char *port_device_open_rings(struct port_device *, const char *name,
                             struct rte_ring *const in[],
                             struct rte_ring *const out[], unsigned int n,
                             struct rte_mempool *);

/* From one to the other, a frame in 'queue' makes its file descriptor
 * readable.  One that is there already may not. */
void port_device_arm(struct port_device *, uint16_t queue);
void port_device_disarm(struct port_device *, uint16_t queue);

/* Between the two: a long wait has ended without a word. */
void port_device_check_rx_irq(struct port_device *, uint16_t queue);

#endif /* shim/ports/port-device.h */
