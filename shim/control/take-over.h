/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_TAKE_OVER_H
#define SHIM_TAKE_OVER_H 1

/* A new process's end of SHIM_TAKE_OVER.
 *
 *
 * Motivation
 * ==========
 *
 * A shim is replaced by a newer one without the host noticing: the new one
 * makes all that it needs while the old one forwards, takes the tables from
 * it, and begins when the old one has let go of the ports.  Both see all
 * frames as long as both are there, so that what the new one received until
 * the old one stopped is thrown away.
 *
 *
 * Usage
 * =====
 *
 *    error = take_over_begin(path, &to);
 *    take_over_tables(to, flows, slots);
 *    error = take_over_stop(to, &state);
 *    error = take_over_connections(to, &body, &size);    (if there is a use)
 *    ...throw away what was received, publish the server's socket...
 *    take_over_finish(to);
 *    ...forward...
 *
 * Between stop and finish the host is cut off: at most 30 ms and what the
 * messages take.  A process that goes away in between lets the old one go on.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The tables stay the caller's; a body is lent until the next call.  One
 * thread. */

#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct flow_table;
struct job_slots;
struct take_over;

/* Returns NULL or a malloc()'d message that begins with 'path'; then NULL is
 * in '*top'.  If nobody listens at 'path' there is neither a message nor a
 * struct: there is nothing to take over. */
char *take_over_begin(const char *path, struct take_over **top);

/* Each returns 0 or a positive errno. */
int take_over_tables(struct take_over *, struct flow_table *,
                     struct job_slots *);
int take_over_stop(struct take_over *, struct shim_state *);

/* After take_over_stop().  '*bodyp' is one that connections_check() accepts:
 * see connections.h.  EOPNOTSUPP if the other process is too old to tell. */
int take_over_connections(struct take_over *, const void **bodyp,
                          size_t *sizep);

/* Ends the other process, by force if it does not answer, and frees the
 * struct.  Without take_over_stop() it goes on instead. */
void take_over_finish(struct take_over *);

uint32_t take_over_pid(const struct take_over *);

#endif /* shim/control/take-over.h */
