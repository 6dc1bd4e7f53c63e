/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTENT_EVENTS_H
#define INTENT_EVENTS_H 1

/* The audit in the intent database: who did what, and why.
 *
 * Events wait here until a transaction takes them, so that a storm of them is
 * one write; the oldest go when more wait, or stand in the database, than
 * anybody would read.  Main thread only. */

#include <stdbool.h>

struct intent_events;
struct ovsdb_idl;
struct ovsdb_idl_txn;

struct intent_events *intent_events_create(void);
void intent_events_destroy(struct intent_events *);

/* Adds an event of now; takes 'why', from malloc(). */
void intent_events_add(struct intent_events *, const char *who,
                       const char *what, char *why);

bool intent_events_waiting(const struct intent_events *);
void intent_events_write(struct intent_events *, struct ovsdb_idl *,
                         struct ovsdb_idl_txn *);

/* Removes the oldest events of the database, whoever wrote them, if there are
 * too many.  In a transaction of 'idl'. */
void intent_events_prune(struct ovsdb_idl *);

#endif /* controller/intent/intent-events.h */
