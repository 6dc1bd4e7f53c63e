/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/intent/intent-writer.h"

#include <stdlib.h>
#include <string.h>

#include "controller/intent/intent-edit.h"
#include "wire/intent-idl.h"
#include "controller/ovsdb/leader-search.h"
#include "openvswitch/list.h"
#include "openvswitch/poll-loop.h"
#include "ovsdb-idl.h"
#include "timeval.h"
#include "util.h"

/* A database that is silent for so long is probed. */
#define PROBE_MS 5000

/* What is not written after so long is given up. */
#define PATIENCE_MS 5000

/* Until an edit that others came before is made again. */
#define RETRY_MS 20

struct write {
    struct ovs_list node;       /* In struct intent_writer's 'queue'. */
    const struct intent_edit *edit;
    char *who;
    intent_done_func *done;
    void *aux;
    long long deadline;         /* time_msec(). */
    bool changed;
};

struct intent_writer {
    struct ovsdb_idl *idl;
    struct leader_search search;
    struct ovs_list queue;      /* Of struct write, oldest first. */
    struct ovsdb_idl_txn *txn;  /* Of the first of the queue, or NULL. */
};

/* Writes into the intent database at 'remote'. */
struct intent_writer *
intent_writer_create(const char *remote)
{
    struct intent_writer *iw = xzalloc(sizeof *iw);

    iw->idl = ovsdb_idl_create(remote, &intentrec_idl_class, false, true);
    ovsdb_idl_set_probe_interval(iw->idl, PROBE_MS);
    intent_edit_follow(iw->idl);
    leader_search_init(&iw->search, remote);
    ovs_list_init(&iw->queue);
    return iw;
}

static struct write *
first_write(const struct intent_writer *iw)
{
    return CONTAINER_OF(ovs_list_front(&iw->queue), struct write, node);
}

static void
end_txn(struct intent_writer *iw)
{
    ovsdb_idl_txn_destroy(iw->txn);
    iw->txn = NULL;
}

/* Ends the first of the queue. */
static void
finish(struct intent_writer *iw, enum intent_result result, char *error)
{
    struct write *w = first_write(iw);

    if (iw->txn) {
        end_txn(iw);
    }
    ovs_list_remove(&w->node);
    w->done(w->aux, result, w->changed, error);
    free(w->who);
    free(w);
}

void
intent_writer_destroy(struct intent_writer *iw)
{
    if (iw) {
        while (!ovs_list_is_empty(&iw->queue)) {
            finish(iw, INTENT_AWAY, xstrdup("the controller ends"));
        }
        ovsdb_idl_destroy(iw->idl);
        leader_search_uninit(&iw->search);
        free(iw);
    }
}

/* The database's members are at 'remote' now. */
void
intent_writer_set_remote(struct intent_writer *iw, const char *remote)
{
    leader_search_set_remote(&iw->search, remote);
}

/* Makes 'edit' in the name of 'who', some time after those before it, and then
 * calls 'done'. */
void
intent_writer_add(struct intent_writer *iw, const struct intent_edit *edit,
                  const char *who, intent_done_func *done, void *aux)
{
    struct write *w = xmalloc(sizeof *w);

    *w = (struct write) {
        .edit = edit, .who = xstrdup(who), .done = done, .aux = aux,
        .deadline = time_msec() + PATIENCE_MS,
    };
    ovs_list_push_back(&iw->queue, &w->node);
    poll_immediate_wake();
}

static void
add_event(const struct write *w, struct ovsdb_idl_txn *txn)
{
    const struct intentrec_event *row = intentrec_event_insert(txn);
    char *why = intent_edit_to_string(w->edit);

    intentrec_event_set_at(row, time_wall_msec());
    intentrec_event_set_who(row, w->who);
    intentrec_event_set_what(row, "change");
    intentrec_event_set_why(row, why);
    free(why);
}

/* Makes a transaction of the first of the queue, unless it is refused. */
static bool
begin_txn(struct intent_writer *iw)
{
    struct write *w = first_write(iw);
    char *error;

    iw->txn = ovsdb_idl_txn_create(iw->idl);
    error = intent_edit_apply(w->edit, iw->idl, iw->txn, &w->changed);
    if (error) {
        finish(iw, INTENT_REFUSED, error);
    } else if (w->changed) {
        add_event(w, iw->txn);
    }
    return !error;
}

/* Goes on with the transaction.  Returns true if the next one may begin. */
static bool
run_txn(struct intent_writer *iw)
{
    enum ovsdb_idl_txn_status status = ovsdb_idl_txn_commit(iw->txn);
    const char *error;

    switch (status) {
    case TXN_UNCHANGED:
    case TXN_SUCCESS:
        finish(iw, INTENT_WRITTEN, NULL);
        return true;
    case TXN_INCOMPLETE:
        return false;
    case TXN_TRY_AGAIN:
        end_txn(iw);
        return false;
    case TXN_UNCOMMITTED:
    case TXN_ABORTED:
    case TXN_NOT_LOCKED:
    case TXN_ERROR:
    default:
        /* Another client may have inserted a row that is not here yet. */
        error = ovsdb_idl_txn_get_error(iw->txn);
        if (error && strstr(error, "constraint violation")) {
            end_txn(iw);
            return false;
        }
        finish(iw, INTENT_AWAY, xasprintf("the transaction failed (%s)",
                                          ovsdb_idl_txn_status_to_string(
                                              status)));
        return true;
    }
}

static bool
is_connected(const struct intent_writer *iw)
{
    return (ovsdb_idl_has_ever_connected(iw->idl)
            && ovsdb_idl_is_connected(iw->idl));
}

/* Does what can be done without waiting. */
void
intent_writer_run(struct intent_writer *iw)
{
    bool next = true;

    ovsdb_idl_run(iw->idl);
    if (leader_search_run(&iw->search, iw->idl)) {
        ovsdb_idl_set_probe_interval(iw->idl, PROBE_MS);
    }
    while (next && !ovs_list_is_empty(&iw->queue)) {
        if (time_msec() >= first_write(iw)->deadline) {
            finish(iw, INTENT_AWAY, xasprintf("the intent database did not "
                                              "answer within %d ms",
                                              PATIENCE_MS));
            continue;
        }
        if (!iw->txn && (!is_connected(iw) || !begin_txn(iw))) {
            next = is_connected(iw);
        } else {
            next = run_txn(iw);
        }
    }
}

void
intent_writer_wait(const struct intent_writer *iw)
{
    ovsdb_idl_wait(iw->idl);
    leader_search_wait(&iw->search);
    if (iw->txn) {
        ovsdb_idl_txn_wait(iw->txn);
    }
    if (!ovs_list_is_empty(&iw->queue)) {
        poll_timer_wait_until(first_write(iw)->deadline);
        if (!iw->txn && is_connected(iw)) {
            poll_timer_wait(RETRY_MS);
        }
    }
}
