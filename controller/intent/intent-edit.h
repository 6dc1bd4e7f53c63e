/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTENT_EDIT_H
#define INTENT_EDIT_H 1

/* What people and searches change in the intent database.
 *
 *
 * Motivation
 * ==========
 *
 * The command line and searches wait for their changes (intent-client.h), the
 * controller makes those of its HTTP clients beside everything else that it
 * does (intent-writer.h).  Both write the same rows, by the functions here.
 * Every edit is idempotent: what is there already with the same name is
 * updated, and the same edit again changes nothing.
 *
 *
 * Usage
 * =====
 *
 *    struct intent_edit edit = {
 *        .kind = INTENT_STAGE_END, .cojob = "asha", .rung = 1,
 *    };
 *
 *    intent_edit_follow(idl);          // Once, for the tables that it needs.
 *    error = intent_edit_check(&edit);
 *    error = intent_edit_apply(&edit, idl, txn, &changed);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * An edit owns nothing.  No state; one thread for each 'idl'. */

#include <stdbool.h>
#include <stddef.h>

#include "wire/announce.h"

struct ovsdb_idl;
struct ovsdb_idl_txn;

enum intent_kind {
    INTENT_COJOB_BEGIN,         /* 'weight', 'owner'. */
    INTENT_COJOB_END,
    INTENT_JOB_BEGIN,           /* 'workers', 'model_bytes'. */
    INTENT_JOB_END,             /* 'outcome'. */
    INTENT_STAGE_BEGIN,         /* 'rung', 'iterations', 'jobs'. */
    INTENT_STAGE_END,           /* 'rung'. */
    N_INTENT_KINDS,
};

/* Members that a kind does not name are not read. */
struct intent_edit {
    enum intent_kind kind;
    const char *cojob;
    const char *job;            /* Of the two INTENT_JOB_*. */
    const char *owner;          /* NULL: the user's. */
    const char *outcome;        /* "stopped", "done" or "failed". */
    double weight;
    const struct announce_worker *workers;
    const char *const *jobs;
    size_t n;                   /* Of 'workers' or 'jobs'. */
    long long model_bytes, iterations;
    int rung;
};

void intent_edit_follow(struct ovsdb_idl *);

/* These return NULL or a message that the caller frees. */
char *intent_edit_check(const struct intent_edit *);
char *intent_edit_apply(const struct intent_edit *, struct ovsdb_idl *,
                        struct ovsdb_idl_txn *, bool *changed);

/* "stage asha/1 ends"; the caller frees. */
char *intent_edit_to_string(const struct intent_edit *);

#endif /* controller/intent/intent-edit.h */
