/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTENT_GC_H
#define INTENT_GC_H 1

/* Garbage collection of the intent database: ends inactive stages and cojobs,
 * and deletes old finished cojobs and events.
 *
 * A search announces its end, but not when its rows are no longer needed, and
 * a search that is killed announces nothing.  So cojobs are deleted
 * INTENT_GC_MS after their end, or if more than INTENT_GC_MAX have ended.
 * Stages and cojobs that are inactive (inactive.h) are ended.  The
 * measurements of their stages stay in the controller's memory, see
 * stage-history.h. */

#include <stddef.h>
#include <stdint.h>

#define INTENT_GC_MS 600000
#define INTENT_GC_MAX 1000      /* Finished cojobs. */
#define INTENT_GC_EVENTS 1000   /* Rows of the Event table. */

struct cluster;
struct intentrec_cojob;
struct ovsdb_idl;

/* Gets an event; takes ownership of 'why'. */
typedef void intent_gc_event_func(void *aux, const char *subject,
                                  const char *what, char *why);

/* Must be called by the active controller, in a transaction of 'idl'.  'now'
 * is in epoch ms. */
void intent_gc(const struct ovsdb_idl *, const struct cluster *, int64_t now,
               intent_gc_event_func *, void *aux);

/* A finished cojob. */
struct intent_gc_cojob {
    const struct intentrec_cojob *row;
    int64_t ended;              /* Epoch ms. */
};

/* Returns when the last known job or stage of 'row' ended, epoch ms. */
int64_t intent_gc_end_time(const struct intentrec_cojob *row);

/* Sorts 'cojobs' by their end, the latest first.  Returns the number of
 * cojobs, from the first one, that must be kept. */
size_t intent_gc_keep(struct intent_gc_cojob *cojobs, size_t n, int64_t now);

#endif /* controller/intent/intent-gc.h */
