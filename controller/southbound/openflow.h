/* SPDX-License-Identifier: Apache-2.0 */

#ifndef OPENFLOW_H
#define OPENFLOW_H 1

/* The driver of a switch that speaks OpenFlow 1.3 or 1.4.
 *
 *
 * Motivation
 * ==========
 *
 * This keeps the flows and groups of a flow_table in a switch and touches
 * nothing that is not its own: its flows carry its cookie, the difference
 * between what is there and what is wanted is all that is sent, in one bundle
 * where there are bundles (1.4), and a lost connection changes nothing in the
 * switch.  After what was sent comes a barrier and a dump: only what the
 * switch says it has counts as applied.
 *
 * Two controllers that both believe to be active are told apart by the switch:
 * before anything is changed in it, each connection asks for the primary role
 * with the leader's generation, and a switch refuses an older one.
 *
 * A switch may also be somebody else's.  It says its datapath id first, and
 * who created the driver may refuse it; what cannot be read, what nobody asked
 * for and what does not come ends the connection or is ignored, and a switch
 * that goes on so is asked at ever longer intervals.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * See driver.h.  A place with a slow switch costs nothing: requests in flight
 * are one dump or one batch of changes.  Ports that are known are bounded. */

#include "controller/southbound/driver.h"

struct ofpbuf;
struct openflow;

#define OPENFLOW_MAX_PORTS 0xff00

struct driver *openflow_create(const char *target,
                               const struct driver_events *, void *aux);

/* For tests: handles 'msg', the whole of a message, as if it had come from the
 * switch just now as the answer to whatever was asked, or is asked next. */
void openflow_test_answer(struct driver *, struct ofpbuf *msg);

#endif /* controller/southbound/openflow.h */
