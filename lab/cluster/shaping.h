/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_SHAPING_H
#define LAB_SHAPING_H 1

/* A switch port in software: a rate and eight strict priorities.
 *
 *
 * Motivation
 * ==========
 *
 * Neither the userspace datapath of Open vSwitch nor a bridge has priority
 * queues, so the ports of the fabric use the kernel's: one HTB class for each
 * level, selected by the first three bits of the DSCP.  Each class has a
 * guaranteed 1 % of the rate, so priority is strict for the other 92 %.  ARP
 * has the control level, so that a congested cluster does not lose its
 * neighbour entries.
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

/* Appends lines of "tc -batch" to 'commands' that give 'dev' the rate
 * 'rate_bps' for IP packets of up to 'mtu' bytes. */
void shaping_put(struct ds *commands, const char *dev, int64_t rate_bps,
                 int mtu);

#endif /* lab/cluster/shaping.h */
