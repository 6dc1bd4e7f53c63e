/* SPDX-License-Identifier: Apache-2.0 */

#ifndef OPENFLOW_H
#define OPENFLOW_H 1

/* Driver for switches with OpenFlow 1.3 or 1.4.
 *
 * The driver keeps the flows and groups of a flow_table in a switch and does
 * not touch other entries: its flows have a cookie of their own.  It dumps
 * them and all groups, and sends only the differences, in one bundle with
 * OpenFlow 1.4.  A lost connection changes nothing in the switch.  Changes are
 * followed by a barrier and a dump, and only entries in the dump count as
 * applied.
 *
 * A dump costs a switch time of its processor.  So there is one after each
 * connection, change and error, when the switch reports that others have
 * deleted a flow, and else only every five minutes: no message reports flows
 * that others have modified.
 *
 * The switch protects itself from a controller that has lost the leadership:
 * each connection first requests the primary role with the leader's
 * generation, and the switch refuses an older generation.  Its reply then has
 * the generation that it has seen: after a loss of the databases the leader's
 * may be too old.
 *
 * Messages of a switch are not trusted.  Its datapath id must be admitted,
 * invalid messages and timeouts close the connection, unexpected messages are
 * ignored, there is at most one dump a second, and dumps become rarer while a
 * switch does not apply the changes.  An error to changes is the driver's
 * 'reason' until a dump is as desired.
 *
 * See driver.h.  Memory is bounded for a slow switch: at most one dump or one
 * batch of changes is in flight. */

#include "controller/southbound/drivers/driver.h"

struct ofpbuf;

/* Port numbers below this are tracked. */
#define OPENFLOW_MAX_PORTS 0xff00

struct driver *openflow_create(const char *target, driver_admit_func *,
                               void *aux);

/* For tests: handles 'msg' as the switch's reply to the pending request, or to
 * the next one if none is pending. */
void openflow_test_reply(struct driver *, struct ofpbuf *msg);

#endif /* controller/southbound/drivers/openflow.h */
