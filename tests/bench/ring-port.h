/* SPDX-License-Identifier: Apache-2.0 */

#ifndef RING_PORT_H
#define RING_PORT_H 1

/* A port (shim/ports/port.h) over a ring, for programs that measure or test
 * the pipeline without a network.
 *
 * The loop's half of port.h is what the pipeline calls.  Here it goes to
 * DPDK's ring driver, through the same calls and with the same checks as in
 * the shim, so that what a packet costs is comparable with dpdk-testpmd on
 * ring ports.
 *
 *    port = ring_port_create("host", to_host, from_host);
 *    ...forward_create() with it, forward_poll()...
 *    ring_port_destroy(port);
 *
 * The rings stay the caller's.  As port.h. */

#include <stdint.h>

struct port;
struct rte_mbuf;
struct rte_ring;

/* Frames are sent to 'tx' and received from 'rx'.  Returns NULL if DPDK cannot
 * create the port. */
struct port *ring_port_create(const char *name, struct rte_ring *tx,
                              struct rte_ring *rx);
void ring_port_destroy(struct port *);

/* Sends frames directly, as testpmd does. */
void ring_port_send_burst(struct port *, struct rte_mbuf **, uint16_t n);

#endif /* tests/bench/ring-port.h */
