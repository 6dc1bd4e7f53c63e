/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DIAL_H
#define DIAL_H 1

/* Connects to a switch, and retries until it succeeds.
 *
 * The peer's certificate must be checked after the TLS handshake, before any
 * request is sent.  libopenvswitch's rconn could open these connections, but
 * does not expose the certificate, so the streams are opened here and handed
 * to rconn.  Attempts are made after 1, 2, 4, 8, 8, ... seconds, and at once
 * after a good connection was lost.
 *
 *    struct dial *d = dial_create("ssl:192.0.2.1:6653", versions);
 *
 *    vconn = dial_run(d);                    // While not connected.
 *    if (vconn) {
 *        ...check dial_peer(d)...
 *        dial_settled(d);                    // The connection is good.
 *    }
 *    dial_wait(d);
 *
 * The caller owns the connection.  Main thread only. */

#include <stdint.h>

struct dial;
struct vconn;

struct dial *dial_create(const char *target, uint32_t versions);
void dial_destroy(struct dial *);

/* Returns a connection that is set up, or NULL. */
struct vconn *dial_run(struct dial *);
void dial_wait(const struct dial *);

/* Resets the backoff: the next attempt is made at once. */
void dial_settled(struct dial *);

/* Cancels the current attempt and resets the backoff. */
void dial_restart(struct dial *);

/* Returns the CN of the last peer's certificate, or NULL without TLS. */
const char *dial_peer(const struct dial *);

#endif /* controller/southbound/drivers/dial.h */
