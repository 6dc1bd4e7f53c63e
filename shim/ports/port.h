/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_PORT_H
#define SHIM_PORT_H 1

/* A network port of the shim.
 *
 * A port that no longer sends cuts the host off silently: DPDK reports a frame
 * as sent when it is in the ring.  So a port keeps frames that the driver
 * refused and tries them again, requests the kernel again to send what is left
 * in the ring, and can be restarted while the process runs.  port_check()
 * finds out when that is needed:
 *
 *   - the driver accepted nothing for 200 ms although frames were waiting,
 *   - the interface's transmit counter stands still although frames were
 *     offered all the time, or
 *   - the interface was deleted and made again.
 *
 * Frames longer than the interface's MTU are dropped here, and counted.
 * Frames that a kernel left unfinished are completed when received; see
 * finish.h.
 *
 * A frame of a port with slot tags is received without its tag, which is in
 * 'vlan_tci' of the mbuf if RTE_MBUF_F_RX_VLAN_STRIPPED is set.
 *
 * The loop:
 *
 *    n = port_receive(port, frames, PORT_BURST);
 *    if (port_tx_space(port)) {
 *        port_send(port, frame);         (or port_send_burst())
 *    }
 *    port_flush(port, now);
 *    ...when idle:
 *    if (port_kick(port)) {
 *        ...poll again soon...
 *    }
 *
 * The control thread, a few times a second:
 *
 *    why = port_check(port, now);
 *    if (why) {
 *        ...pause the loop...
 *        error = port_restart(port);
 *        ...resume the loop...
 *    }
 *
 * Frames given to port_send() belong to the port, those from port_receive() to
 * the caller. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/ports/port-spec.h"

#define PORT_BURST 64           /* Frames at a time. */

struct port;
struct rte_mbuf;
struct rte_mempool;
struct rte_ring;
struct shim_stats;

/* 'index' is 0 or 1 and unique in the process.  Returns NULL or a malloc()'d
 * message. */
char *port_create(const struct port_spec *, unsigned int index, uint32_t mtu,
                  struct rte_mempool *, struct port **);

/* Makes a port that receives from the ring 'in' and sends to 'out', rings of
 * packet buffers.  'name' is unique in the process.  'slot_tags' is as in
 * struct port_spec. */
char *port_create_rings(const char *name, uint32_t mtu, bool slot_tags,
                        struct rte_mempool *, struct rte_ring *in,
                        struct rte_ring *out, struct port **);
void port_destroy(struct port *);

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
void port_add_stats(struct port *, struct shim_stats *);
int port_unfinished(const struct port *);
bool port_lost_rx_irq(struct port *);

#endif /* shim/ports/port.h */
