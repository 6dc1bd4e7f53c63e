/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/intent/intent-client.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/intent/intent-edit.h"
#include "wire/intent-idl.h"
#include "controller/ovsdb/leader-search.h"
#include "controller/intent/waiting-call.h"
#include "openvswitch/list.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(intent_client);

/* An announcement during an outage waits no longer than this. */
#define OUTAGE_TIMEOUT_MS 50

/* For what still waits at the end: an election takes less. */
#define LAST_TIMEOUT_MS 5000

struct intent_client {
    struct ovsdb_idl *idl;
    char *remote;               /* For messages. */
    int timeout_ms;             /* Of each call. */
    bool outage;                /* The last announcement failed. */
    bool timed_out;             /* The last transaction had no answer. */
    struct leader_search search;
    struct ovs_list waiting;    /* Of struct waiting_call, oldest first. */
};

/* Opens a client of the database at 'remote'.  Each call gives up after
 * 'timeout_ms'.  Does not wait for the connection. */
struct intent_client *
intent_client_create(const char *remote, int timeout_ms)
{
    struct intent_client *ic = xzalloc(sizeof *ic);

    ic->idl = ovsdb_idl_create(remote, &intentrec_idl_class, false, true);
    intent_edit_follow(ic->idl);
    leader_search_init(&ic->search, remote);
    ovs_list_init(&ic->waiting);
    ic->remote = xstrdup(remote);
    ic->timeout_ms = timeout_ms;
    return ic;
}

/* Another client may have inserted a row that we have not seen yet. */
static bool
is_duplicate_row(const struct ovsdb_idl_txn *txn)
{
    const char *error = ovsdb_idl_txn_get_error(txn);

    return error && strstr(error, "constraint violation");
}

/* Commits 'edit' to the database, however often it takes until
 * 'timeout_ms' have passed. */
static char *
transact(struct intent_client *ic, const struct intent_edit *edit,
         int timeout_ms)
{
    long long deadline = time_msec() + timeout_ms;
    struct ovsdb_idl_txn *txn = NULL;
    char *error = NULL;
    bool changed, done = false;

    do {
        ovsdb_idl_run(ic->idl);
        leader_search_run(&ic->search, ic->idl);
        if (!txn && ovsdb_idl_has_ever_connected(ic->idl)
            && ovsdb_idl_is_connected(ic->idl)) {
            txn = ovsdb_idl_txn_create(ic->idl);
            error = intent_edit_apply(edit, ic->idl, txn, &changed);
            done = error != NULL;
        }
        if (txn && !done) {
            enum ovsdb_idl_txn_status status = ovsdb_idl_txn_commit(txn);

            if (status == TXN_SUCCESS || status == TXN_UNCHANGED) {
                done = true;
            } else if (status == TXN_TRY_AGAIN
                       || (status == TXN_ERROR && is_duplicate_row(txn))) {
                ovsdb_idl_txn_destroy(txn);
                txn = NULL;
                poll_timer_wait(20);
            } else if (status != TXN_INCOMPLETE) {
                error = xasprintf("%s: the transaction failed (%s)",
                                  ic->remote, ovsdb_idl_txn_get_error(txn));
                done = true;
            }
        }
        if (!done) {
            ovsdb_idl_wait(ic->idl);
            leader_search_wait(&ic->search);
            if (txn) {
                ovsdb_idl_txn_wait(txn);
            }
            poll_timer_wait_until(deadline);
            poll_block();
        }
    } while (!done && time_msec() < deadline);

    if (txn) {
        ovsdb_idl_txn_destroy(txn);
    }
    ic->timed_out = !done;
    return (done ? error
            : xasprintf("%s: no answer within %d ms", ic->remote,
                        timeout_ms));
}

static char *
run_edit(struct intent_client *ic, const struct intent_edit *edit,
         int timeout_ms)
{
    char *error = intent_edit_check(edit);

    return error ? error : transact(ic, edit, timeout_ms);
}

char *
intent_client_cojob_begin(struct intent_client *ic, const char *cojob,
                          double weight)
{
    const struct intent_edit edit = {
        .kind = INTENT_COJOB_BEGIN, .cojob = cojob, .weight = weight,
    };

    return run_edit(ic, &edit, ic->timeout_ms);
}

char *
intent_client_job_begin(struct intent_client *ic, const char *cojob,
                        const char *job,
                        const struct announce_worker *workers, size_t n,
                        long long model_bytes)
{
    const struct intent_edit edit = {
        .kind = INTENT_JOB_BEGIN,
        .cojob = cojob, .job = job, .workers = workers, .n = n,
        .model_bytes = model_bytes,
    };

    return run_edit(ic, &edit, ic->timeout_ms);
}

/* Jobs that nobody has announced begin with the stage. */
char *
intent_client_stage_begin(struct intent_client *ic, const char *cojob,
                          int rung, long long iterations,
                          const char *const *jobs, size_t n_jobs)
{
    const struct intent_edit edit = {
        .kind = INTENT_STAGE_BEGIN,
        .cojob = cojob, .rung = rung, .iterations = iterations,
        .jobs = jobs, .n = n_jobs,
    };

    return run_edit(ic, &edit, ic->timeout_ms);
}

char *
intent_client_stage_end(struct intent_client *ic, const char *cojob,
                        int rung)
{
    const struct intent_edit edit = {
        .kind = INTENT_STAGE_END, .cojob = cojob, .rung = rung,
    };

    return run_edit(ic, &edit, ic->timeout_ms);
}

char *
intent_client_job_end(struct intent_client *ic, const char *cojob,
                      const char *job, const char *outcome)
{
    const struct intent_edit edit = {
        .kind = INTENT_JOB_END, .cojob = cojob, .job = job, .outcome = outcome,
    };

    return run_edit(ic, &edit, ic->timeout_ms);
}

char *
intent_client_cojob_end(struct intent_client *ic, const char *cojob)
{
    const struct intent_edit edit = {
        .kind = INTENT_COJOB_END, .cojob = cojob,
    };

    return run_edit(ic, &edit, ic->timeout_ms);
}

/* The search's view. */

/* Makes the calls that wait, oldest first, for at most 'timeout_ms'.  One
 * that the database refuses is dropped.  Returns NULL if none waits any
 * more. */
static char *
make_waiting(struct intent_client *ic, int timeout_ms)
{
    long long deadline = time_msec() + timeout_ms;
    struct waiting_call *w;

    LIST_FOR_EACH_SAFE (w, node, &ic->waiting) {
        long long left = MAX(deadline - time_msec(), 1);
        char *error = transact(ic, &w->edit, left);

        if (error && ic->timed_out) {
            return error;
        }
        if (error) {
            VLOG_WARN("%s", error);
            free(error);
        }
        waiting_call_destroy(w);
    }
    return NULL;
}

/* Announcements that find no database wait for the next one and are made
 * before it: what begins and ends while a cluster has no leader is late and
 * not lost. */
static void
announce(struct intent_client *ic, const struct intent_edit *edit)
{
    int timeout_ms = ic->outage ? OUTAGE_TIMEOUT_MS : ic->timeout_ms;
    char *error;

    ic->timed_out = false;
    error = make_waiting(ic, timeout_ms);

    error = error ? error : run_edit(ic, edit, timeout_ms);
    if (error && ic->timed_out) {
        waiting_call_push(&ic->waiting, edit);
    }
    if (error && !ic->outage) {
        VLOG_WARN("%s; the search goes on without the controller", error);
    } else if (!error && ic->outage) {
        VLOG_INFO("%s: the controller's database answers again", ic->remote);
    }
    ic->outage = error != NULL;
    free(error);
}

static void
announce_cojob_begin(void *ic, const char *cojob, double weight)
{
    const struct intent_edit edit = {
        .kind = INTENT_COJOB_BEGIN, .cojob = cojob, .weight = weight,
    };

    announce(ic, &edit);
}

static void
announce_job_begin(void *ic, const char *cojob, const char *job,
                   const struct announce_worker *workers, size_t n,
                   long long model_bytes)
{
    const struct intent_edit edit = {
        .kind = INTENT_JOB_BEGIN,
        .cojob = cojob, .job = job, .workers = workers, .n = n,
        .model_bytes = model_bytes,
    };

    announce(ic, &edit);
}

static void
announce_stage_begin(void *ic, const char *cojob, int rung,
                     long long iterations, const char *const *jobs,
                     size_t n_jobs)
{
    const struct intent_edit edit = {
        .kind = INTENT_STAGE_BEGIN,
        .cojob = cojob, .rung = rung, .iterations = iterations,
        .jobs = jobs, .n = n_jobs,
    };

    announce(ic, &edit);
}

static void
announce_stage_end(void *ic, const char *cojob, int rung)
{
    const struct intent_edit edit = {
        .kind = INTENT_STAGE_END, .cojob = cojob, .rung = rung,
    };

    announce(ic, &edit);
}

static void
announce_job_end(void *ic, const char *cojob, const char *job,
                 const char *outcome)
{
    const struct intent_edit edit = {
        .kind = INTENT_JOB_END, .cojob = cojob, .job = job, .outcome = outcome,
    };

    announce(ic, &edit);
}

static void
announce_cojob_end(void *ic, const char *cojob)
{
    const struct intent_edit edit = {
        .kind = INTENT_COJOB_END, .cojob = cojob,
    };

    announce(ic, &edit);
}

const struct announce_class intent_client_announce = {
    .cojob_begin = announce_cojob_begin,
    .job_begin = announce_job_begin,
    .stage_begin = announce_stage_begin,
    .stage_end = announce_stage_end,
    .job_end = announce_job_end,
    .cojob_end = announce_cojob_end,
};

/* What still waits is announced now if the database comes back soon. */
void
intent_client_destroy(struct intent_client *ic)
{
    struct waiting_call *w;

    if (!ic) {
        return;
    }
    if (!ovs_list_is_empty(&ic->waiting)) {
        free(make_waiting(ic, LAST_TIMEOUT_MS));
    }
    LIST_FOR_EACH_SAFE (w, node, &ic->waiting) {
        waiting_call_destroy(w);
    }
    ovsdb_idl_destroy(ic->idl);
    leader_search_uninit(&ic->search);
    free(ic->remote);
    free(ic);
}
