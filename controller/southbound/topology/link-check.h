/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LINK_CHECK_H
#define LINK_CHECK_H 1

/* Checks the cables between switches against the topology file.
 *
 * Cables are plugged by hand.  Two swapped cables send paths through other
 * switches than the topology file says, and no other check would show it.  So
 * the controller sends a probe out of each end of each link at intervals, and
 * compares the port that receives it with the file.  A difference raises an
 * alarm and changes nothing else, because frames can be forged.
 *
 * A probe is an LLDP frame, so that no standard bridge forwards it, with a TLV
 * of our own: the sending switch and port, the controller's session, a
 * sequence number, and an HMAC-SHA256 of these.  Other LLDP frames are
 * ignored.
 *
 * A probe counts once, if it belongs to this controller's session, its code is
 * valid, and it is one of the last two of its port.  All others, and probes
 * above the limit of a switch, are counted and ignored.  An attacker that
 * copies a probe may deliver the copy first, so a cable counts as wrong only
 * after two consecutive probes were received at another port.
 *
 *    struct link_check *lc = link_check_create(topology, &key);
 *
 *    link_check_run(lc, send, aux);          // Sends probes that are due.
 *    link_check_wait(lc);
 *    link_check_receive(lc, sw, port, frame, size);
 *    link_check_alarms(lc, alarms);
 *
 * The topology must outlive the check; the key is copied.  Main thread
 * only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/southbound/topology/topology.h"

struct json;
struct link_check;

#define LLDP_MAX_SIZE 160
#define LLDP_ETH_TYPE 0x88cc
#define LLDP_ETH_DST { 0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e }

/* A key: the whole content of a file, in bytes. */
#define LLDP_MIN_KEY 16
#define LLDP_MAX_KEY 4096
struct lldp_key {
    uint8_t bytes[LLDP_MAX_KEY + 1];    /* One more to find larger files. */
    size_t n;
};

/* Reads a key.  Returns NULL, or an error message that the caller frees. */
char *lldp_key_read(const char *file, struct lldp_key *);

/* Interval of the probes of a port, and the number of consecutive lost probes
 * after which a link counts as silent. */
#define LINK_CHECK_MSEC 5000
#define LINK_CHECK_LOST 3

/* Sends 'frame' out of port 'from'.  Returns false if that is not possible, or
 * if the switch at the other end, 'to', could not report it. */
typedef bool link_check_send_func(const struct topology_port *from,
                                  const struct topology_port *to,
                                  const void *frame, size_t, void *aux);

struct link_check *link_check_create(const struct topology *,
                                     const struct lldp_key *);
void link_check_destroy(struct link_check *);

void link_check_run(struct link_check *, link_check_send_func *, void *aux);
void link_check_wait(const struct link_check *);

/* Handles a frame that was received at 'port' of switch 'sw'. */
void link_check_receive(struct link_check *, int sw, uint32_t port,
                        const void *frame, size_t size);

/* Appends a text for each end of a link that is silent or wrong. */
void link_check_alarms(const struct link_check *, struct json *alarms);

/* Returns {"links", "right" (links with both directions verified)} and counts
 * of probes: "sent", "heard" (received), "forged", "replayed", "ignored". */
struct json *link_check_to_json(const struct link_check *);

#endif /* controller/southbound/topology/link-check.h */
