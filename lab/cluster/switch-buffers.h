/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_SWITCH_BUFFERS_H
#define LAB_SWITCH_BUFFERS_H 1

/* Enlarges the socket buffers of the lab's switch.
 *
 * The userspace datapath of Open vSwitch sends the packets of all ports
 * through one packet socket.  A packet counts against the send buffer of that
 * socket until the queue of its port has sent it.  The default of about 200 kB
 * is a dozen large packets for the whole switch: if the lowest level of one
 * port holds that much, the switch drops the packets of all other ports,
 * without counting them.  Large transfers stall while small packets pass.  The
 * receive buffers are as small.
 *
 * Open vSwitch has no option for the size, and the default of the system must
 * not change, so the lab widens the sockets of the running switch.
 *
 * Call switch_buffers_widen() periodically: the switch creates sockets when it
 * needs them and after a restart. */

#include <sys/types.h>

/* Widens the packet sockets of process 'pid' that are not wide yet. */
void switch_buffers_widen(pid_t pid);

#endif /* lab/cluster/switch-buffers.h */
