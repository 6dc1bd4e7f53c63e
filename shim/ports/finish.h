/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_FINISH_H
#define SHIM_FINISH_H 1

/* Makes a packet of what a kernel passes on.
 *
 *
 * Motivation
 * ==========
 *
 * A kernel leaves work to the network card: it sends packets of up to 64 kB,
 * to be cut, and TCP and UDP checksums that cover only the pseudo header, to
 * be completed.  Between the ends of a veth pair nobody does that work, and a
 * packet socket hands the frames over as they are.  Forwarded like that, ping
 * works and TCP does not: the far end drops every segment.
 *
 * offload.h asks the sending kernel to do it all itself.  Where that cannot be
 * done, this completes the checksums, and refuses what is longer than the
 * MTU: TCP then goes on with what fits, slowly, and a counter says why.
 *
 * A partial checksum is recognised by its value, the sum of the pseudo header.
 * A finished one is that by chance once in 65536, and then it is checked
 * whether the whole is right, which it leaves alone.  So the one frame that
 * is made right and was not is one that was damaged on the way, in just this
 * manner.
 *
 * Not completed: what is inside a tunnel, and SCTP.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The frame stays the caller's. */

#include <stdint.h>

struct rte_mbuf;

enum finish {
    FINISH_WHOLE,               /* It was as it should be. */
    FINISH_COMPLETED,           /* Its checksum is complete now. */
    FINISH_TOO_LONG,            /* To be cut by somebody: drop it. */
};

/* Looks at 'frame', whose IP packet may have 'max' bytes, puts it into one
 * segment and completes its checksum. */
enum finish finish_frame(struct rte_mbuf *frame, uint32_t max);

#endif /* shim/ports/finish.h */
