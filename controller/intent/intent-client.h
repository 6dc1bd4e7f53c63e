/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTENT_CLIENT_H
#define INTENT_CLIENT_H 1

/* Writes edits (wire/announce.h) to the intent database and waits for it.
 *
 *
 * Motivation
 * ==========
 *
 * A search must never wait long for the database: every call returns after
 * 'timeout_ms' at the latest, and the search continues.
 *
 *
 * Usage
 * =====
 *
 *    struct intent_client *ic = intent_client_create(remote, 2000);
 *    char *error = intent_client_write(ic, &(struct intent_edit) {
 *        .kind = INTENT_STAGE_END, .cojob = "asha", .rung = 1,
 *    });
 *    intent_client_destroy(ic);
 *
 * Blocking; one thread. */

#include "wire/announce.h"

struct intent_client;

/* Does not wait for the connection. */
struct intent_client *intent_client_create(const char *remote,
                                           int timeout_ms);
void intent_client_destroy(struct intent_client *);

/* Returns NULL if the database has the edit, otherwise a message that the
 * caller frees. */
char *intent_client_write(struct intent_client *, const struct intent_edit *);

/* Writes the edit of a search; 'ic' is the client.  If the database does not
 * reply, the edit stays queued and is written, in order, during the next
 * calls.  Errors are logged: timeouts once per outage. */
void intent_client_announce(void *ic, const struct intent_edit *);

#endif /* controller/intent/intent-client.h */
