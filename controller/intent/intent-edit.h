/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTENT_EDIT_H
#define INTENT_EDIT_H 1

/* Applies an edit (wire/announce.h) to the rows of the intent database.
 *
 *    struct intent_edit edit = {
 *        .kind = INTENT_STAGE_END, .cojob = "asha", .rung = 1,
 *    };
 *
 *    rows = intent_edit_follow(idl);   // Once.
 *    error = intent_edit_check(&edit);
 *    error = intent_edit_authorize(&edit, &rows);
 *    error = intent_edit_apply(&edit, &rows, txn, &changed);
 *
 * intent-client.h does all of this.
 *
 * An edit does not own its strings, unless it comes from intent_edit_clone().
 * No state; one thread for each 'idl'. */

#include <stdbool.h>
#include <stdint.h>

#include "wire/announce.h"

struct ovsdb_idl;
struct ovsdb_idl_index;
struct ovsdb_idl_txn;

struct intent_rows {
    struct ovsdb_idl *idl;
    struct ovsdb_idl_index *cojobs; /* By name. */
};

/* Makes 'idl' monitor the tables and columns that edits read. */
struct intent_rows intent_edit_follow(struct ovsdb_idl *);

/* A copy that owns its strings, and its end. */
struct intent_edit intent_edit_clone(const struct intent_edit *);
void intent_edit_uninit(struct intent_edit *);

/* Returns true if a cojob of 'owner' with number 'owner_uid', 0 for none,
 * belongs to 'user' with number 'uid': numbers decide if the cojob has one.
 * 'owner' may be null. */
bool intent_is_owner(const char *user, int64_t uid, const char *owner,
                     int64_t owner_uid);

/* These return NULL or a message that the caller frees: if 'edit' is wrong by
 * itself, if its owner may not make it, and if it does not fit the rows. */
char *intent_edit_check(const struct intent_edit *);
char *intent_edit_authorize(const struct intent_edit *,
                            const struct intent_rows *);
char *intent_edit_apply(const struct intent_edit *, const struct intent_rows *,
                        struct ovsdb_idl_txn *, bool *changed);

/* "stage asha/1 ends"; the caller frees. */
char *intent_edit_to_string(const struct intent_edit *);

#endif /* controller/intent/intent-edit.h */
