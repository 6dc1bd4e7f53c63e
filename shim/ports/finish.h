/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_FINISH_H
#define SHIM_FINISH_H 1

/* Completes frames that a kernel left unfinished.
 *
 * A kernel leaves work to the network card: it sends packets of up to 64 kB to
 * be segmented, and TCP and UDP checksums that cover only the pseudo header.
 * A veth pair has no card that does it, and a packet socket receives such
 * frames as they are.  If they are forwarded, ping works and TCP does not: the
 * receiver drops every segment.
 *
 * offload.h disables offloads in the sending kernel.  If that fails, this
 * module completes checksums and rejects packets above the MTU: TCP then
 * continues slowly with smaller ones, and a counter shows the cause.
 *
 * A partial checksum is recognized by its value, the sum of the pseudo header.
 * A complete checksum has that value once in 65536 packets, so then the whole
 * checksum is verified, and left if it is right.  Only a frame that was
 * damaged to have exactly this value becomes wrongly valid.
 *
 * Not completed: frames in tunnels, and SCTP.
 *
 * The frame stays the caller's. */

#include <stdint.h>

struct rte_mbuf;

enum finish {
    FINISH_WHOLE,               /* Nothing to do. */
    FINISH_COMPLETED,           /* The checksum was completed. */
    FINISH_TOO_LONG,            /* Unsegmented: to be dropped. */
};

/* Puts 'frame' into one packet buffer and completes its checksum.  Its IP
 * packet may have 'max' bytes. */
enum finish finish_frame(struct rte_mbuf *frame, uint32_t max);

#endif /* shim/ports/finish.h */
