/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTENT_EVENTS_H
#define INTENT_EVENTS_H 1

/* The audit log in the intent database: events with actor, action and reason.
 *
 * Events are queued until a transaction writes them, so that many events are
 * one write.  The oldest are dropped if more than 200 are queued or more than
 * 1,000 are in the database.  Main thread only. */

#include <stdbool.h>

struct intent_events;
struct ovsdb_idl;
struct ovsdb_idl_txn;

struct intent_events *intent_events_create(void);
void intent_events_destroy(struct intent_events *);

/* Adds an event with the current time.  Takes ownership of 'why'. */
void intent_events_add(struct intent_events *, const char *actor,
                       const char *what, char *why);

bool intent_events_waiting(const struct intent_events *);
void intent_events_write(struct intent_events *, struct ovsdb_idl *,
                         struct ovsdb_idl_txn *);

/* Deletes the oldest events of the database if there are too many.  Must be
 * called in a transaction of 'idl'. */
void intent_events_prune(struct ovsdb_idl *);

#endif /* controller/intent/intent-events.h */
