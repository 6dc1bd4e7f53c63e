/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTENT_WRITER_H
#define INTENT_WRITER_H 1

/* Edits of the intent database that nobody stands still for.
 *
 *
 * Motivation
 * ==========
 *
 * A change that comes over HTTP is a transaction that may take seconds while
 * the database elects a leader.  The controller decides meanwhile, so edits
 * wait here in a queue, and who asked is called when the database has them.
 * The connection is one of its own and holds no lock: a controller that
 * stands by writes what people want as well as the one that leads.
 *
 * An edit that changes something leaves a row in the Event table, in the same
 * transaction: who, what.
 *
 *
 * Usage
 * =====
 *
 *    iw = intent_writer_create(remote);
 *    intent_writer_add(iw, &edit, "alice", tell_her, her);
 *    intent_writer_run(iw);            // May call tell_her(her, ...).
 *    intent_writer_wait(iw);
 *    intent_writer_destroy(iw);        // Calls those that still wait.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * What 'edit' points to must stay until its call.  Main thread only. */

#include <stdbool.h>

struct intent_edit;
struct intent_writer;

enum intent_result {
    INTENT_WRITTEN,
    INTENT_REFUSED,             /* 'error' says what is not there. */
    INTENT_AWAY,                /* The database did not answer in time: it may
                                 * be written, or not. */
};

/* 'error' is for a person, NULL if it is written, and the callee's to free;
 * 'changed' is false if all was so already. */
typedef void intent_done_func(void *aux, enum intent_result, bool changed,
                              char *error);

struct intent_writer *intent_writer_create(const char *remote);
void intent_writer_set_remote(struct intent_writer *, const char *remote);
void intent_writer_destroy(struct intent_writer *);

void intent_writer_add(struct intent_writer *, const struct intent_edit *,
                       const char *who, intent_done_func *, void *aux);
void intent_writer_run(struct intent_writer *);
void intent_writer_wait(const struct intent_writer *);

#endif /* controller/intent/intent-writer.h */
