/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DOCTOR_INTERFACES_H
#define DOCTOR_INTERFACES_H 1

/* What keeps the kernel from the jobs of packets, at the interfaces of this
 * network namespace.
 *
 * The programs of the agent need the socket of a packet (identity.h), which
 * GRO and XDP at the host's end of a pod's interface take away, and bits of
 * the mark, of which Cilium uses nearly all.  Without TCX a filter of another
 * program may run before the agent's.  What a pod or guest sends by a virtual
 * function, and what WireGuard encrypts, is not seen at all.
 *
 *    doctor_check_interfaces(doctor);        // Adds findings "pods".
 *
 * Main thread only.  Asks the kernel, and changes nothing. */

struct doctor;

void doctor_check_interfaces(struct doctor *);

#endif /* agent/doctor/interfaces.h */
