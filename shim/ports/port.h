/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_PORT_H
#define SHIM_PORT_H 1

/* One of the shim's two network ports.
 *
 *
 * Motivation
 * ==========
 *
 * A port that no longer sends cuts the host off, silently: DPDK says "sent"
 * when a frame is in the ring.  So a port keeps what the driver refused and
 * tries it again, tells the kernel again to send what is left in the ring, and
 * can be taken down and set up anew while the process runs.  port_check()
 * says when that is needed:
 *
 *   - the driver took nothing for 200 ms although frames were waiting,
 *   - the kernel counts nothing on the interface although frames were handed
 *     over all the time, or
 *   - the interface is another one than before (it was deleted and made
 *     again).
 *
 * Frames longer than the interface's MTU are dropped here, and counted.  What
 * a kernel left unfinished is finished when it is received; see finish.h.
 *
 *
 * Usage
 * =====
 *
 * The loop:
 *
 *    n = port_receive(port, frames, 32);
 *    if (port_tx_space(port)) {
 *        port_send(port, frame);         (or port_send_burst())
 *    }
 *    port_flush(port, now);
 *    ...when there is nothing to do:
 *    if (port_kick(port)) {
 *        ...come back soon...
 *    }
 *
 * Where it may have several threads, a port that keeps each flow in one of
 * several queues has a struct port for each queue, which all of the above goes
 * for.  The first one is the port itself:
 *
 *    if (port_n_queues(port) > 1) {
 *        n = port_receive(port_queue(port, 1), frames, 32);
 *    }
 *
 * The control thread, a few times a second:
 *
 *    why = port_check(port, now);
 *    if (why) {
 *        ...make the loop keep its hands off...
 *        error = port_restart(port);
 *        ...let it go on...
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * As above, with one thread for each queue; what both touch is atomic.  Frames
 * given to port_send() belong to the port, those from port_receive() to the
 * caller.  The control thread's functions are for the port itself, and speak
 * of all of its queues, which are destroyed with it. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/ports/port-spec.h"

#define PORT_BURST 64           /* Frames at a time. */

struct port;
struct rte_mbuf;
struct rte_mempool;
struct rte_ring;

/* 'index' is 0 or 1 and unique in the process.  Returns NULL or a malloc()'d
 * message. */
char *port_create(const struct port_spec *, unsigned int index, uint32_t mtu,
                  struct rte_mempool *, struct port **);

/* A port between rings of packet buffers instead of an interface: each of its
 * 'n' queues receives what is in its ring of 'in', sends to that of 'out'.
 * 'name' is unique in the process. */
char *port_create_rings(const char *name, uint32_t mtu, struct rte_mempool *,
                        struct rte_ring *const in[],
                        struct rte_ring *const out[], unsigned int n,
                        struct port **);
void port_destroy(struct port *);

unsigned int port_n_queues(const struct port *);
struct port *port_queue(struct port *, unsigned int i);

/* The loop. */
uint16_t port_receive(struct port *, struct rte_mbuf **, uint16_t max);
uint64_t port_received(const struct port *);
uint16_t port_tx_space(const struct port *);
bool port_send(struct port *, struct rte_mbuf *);
uint16_t port_send_burst(struct port *, struct rte_mbuf **, uint16_t n);
bool port_flush(struct port *, uint64_t now);
bool port_kick(struct port *);
int port_fd(const struct port *);
void port_arm(struct port *);
void port_disarm(struct port *);
void port_check_rx_irq(struct port *);

/* The control thread. */
const char *port_check(struct port *, uint64_t now);
char *port_restart(struct port *);
const char *port_iface(const struct port *);
uint64_t port_dropped(struct port *);
uint64_t port_refused(const struct port *);
uint64_t port_completed(const struct port *);
uint64_t port_late_bytes(const struct port *);
int port_unfinished(const struct port *);
bool port_lost_rx_irq(struct port *);

#endif /* shim/ports/port.h */
