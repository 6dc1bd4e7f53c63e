/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/intent/intent-client.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "controller/intent/intent-edit.h"
#include "controller/ovsdb/leader-search.h"
#include "openvswitch/json.h"
#include "openvswitch/list.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "timeval.h"
#include "util.h"
#include "wire/intent-idl.h"
#include "wire/json-get.h"

VLOG_DEFINE_THIS_MODULE(intent_client);

/* Longest time that an announcement waits during an outage. */
#define OUTAGE_TIMEOUT_MS 50

/* Longest time that intent_client_destroy() waits.  An election takes less. */
#define LAST_TIMEOUT_MS 5000

/* Time until a transaction is repeated after a conflict. */
#define RETRY_MS 20

struct write {
    struct ovs_list node;       /* In struct intent_writer's 'queue'. */
    struct intent_edit edit;    /* Owns its strings. */
    char *actor;                /* NULL: no event. */
    intent_done_func *done;
    void *aux;
    int timeout_ms;
    long long deadline;         /* time_msec(); LLONG_MAX: no timeout. */
    bool changed;               /* The transaction changes the database. */
};

struct intent_writer {
    struct ovsdb_idl *idl;
    struct intent_rows rows; /* Of 'idl'. */
    struct leader_search search;
    struct ovs_list queue;      /* Of struct write, oldest first. */
    struct ovsdb_idl_txn *txn;  /* Of the first of the queue, or NULL. */
};

struct intent_writer *
intent_writer_create(const char *remote, int probe_ms)
{
    struct intent_writer *iw = xzalloc(sizeof *iw);

    iw->idl = ovsdb_idl_create(remote, &intentrec_idl_class, false, true);
    iw->rows = intent_edit_follow(iw->idl);
    leader_search_init(&iw->search, iw->idl, remote, probe_ms);
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

static void
finish_write(struct intent_writer *iw, struct write *w,
             enum intent_result result, char *error)
{
    if (iw->txn && w == first_write(iw)) {
        end_txn(iw);
    }
    ovs_list_remove(&w->node);
    w->done(w->aux, result, w->changed, error);
    intent_edit_uninit(&w->edit);
    free(w->actor);
    free(w);
}

void
intent_writer_destroy(struct intent_writer *iw)
{
    if (iw) {
        while (!ovs_list_is_empty(&iw->queue)) {
            finish_write(iw, first_write(iw), INTENT_CANCELED,
                         xstrdup("this program ends"));
        }
        ovsdb_idl_destroy(iw->idl);
        leader_search_uninit(&iw->search);
        free(iw);
    }
}

void
intent_writer_set_remote(struct intent_writer *iw, const char *remote)
{
    leader_search_set_remote(&iw->search, remote);
}

void
intent_writer_add(struct intent_writer *iw, const struct intent_edit *edit,
                  const char *actor, int timeout_ms, intent_done_func *done,
                  void *aux)
{
    struct write *w = xmalloc(sizeof *w);

    *w = (struct write) {
        .edit = intent_edit_clone(edit), .actor = nullable_xstrdup(actor),
        .done = done, .aux = aux, .timeout_ms = timeout_ms,
        .deadline = timeout_ms ? time_msec() + timeout_ms : LLONG_MAX,
    };
    ovs_list_push_back(&iw->queue, &w->node);
    poll_immediate_wake();
}

static void
add_event(const struct write *w, struct ovsdb_idl_txn *txn)
{
    const struct intentrec_event *row = intentrec_event_insert(txn);
    char *why = intent_edit_to_string(&w->edit);

    intentrec_event_set_at(row, time_wall_msec());
    intentrec_event_set_actor(row, w->actor);
    intentrec_event_set_role(row, w->edit.as_user ? "user" : "operator");
    intentrec_event_set_what(row, "change");
    intentrec_event_set_why(row, why);
    free(why);
}

/* Creates the transaction of the first edit.  Returns false if the edit is
 * refused. */
static bool
begin_txn(struct intent_writer *iw)
{
    struct write *w = first_write(iw);
    char *error = intent_edit_authorize(&w->edit, &iw->rows);

    if (error) {
        finish_write(iw, w, INTENT_FORBIDDEN, error);
        return false;
    }
    iw->txn = ovsdb_idl_txn_create(iw->idl);
    error = intent_edit_apply(&w->edit, &iw->rows, iw->txn, &w->changed);
    if (error) {
        finish_write(iw, w, INTENT_REFUSED, error);
    } else if (w->changed && w->actor) {
        add_event(w, iw->txn);
    }
    return !error;
}

/* Returns true if another client has inserted a row that 'idl' does not have
 * yet.  'text' is the database's error, {"error": CODE, ...}. */
static bool
violates_constraint(const char *text)
{
    struct json *json = json_from_string(text);
    const struct json *code = json_get(json, "error", JSON_STRING);
    bool violates = code && !strcmp(json_string(code), "constraint violation");

    json_destroy(json);
    return violates;
}

/* Continues the transaction.  Returns true if the edit is finished. */
static bool
run_txn(struct intent_writer *iw)
{
    enum ovsdb_idl_txn_status status = ovsdb_idl_txn_commit(iw->txn);
    const char *error;

    if (status == TXN_INCOMPLETE) {
        return false;
    } else if (status == TXN_UNCHANGED || status == TXN_SUCCESS) {
        finish_write(iw, first_write(iw), INTENT_WRITTEN, NULL);
        return true;
    }
    error = ovsdb_idl_txn_get_error(iw->txn);
    if (status == TXN_TRY_AGAIN || violates_constraint(error)) {
        end_txn(iw);
        return false;
    }
    finish_write(iw, first_write(iw), INTENT_FAILED,
                 xasprintf("the transaction failed (%s)", error));
    return true;
}

static bool
is_connected(const struct intent_writer *iw)
{
    return (ovsdb_idl_has_ever_connected(iw->idl)
            && ovsdb_idl_is_connected(iw->idl));
}

static void
expire_writes(struct intent_writer *iw)
{
    struct write *w;

    LIST_FOR_EACH_SAFE (w, node, &iw->queue) {
        if (time_msec() >= w->deadline) {
            finish_write(iw, w, INTENT_TIMED_OUT,
                         xasprintf("the intent database did not reply within "
                                   "%d ms",
                                   w->timeout_ms));
        }
    }
}

void
intent_writer_run(struct intent_writer *iw)
{
    bool next = true;

    ovsdb_idl_run(iw->idl);
    leader_search_run(&iw->search);
    expire_writes(iw);
    while (next && !ovs_list_is_empty(&iw->queue)) {
        if (!iw->txn && !is_connected(iw)) {
            return;
        }
        next = (!iw->txn && !begin_txn(iw)) || run_txn(iw);
    }
}

void
intent_writer_wait(const struct intent_writer *iw)
{
    const struct write *w;

    ovsdb_idl_wait(iw->idl);
    leader_search_wait(&iw->search);
    if (iw->txn) {
        ovsdb_idl_txn_wait(iw->txn);
    }
    LIST_FOR_EACH (w, node, &iw->queue) {
        poll_timer_wait_until(w->deadline);
    }
    if (!iw->txn && !ovs_list_is_empty(&iw->queue) && is_connected(iw)) {
        poll_timer_wait(RETRY_MS);
    }
}

struct intent_client {
    struct intent_writer *writer;
    char *remote;               /* For messages. */
    int timeout_ms;             /* Of each call. */
    bool outage;                /* The last announcement is still queued. */
};

struct intent_client *
intent_client_create(const char *remote, int timeout_ms)
{
    struct intent_client *ic = xzalloc(sizeof *ic);

    ic->writer = intent_writer_create(remote, 0);
    ic->remote = xstrdup(remote);
    ic->timeout_ms = timeout_ms;
    return ic;
}

/* Runs the writer until its queue is empty, for at most 'timeout_ms'.  Returns
 * false if edits are left. */
static bool
run_writer(struct intent_client *ic, int timeout_ms)
{
    long long deadline = time_msec() + timeout_ms;

    for (;;) {
        intent_writer_run(ic->writer);
        if (ovs_list_is_empty(&ic->writer->queue)) {
            return true;
        } else if (time_msec() >= deadline) {
            return false;
        }
        intent_writer_wait(ic->writer);
        poll_timer_wait_until(deadline);
        poll_block();
    }
}

/* Announcements that are still queued are written now if the database replies
 * in time. */
void
intent_client_destroy(struct intent_client *ic)
{
    if (ic) {
        run_writer(ic, LAST_TIMEOUT_MS);
        intent_writer_destroy(ic->writer);
        free(ic->remote);
        free(ic);
    }
}

struct outcome {
    bool done;                  /* The other members are set. */
    enum intent_result result;
    char *error;                /* NULL if the edit is written. */
};

static void
store_outcome(void *outcome_, enum intent_result result,
              bool changed OVS_UNUSED, char *error)
{
    struct outcome *outcome = outcome_;

    *outcome = (struct outcome) { true, result, error };
}

char *
intent_client_write(struct intent_client *ic, const struct intent_edit *edit,
                    enum intent_result *resultp)
{
    struct outcome outcome = { .done = false };
    char *error = intent_edit_check(edit);

    if (error) {
        if (resultp) {
            *resultp = INTENT_INVALID;
        }
        return error;
    }
    intent_writer_add(ic->writer, edit, NULL, ic->timeout_ms, store_outcome,
                      &outcome);
    do {
        run_writer(ic, ic->timeout_ms);
    } while (!outcome.done);
    if (resultp) {
        *resultp = outcome.result;
    }
    if (outcome.result == INTENT_FAILED
        || outcome.result == INTENT_TIMED_OUT) {
        error = xasprintf("%s: %s", ic->remote, outcome.error);
        free(outcome.error);
        return error;
    }
    return outcome.error;
}

static void
log_error(void *aux OVS_UNUSED, enum intent_result result,
          bool changed OVS_UNUSED, char *error)
{
    if (result != INTENT_WRITTEN && result != INTENT_CANCELED) {
        VLOG_WARN("%s", error);
    }
    free(error);
}

static void
set_outage(struct intent_client *ic, bool outage)
{
    if (outage && !ic->outage) {
        VLOG_WARN("%s: no reply within %d ms; the search goes on without the "
                  "controller",
                  ic->remote, ic->timeout_ms);
    } else if (!outage && ic->outage) {
        VLOG_INFO("%s: the controller's database replies again", ic->remote);
    }
    ic->outage = outage;
}

void
intent_client_run(void *ic_)
{
    struct intent_client *ic = ic_;

    intent_writer_run(ic->writer);
    set_outage(ic, !ovs_list_is_empty(&ic->writer->queue));
}

void
intent_client_announce(void *ic_, const struct intent_edit *edit)
{
    struct intent_client *ic = ic_;
    int timeout_ms = ic->outage ? OUTAGE_TIMEOUT_MS : ic->timeout_ms;
    char *error = intent_edit_check(edit);

    if (error) {
        VLOG_WARN("%s", error);
        free(error);
        return;
    }
    intent_writer_add(ic->writer, edit, NULL, 0, log_error, NULL);
    set_outage(ic, !run_writer(ic, timeout_ms));
}
