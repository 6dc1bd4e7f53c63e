/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DIAL_H
#define DIAL_H 1

/* Gets a connection to a switch, however often it takes.
 *
 *
 * Motivation
 * ==========
 *
 * Who is at the other end is known once TLS is set up, and is looked at then:
 * a switch with a certificate of nobody's choosing is asked nothing.  Tries
 * come after 1, 2, 4, 8, 8, ... seconds, and at once when a connection that
 * was good has gone.
 *
 *
 * Usage
 * =====
 *
 *    struct dial *d = dial_create("ssl:192.0.2.1:6653", versions);
 *
 *    vconn = dial_run(d);                    // While there is no connection.
 *    if (vconn) {
 *        ...dial_peer(d) is the certificate's name...
 *        dial_settled(d);                    // When it has proved good.
 *    }
 *    dial_wait(d);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A connection is the caller's.  Main thread only. */

#include <stdint.h>

struct dial;
struct vconn;

struct dial *dial_create(const char *target, uint32_t versions);
void dial_destroy(struct dial *);

/* Returns a connection over which both sides have said hello, or NULL. */
struct vconn *dial_run(struct dial *);
void dial_wait(const struct dial *);

/* The next time is now, and the one after that soon. */
void dial_settled(struct dial *);

/* Gives up a try that is under way, and begins anew. */
void dial_restart(struct dial *);

/* The common name in the certificate of who was connected to last, or NULL
 * without TLS. */
const char *dial_peer(const struct dial *);

#endif /* controller/southbound/drivers/dial.h */
