/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_ABOUT_H
#define SHIM_ABOUT_H 1

/* What an operator has to know of a running shim, for "stagecoach doctor".
 *
 * The reply to SHIM_ABOUT has a line "NAME VALUE" for each of these:
 *
 *    version        Of the program.
 *    uplink         KIND:WHAT of --uplink.
 *    driver         Of the network card: the kernel's, or DPDK's for pci.
 *    mtu            Of --mtu, bytes of IP.
 *    uplink_mtu     Of the kernel's interface.
 *    merges         Offloads by which the kernel merges received packets at
 *                   the uplink: "gro", "lro", "gro,lro" or "none".
 *    host_tso       "on" if the host's kernel, at the other end of a veth
 *    pair,
 *                   leaves segmentation to a card: the shim drops its long
 *                   packets.  Otherwise "off".
 *    memory         Of the packet buffers: "huge" pages or "ordinary" ones.
 *    cc             Congestion control, "on" or "off".
 *    switch_queues  "one" or "strict".
 *    tag            "on", or "off" if DSCPs are not changed.
 *    host_tags      "yes" if the host's frames have slot tags, or "no".
 *
 * Unknown values are left out.  The interface is read for each reply, because
 * others change it. */

#include <stddef.h>

struct options;

/* Writes the null-terminated lines. */
void about_write(const struct options *, char *text, size_t size);

#endif /* shim/about.h */
