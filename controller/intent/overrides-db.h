/* SPDX-License-Identifier: Apache-2.0 */

#ifndef OVERRIDES_DB_H
#define OVERRIDES_DB_H 1

/* Overrides in the intent database.
 *
 * The controller that leads is the only writer; what it has not written, or
 * what it wrote in a transaction that failed, it writes in the next one.  A
 * database of before the table has no overrides, and those of now live as
 * long as the controller.  Main thread only. */

#include <stdbool.h>
#include <stdint.h>

struct overrides;
struct ovsdb_idl;
struct ovsdb_idl_txn;

void overrides_db_read(struct overrides *, const struct ovsdb_idl *);
bool overrides_db_is_behind(const struct overrides *);

/* Adds to 'txn' what the database does not have, and takes out of it what
 * ended long before 'now', epoch ms. */
void overrides_db_write(const struct overrides *, struct ovsdb_idl *,
                        struct ovsdb_idl_txn *txn, int64_t now);

#endif /* controller/intent/overrides-db.h */
