/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTENT_CLIENT_H
#define INTENT_CLIENT_H 1

/* Writes edits (wire/announce.h) to the intent database.
 *
 * A transaction may take seconds while the database elects a leader.  Edits
 * wait in the queue of a writer, which does not block; each is one
 * transaction, repeated until it succeeds, and its callback is called when the
 * database has it.  The connection holds no lock: a standby controller writes
 * the changes of its HTTP clients as the active one does.
 *
 * A client waits for its writer.  A search must never wait long for the
 * database: every call returns after 'timeout_ms' at the latest, and the
 * search continues.
 *
 * In a main loop:
 *
 *    iw = intent_writer_create(remote, 5000);
 *    intent_writer_add(iw, &edit, "alice", 5000, callback, aux);
 *    intent_writer_run(iw);            // May call callback(aux, ...).
 *    intent_writer_wait(iw);
 *    intent_writer_destroy(iw);        // Calls the remaining callbacks.
 *
 * Blocking:
 *
 *    struct intent_client *ic = intent_client_create(remote, 2000);
 *    char *error = intent_client_write(ic, &(struct intent_edit) {
 *        .kind = INTENT_STAGE_END, .cojob = "asha", .rung = 1,
 *    }, NULL);
 *    intent_client_destroy(ic);
 *
 * Copies the edits.  One thread. */

#include <stdbool.h>

#include "wire/announce.h"

struct intent_client;
struct intent_writer;

enum intent_result {
    INTENT_WRITTEN,
    INTENT_INVALID,   /* intent_edit_check() refuses the edit. */
    INTENT_FORBIDDEN, /* intent_edit_authorize() refuses it. */
    INTENT_REFUSED,   /* The edit names a row that does not exist. */
    INTENT_FAILED,    /* The transaction failed. */
    INTENT_TIMED_OUT, /* No reply in time: it may be written, or
                       * not. */
    INTENT_CANCELED,  /* By intent_writer_destroy(): as
                       * INTENT_TIMED_OUT. */
};

/* 'changed' is false if the database had the edit already.  'error' is NULL if
 * the edit is written; otherwise the callee frees it. */
typedef void intent_done_func(void *aux, enum intent_result, bool changed,
                              char *error);

/* A connection without traffic is probed after 'probe_ms'; 0: the library's
 * default, which does not probe Unix domain sockets. */
struct intent_writer *intent_writer_create(const char *remote, int probe_ms);
void intent_writer_set_remote(struct intent_writer *, const char *remote);
void intent_writer_destroy(struct intent_writer *);

/* Queues an edit, which fails after 'timeout_ms'; 0: never.  If it changes the
 * database, adds an event by 'actor' to the Event table in the same
 * transaction, unless 'actor' is NULL. */
void intent_writer_add(struct intent_writer *, const struct intent_edit *,
                       const char *actor, int timeout_ms, intent_done_func *,
                       void *aux);
void intent_writer_run(struct intent_writer *);
void intent_writer_wait(const struct intent_writer *);

/* Does not wait for the connection. */
struct intent_client *intent_client_create(const char *remote, int timeout_ms);
void intent_client_destroy(struct intent_client *);

/* Returns NULL if the database has the edit, otherwise a message that the
 * caller frees.  If 'resultp' is not null, stores the result there. */
char *intent_client_write(struct intent_client *, const struct intent_edit *,
                          enum intent_result *resultp);

/* Writes the edit of a search; 'ic' is the client.  If the database does not
 * reply, the edit stays queued and is written, in order, during the next
 * calls.  Errors are logged: timeouts once per outage. */
void intent_client_announce(void *ic, const struct intent_edit *);

/* Writes queued edits if the database replies again.  Does not wait.  'ic' is
 * the client. */
void intent_client_run(void *ic);

#endif /* controller/intent/intent-client.h */
