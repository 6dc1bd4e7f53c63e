/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_OFFLOAD_H
#define SHIM_OFFLOAD_H 1

/* Disables offloads of kernels that send frames to the shim.
 *
 * A kernel that sends into a veth pair expects the other end to segment
 * packets and to complete checksums, and one that receives from a network card
 * merges packets; see finish.h.  The first is disabled at the other end of the
 * pair, usually in another network namespace, the second at the interface
 * itself.  A kernel that sends into a veth pair also keeps VLAN tags beside
 * the frame, where some drivers of DPDK do not find them, until that is
 * disabled.  All stays disabled when the shim ends, which is harmless. */

#include <stdbool.h>

/* Disables offloads of frames that the calling thread's namespace receives at
 * 'iface', and with 'tags' the offload of VLAN tags.  Returns 0, or a positive
 * errno if unfinished frames may still arrive: ENXIO if the namespace of the
 * other end was not found, EPERM if it may not be entered.  Any thread. */
int offload_switch_off(const char *iface, bool tags);

/* Stores whether the kernel at the other end of the veth pair of 'iface'
 * leaves segmentation to a card now: others may have enabled it again.
 * Returns 0, or a positive errno if that is unknown, such as ENODEV without a
 * veth pair.  Any thread. */
int offload_read_tso(const char *iface, bool *tso);

#endif /* shim/ports/offload.h */
