/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_PORT_PRIVATE_H
#define SHIM_PORT_PRIVATE_H 1

/* What the files of port.h share: port.c makes ports and has what the loop
 * does with them, port-check.c what the control thread sees of them.
 *
 * Only those two include this. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/ports/port-device.h"
#include "shim/ports/port-driver.h"
#include "shim/ports/port.h"

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
port_has(const struct port *port, unsigned int flag)
{
    return port->first->device.spec.driver->flags & flag;
}

/* port.c: */
void port_set_max_packet(struct port *, uint32_t mtu);

/* port-check.c: */
void port_check_reset(struct port *);

#endif /* shim/ports/port-private.h */
