/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_SWITCH_BUFFERS_H
#define LAB_SWITCH_BUFFERS_H 1

/* Gives the lab's switch the buffers of a switch.
 *
 *
 * Motivation
 * ==========
 *
 * Open vSwitch's userspace datapath sends the packets of all its ports through
 * one packet socket, and a packet counts against that socket's send buffer
 * until the port's queue has let it go.  The default of some 200 kB is a dozen
 * large packets for the whole switch: as soon as one port's low level holds
 * that much, the switch drops what it has for every other port, and nothing
 * counts it.  Whole transfers stand still while small packets pass.  Its
 * receive sockets are as small.
 *
 * There is no option for it, and the system's default is not the lab's to
 * change, so the lab widens the sockets of the running switch.
 *
 *
 * Usage
 * =====
 *
 * Call switch_buffers_widen() now and then: the switch makes its sockets when
 * it needs them, and another set when it was started again. */

#include <sys/types.h>

/* Widens the packet sockets of process 'pid' that are not wide yet.  Returns 0
 * or a positive errno value: the process is gone, or may not be looked at. */
int switch_buffers_widen(pid_t pid);

#endif /* lab/cluster/switch-buffers.h */
