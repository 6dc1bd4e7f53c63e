/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTENT_WRITER_H
#define INTENT_WRITER_H 1

/* Writes edits to the intent database, without blocking.
 *
 *
 * Motivation
 * ==========
 *
 * A transaction may take seconds while the database elects a leader.  Edits
 * wait in a queue; each is one transaction, repeated until it succeeds, and
 * its callback is called when the database has it.  The connection holds no
 * lock: a standby controller writes the changes of its HTTP clients as the
 * active one does.
 *
 *
 * Usage
 * =====
 *
 *    iw = intent_writer_create(remote, 5000);
 *    intent_writer_add(iw, &edit, "alice", 5000, callback, aux);
 *    intent_writer_run(iw);            // May call callback(aux, ...).
 *    intent_writer_wait(iw);
 *    intent_writer_destroy(iw);        // Calls the remaining callbacks.
 *
 * intent-client.h is for programs that wait for the result.
 *
 * Copies the edits.  Main thread only. */

#include <stdbool.h>

struct intent_edit;
struct intent_writer;

enum intent_result {
    INTENT_WRITTEN,
    INTENT_REFUSED,             /* The edit names a row that does not exist. */
    INTENT_FAILED,              /* No reply in time, or the transaction failed:
                                 * it may be written, or not. */
    INTENT_CANCELED,            /* By intent_writer_destroy(): as
                                 * INTENT_FAILED. */
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
bool intent_writer_is_idle(const struct intent_writer *);
void intent_writer_run(struct intent_writer *);
void intent_writer_wait(const struct intent_writer *);

#endif /* controller/intent/intent-writer.h */
