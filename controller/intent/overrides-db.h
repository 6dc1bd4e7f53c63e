/* SPDX-License-Identifier: Apache-2.0 */

#ifndef OVERRIDES_DB_H
#define OVERRIDES_DB_H 1

/* Stores overrides in the intent database.
 *
 * Only the active controller writes them.  It writes again what a failed
 * transaction did not write.  If the database has an old schema without the
 * Override table, overrides live as long as the controller.  Main thread
 * only. */

#include <stdbool.h>
#include <stdint.h>

struct overrides;
struct ovsdb_idl;
struct ovsdb_idl_txn;

void overrides_db_read(struct overrides *, const struct ovsdb_idl *);

/* Returns true if an override differs from the database. */
bool overrides_db_is_behind(const struct overrides *);

/* Writes the overrides that differ from the database and deletes expired ones.
 * 'now' is in epoch ms. */
void overrides_db_write(const struct overrides *, struct ovsdb_idl *,
                        struct ovsdb_idl_txn *txn, int64_t now);

#endif /* controller/intent/overrides-db.h */
