/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_AF_PACKET_H
#define SHIM_AF_PACKET_H 1

/* What DPDK's af_packet driver leaves to be done on its socket.
 *
 *
 * Motivation
 * ==========
 *
 * The driver puts frames into the transmit ring and tells the kernel to send
 * them.  The kernel stops in the middle, with frames left in the ring, when
 * the socket's buffer is full or the device refuses one; the driver counts
 * them as sent, and nothing sends them until there is another packet.  At the
 * end of a burst that is the sender's timeout.  And a full ring makes the
 * driver wait in poll() without limit if the socket's buffer is full, too.
 *
 * So we find the driver's socket among our file descriptors, give it a buffer
 * that is larger than the ring (the limit is then the ring, which the driver
 * handles), and can tell the kernel again to send what is left.  The socket
 * also lets a loop sleep until a frame arrives, and knows what the kernel
 * dropped since the receive ring was full.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The socket is the driver's: none of this closes it.  Any thread. */

#include <stdbool.h>
#include <stdint.h>

int af_packet_find(const char *iface);
int af_packet_tune(int fd, uint32_t ring_bytes);
int af_packet_kick(int fd);
uint32_t af_packet_dropped(int fd);
void af_packet_clear_error(int fd);

/* Of a network interface of the calling thread's network namespace. */
int iface_mtu(const char *iface);
bool iface_is_up(const char *iface);
int iface_set_mtu(const char *iface, uint32_t mtu);
int iface_sent(const char *iface, uint64_t *n);

#endif /* shim/ports/af-packet.h */
