/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTENT_GC_H
#define INTENT_GC_H 1

/* Ends and removes in the intent database what nobody else will.
 *
 * Searches say when they end, and nobody says that they are no longer of
 * interest; and some die without a word.  So cojobs that ended more than
 * INTENT_GC_MS ago go, and the oldest of more than INTENT_GC_MAX; and
 * stages and cojobs that are inactive, see inactive.h, end.  What stages took is in the
 * controller's memory, see stage-history.h, and stays.
 *
 * To be called in a transaction, by the controller that leads. */

#include <stdint.h>

#define INTENT_GC_MS 600000
#define INTENT_GC_MAX 1000

struct cluster;
struct intent_db;
struct ovsdb_idl;

/* 'now' is in epoch ms.  Events of stages go to 'idb'. */
void intent_gc(struct intent_db *idb, const struct ovsdb_idl *,
                 const struct cluster *, int64_t now);

#endif /* controller/intent/intent-gc.h */
