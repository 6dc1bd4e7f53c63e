/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_SHAPING_H
#define LAB_SHAPING_H 1

/* A switch port in software: a rate and eight strict priorities.
 *
 *
 * Motivation
 * ==========
 *
 * Neither Open vSwitch's userspace datapath nor a bridge has priority queues
 * of its own, so the fabric's ports get them from the kernel: one HTB class a
 * level at each port, chosen by the first three bits of the DSCP.  Each class
 * keeps 1 % of the rate whatever goes before it, hence priority is strict for
 * the other 92 %.  ARP goes with the control level: a cluster that is busy
 * must not forget its neighbours.
 *
 *
 * Usage
 * =====
 *
 *    struct ds commands = DS_EMPTY_INITIALIZER;
 *    shaping_put(&commands, "p0", 50000000, 9000);
 *    ...tc -batch with that as its input... */

#include <stdint.h>

struct ds;

/* Appends to 'commands' the lines of "tc -batch" that make 'dev' a port of
 * 'rate_bps' that carries IP packets of up to 'mtu' bytes. */
void shaping_put(struct ds *commands, const char *dev, int64_t rate_bps,
                 int mtu);

#endif /* lab/cluster/shaping.h */
