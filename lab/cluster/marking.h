/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_MARKING_H
#define LAB_MARKING_H 1

/* A port that marks ECN-capable packets while its queue is long.
 *
 * Not every kernel has a queue that marks (the qdiscs "red" and "codel"), but
 * a BPF program on the way to the queue can compute how long the queue of a
 * link of a constant rate is: it remembers when the link will have sent all
 * earlier packets.  It marks a packet (CE, RFC 3168) that would wait for
 * longer than the link needs for MARKING_BYTES, as DCTCP asks of a switch
 * ("Data Center TCP", SIGCOMM 2010, section 3.1).
 *
 * The program is attached to the interface and is removed with it. */

#include <stdint.h>

#define MARKING_BYTES 30000     /* Queue above which packets are marked. */

/* Attaches the program to the output of 'dev', a port with 'rate_bps' in
 * network namespace 'ns'.  Returns NULL or a message. */
char *marking_attach(const char *ns, const char *dev, int64_t rate_bps);

#endif /* lab/cluster/marking.h */
