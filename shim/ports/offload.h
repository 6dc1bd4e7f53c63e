/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_OFFLOAD_H
#define SHIM_OFFLOAD_H 1

/* Asks kernels to pass on nothing but finished packets.
 *
 *
 * Motivation
 * ==========
 *
 * A kernel that sends into a veth pair counts on the other end to cut packets
 * and to complete checksums, and one that receives from a network card puts
 * packets together; see finish.h.  Both can be switched off: the first at the
 * pair's other end, which is mostly in another network namespace, the second
 * at the interface itself.
 *
 * The other end's namespace is found among those that have a name or a
 * process in them.  It stays as it is when the shim ends: nothing is wrong
 * with finished packets.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * For any thread; the calling thread's namespace does not change. */

/* For frames that the calling thread's namespace receives at 'iface'.  Returns
 * 0, or a positive errno if they may still come unfinished: ENXIO if the
 * other end's namespace was not found, EPERM if it may not be entered. */
int offload_switch_off(const char *iface);

#endif /* shim/ports/offload.h */
