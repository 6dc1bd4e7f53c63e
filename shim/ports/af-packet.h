/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_AF_PACKET_H
#define SHIM_AF_PACKET_H 1

/* The packet socket of DPDK's af_packet driver, and interfaces of the kernel.
 *
 * The driver puts frames into the transmit ring and requests the kernel to
 * send them.  If the socket's buffer is full or the device refuses a frame,
 * the kernel stops with frames left in the ring.  The driver has counted them
 * as sent, and nothing sends them until the next packet; after the last packet
 * of a burst that is the sender's retransmission timeout.  If the ring and the
 * socket's buffer are full, the driver waits in poll() without limit.
 *
 * So the driver's socket is found among the process's file descriptors and
 * given a buffer larger than the ring, so that the ring, which the driver
 * handles, is the limit; af_packet_kick() requests the kernel again to send
 * what is left.  The socket also becomes readable when a frame arrives, and
 * counts the frames that were dropped because the receive ring was full.
 *
 * The driver owns the socket.  Any thread. */

#include <stdbool.h>
#include <stdint.h>

int af_packet_find(const char *iface);
int af_packet_tune(int fd, uint32_t ring_bytes);
int af_packet_kick(int fd);
uint32_t af_packet_dropped(int fd);
void af_packet_clear_error(int fd);

struct ifreq;

/* For interfaces of the calling thread's network namespace. */
int iface_ioctl(const char *iface, unsigned long request, struct ifreq *);
int iface_mtu(const char *iface);
bool iface_is_up(const char *iface);
int iface_set_mtu(const char *iface, uint32_t mtu);
int iface_sent(const char *iface, uint64_t *n);

#endif /* shim/ports/af-packet.h */
