/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LINK_CHECK_H
#define LINK_CHECK_H 1

/* Are the cables where the topology has them?
 *
 *
 * Motivation
 * ==========
 *
 * The topology is what an operator wrote, and cables are plugged by hand.  Two
 * that were swapped send each path somewhere else than it should go, and
 * nothing else tells.  So a frame (lldp.h) leaves each end of each link now
 * and then, and where it comes in is compared with the file.  A difference is
 * said in words, and changes nothing: what comes from a network can be forged,
 * so nobody learns from it where anything is.
 *
 * A frame counts once, if it is of this controller, has the key's code and is
 * one of the last two of its port.  Everything else is counted and ignored, and
 * so is what comes faster than frames can.  Who can copy frames on their way
 * may be faster than they are, hence where a cable goes is decided by two
 * frames in a row that did not come in where they should.
 *
 *
 * Usage
 * =====
 *
 *    struct link_check *lc = link_check_create(topology, &key);
 *
 *    link_check_run(lc, send, aux);          // Sends what is due.
 *    link_check_wait(lc);
 *    link_check_heard(lc, sw, port, frame, size);
 *    link_check_alarms(lc, alarms);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The topology must stay, the key is copied.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/southbound/topology/topology.h"

struct json;
struct link_check;
struct lldp_key;

/* From one frame of a port to the next, and after how many that did not come
 * a link is silent. */
#define LINK_CHECK_MSEC 5000
#define LINK_CHECK_LOST 3

/* Sends 'frame' out of a port of the topology.  False if it cannot, or who is
 * at the other end, 'to', could not say that it came. */
typedef bool link_check_send_func(const struct topology_port *from,
                                  const struct topology_port *to,
                                  const void *frame, size_t, void *aux);

struct link_check *link_check_create(const struct topology *,
                                     const struct lldp_key *);
void link_check_destroy(struct link_check *);

void link_check_run(struct link_check *, link_check_send_func *, void *aux);
void link_check_wait(const struct link_check *);

/* A frame came in at 'port' of the switch 'sw'. */
void link_check_heard(struct link_check *, int sw, uint32_t port,
                      const void *frame, size_t size);

/* Appends a line for each link that is not as it should be. */
void link_check_alarms(const struct link_check *, struct json *alarms);

/* {"links", "right" (of which both directions were seen), "sent", "heard",
 * "forged", "replayed", "ignored"} */
struct json *link_check_to_json(const struct link_check *);

#endif /* controller/southbound/topology/link-check.h */
