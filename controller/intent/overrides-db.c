/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/intent/overrides-db.h"

#include <string.h>

#include "wire/intent-idl.h"
#include "controller/model/overrides.h"
#include "util.h"

static enum override_kind
kind_from_string(const char *s)
{
    for (int kind = OVERRIDE_PIN; kind < N_OVERRIDE_KINDS; kind++) {
        if (!strcmp(s, override_names[kind])) {
            return kind;
        }
    }
    return OVERRIDE_NONE;       /* A newer controller's: ignored. */
}

void
overrides_db_read(struct overrides *o, const struct ovsdb_idl *idl)
{
    const struct intentrec_override *row;

    overrides_begin_rows(o);
    INTENTREC_OVERRIDE_FOR_EACH (row, idl) {
        overrides_put_row(o, &(struct override) {
            .id = row->id, .kind = kind_from_string(row->kind),
            .target = row->target, .actor = row->who, .reason = row->reason,
            .at = row->at, .until = row->until, .ended = row->ended,
        });
    }
    overrides_end_rows(o);
}

bool
overrides_db_is_behind(const struct overrides *o)
{
    const struct override *ov;

    LIST_FOR_EACH (ov, node, &o->all) {
        if (!ov->stored) {
            return true;
        }
    }
    return false;
}

static const struct intentrec_override *
find_row(const struct ovsdb_idl *idl, int64_t id)
{
    const struct intentrec_override *row;

    INTENTREC_OVERRIDE_FOR_EACH (row, idl) {
        if (row->id == id) {
            return row;
        }
    }
    return NULL;
}

static void
write_one(const struct override *ov, struct ovsdb_idl *idl,
          struct ovsdb_idl_txn *txn)
{
    const struct intentrec_override *row = find_row(idl, ov->id);

    if (!row) {
        row = intentrec_override_insert(txn);
        intentrec_override_set_id(row, ov->id);
        intentrec_override_set_kind(row, override_names[ov->kind]);
        intentrec_override_set_target(row, ov->target);
        intentrec_override_set_who(row, ov->actor);
        intentrec_override_set_reason(row, ov->reason);
        intentrec_override_set_at(row, ov->at);
        intentrec_override_set_until(row, ov->until);
    }
    intentrec_override_set_ended(row, ov->ended);
}

static void
remove_old(struct ovsdb_idl *idl, int64_t now)
{
    const struct intentrec_override *row;
    int64_t last = 0;

    INTENTREC_OVERRIDE_FOR_EACH (row, idl) {
        last = MAX(last, row->id);
    }
    INTENTREC_OVERRIDE_FOR_EACH_SAFE (row, idl) {
        if (override_is_expired(row->id, row->ended, last, now)) {
            intentrec_override_delete(row);
        }
    }
}

void
overrides_db_write(const struct overrides *o, struct ovsdb_idl *idl,
                   struct ovsdb_idl_txn *txn, int64_t now)
{
    const struct override *ov;

    if (!intentrec_server_has_override_table(idl)) {
        return;
    }
    LIST_FOR_EACH (ov, node, &o->all) {
        if (!ov->stored) {
            write_one(ov, idl, txn);
        }
    }
    remove_old(idl, now);
}
