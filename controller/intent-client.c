/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/intent-client.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/intent-idl.h"
#include "controller/leader-search.h"
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

/* The arguments of one call, those that it has. */
struct call {
    struct ovsdb_idl *idl;
    const char *cojob, *job, *outcome;
    double weight;
    const struct announce_worker *workers;
    const char *const *jobs;
    size_t n;                   /* Of 'workers' or 'jobs'. */
    long long model_bytes, iterations;
    int rung;
};

/* Writes what a call wants into 'txn'.  May be called again if the database
 * changed meanwhile.  Returns NULL or a message that the caller frees. */
typedef char *edit_func(const struct call *, struct ovsdb_idl_txn *);

/* Opens a client of the database at 'remote'.  Each call gives up after
 * 'timeout_ms'.  Does not wait for the connection. */
struct intent_client *
intent_client_create(const char *remote, int timeout_ms)
{
    struct intent_client *ic = xzalloc(sizeof *ic);

    ic->idl = ovsdb_idl_create(remote, &intentrec_idl_class, false, true);
    ovsdb_idl_add_table(ic->idl, &intentrec_table_cojob);
    ovsdb_idl_add_table(ic->idl, &intentrec_table_job);
    ovsdb_idl_add_table(ic->idl, &intentrec_table_worker);
    ovsdb_idl_add_table(ic->idl, &intentrec_table_stage);
    ovsdb_idl_add_column(ic->idl, &intentrec_cojob_col_name);
    ovsdb_idl_add_column(ic->idl, &intentrec_cojob_col_owner);
    ovsdb_idl_add_column(ic->idl, &intentrec_cojob_col_weight);
    ovsdb_idl_add_column(ic->idl, &intentrec_cojob_col_began);
    ovsdb_idl_add_column(ic->idl, &intentrec_cojob_col_state);
    ovsdb_idl_add_column(ic->idl, &intentrec_cojob_col_jobs);
    ovsdb_idl_add_column(ic->idl, &intentrec_cojob_col_stages);
    ovsdb_idl_add_column(ic->idl, &intentrec_job_col_name);
    ovsdb_idl_add_column(ic->idl, &intentrec_job_col_state);
    ovsdb_idl_add_column(ic->idl, &intentrec_job_col_began);
    ovsdb_idl_add_column(ic->idl, &intentrec_job_col_ended);
    ovsdb_idl_add_column(ic->idl, &intentrec_job_col_model_bytes);
    ovsdb_idl_add_column(ic->idl, &intentrec_job_col_workers);
    ovsdb_idl_add_column(ic->idl, &intentrec_worker_col_host);
    ovsdb_idl_add_column(ic->idl, &intentrec_worker_col_role);
    ovsdb_idl_add_column(ic->idl, &intentrec_worker_col_index);
    ovsdb_idl_add_column(ic->idl, &intentrec_stage_col_rung);
    ovsdb_idl_add_column(ic->idl, &intentrec_stage_col_iterations);
    ovsdb_idl_add_column(ic->idl, &intentrec_stage_col_state);
    ovsdb_idl_add_column(ic->idl, &intentrec_stage_col_began);
    ovsdb_idl_add_column(ic->idl, &intentrec_stage_col_ended);
    ovsdb_idl_add_column(ic->idl, &intentrec_stage_col_jobs);
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

/* Commits the edits of 'edit' to the database, however often it takes until
 * 'timeout_ms' have passed. */
static char *
transact(struct intent_client *ic, edit_func *edit, struct call *call,
         int timeout_ms)
{
    long long deadline = time_msec() + timeout_ms;
    struct ovsdb_idl_txn *txn = NULL;
    char *error = NULL;
    bool done = false;

    call->idl = ic->idl;
    do {
        ovsdb_idl_run(ic->idl);
        leader_search_run(&ic->search, ic->idl);
        if (!txn && ovsdb_idl_has_ever_connected(ic->idl)
            && ovsdb_idl_is_connected(ic->idl)) {
            txn = ovsdb_idl_txn_create(ic->idl);
            error = edit(call, txn);
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

static const struct intentrec_cojob *
find_cojob(const struct call *call)
{
    const struct intentrec_cojob *cojob;

    INTENTREC_COJOB_FOR_EACH (cojob, call->idl) {
        if (!strcmp(cojob->name, call->cojob)) {
            return cojob;
        }
    }
    return NULL;
}

/* A cojob that has ended must begin again before anything of it can. */
static const struct intentrec_cojob *
find_running_cojob(const struct call *call)
{
    const struct intentrec_cojob *cojob = find_cojob(call);

    return cojob && !strcmp(cojob->state, "running") ? cojob : NULL;
}

static char *
no_cojob(const struct call *call)
{
    return xasprintf("cojob \"%s\": unknown, it has not begun", call->cojob);
}

static const struct intentrec_job *
find_job(const struct intentrec_cojob *cojob, const char *name)
{
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        if (!strcmp(cojob->jobs[i]->name, name)) {
            return cojob->jobs[i];
        }
    }
    return NULL;
}

static const struct intentrec_stage *
find_stage(const struct intentrec_cojob *cojob, int rung)
{
    for (size_t i = 0; i < cojob->n_stages; i++) {
        if (cojob->stages[i]->rung == rung) {
            return cojob->stages[i];
        }
    }
    return NULL;
}

/* A cojob that is done and begins again starts without jobs and stages. */
static char *
edit_cojob_begin(const struct call *call, struct ovsdb_idl_txn *txn)
{
    const struct intentrec_cojob *cojob = find_cojob(call);

    if (!cojob || strcmp(cojob->state, "running")) {
        if (!cojob) {
            const char *owner = getenv("USER");

            cojob = intentrec_cojob_insert(txn);
            intentrec_cojob_set_name(cojob, call->cojob);
            intentrec_cojob_set_owner(cojob, owner ? owner : "");
        }
        intentrec_cojob_set_began(cojob, time_wall_msec());
        intentrec_cojob_set_state(cojob, "running");
        intentrec_cojob_set_jobs(cojob, NULL, 0);
        intentrec_cojob_set_stages(cojob, NULL, 0);
    }
    intentrec_cojob_set_weight(cojob, call->weight);
    ovsdb_idl_txn_add_comment(txn, "stagecoach: cojob %s begins",
                              call->cojob);
    return NULL;
}

/* Returns job 'name' of 'cojob', which runs from now on if it did not. */
static const struct intentrec_job *
begin_job(const struct intentrec_cojob *cojob, const char *name,
          struct ovsdb_idl_txn *txn)
{
    const struct intentrec_job *job = find_job(cojob, name);

    if (!job) {
        job = intentrec_job_insert(txn);
        intentrec_job_set_name(job, name);
        intentrec_job_set_state(job, "running");
        intentrec_job_set_began(job, time_wall_msec());
        intentrec_cojob_update_jobs_addvalue(cojob, job);
    } else if (strcmp(job->state, "running")) {
        intentrec_job_set_state(job, "running");
        intentrec_job_set_began(job, time_wall_msec());
        intentrec_job_set_ended(job, 0);
    }
    return job;
}

static char *
edit_job_begin(const struct call *call, struct ovsdb_idl_txn *txn)
{
    const struct intentrec_cojob *cojob = find_running_cojob(call);
    struct intentrec_worker **workers;
    const struct intentrec_job *job;

    if (!cojob) {
        return no_cojob(call);
    }
    job = begin_job(cojob, call->job, txn);
    intentrec_job_set_model_bytes(job, MAX(call->model_bytes, 0));
    workers = xcalloc(call->n ? call->n : 1, sizeof *workers);
    for (size_t i = 0; i < call->n; i++) {
        workers[i] = intentrec_worker_insert(txn);
        intentrec_worker_set_host(workers[i], call->workers[i].host);
        intentrec_worker_set_role(workers[i], call->workers[i].role);
        intentrec_worker_set_index(workers[i], call->workers[i].index);
    }
    intentrec_job_set_workers(job, workers, call->n);
    free(workers);
    ovsdb_idl_txn_add_comment(txn, "stagecoach: job %s/%s begins",
                              call->cojob, call->job);
    return NULL;
}

static bool
is_repeated(const char *const *names, size_t i)
{
    for (size_t j = 0; j < i; j++) {
        if (!strcmp(names[i], names[j])) {
            return true;
        }
    }
    return false;
}

static char *
edit_stage_begin(const struct call *call, struct ovsdb_idl_txn *txn)
{
    const struct intentrec_cojob *cojob = find_running_cojob(call);
    const struct intentrec_stage *stage;
    struct intentrec_job **jobs;
    size_t n_jobs = 0;

    if (!cojob) {
        return no_cojob(call);
    }
    stage = find_stage(cojob, call->rung);
    if (!stage) {
        stage = intentrec_stage_insert(txn);
        intentrec_stage_set_rung(stage, call->rung);
        intentrec_cojob_update_stages_addvalue(cojob, stage);
    }
    if (!stage->state || strcmp(stage->state, "running") || !stage->began) {
        intentrec_stage_set_state(stage, "running");
        intentrec_stage_set_began(stage, time_wall_msec());
        intentrec_stage_set_ended(stage, 0);
    }
    intentrec_stage_set_iterations(stage, call->iterations);

    jobs = xcalloc(call->n ? call->n : 1, sizeof *jobs);
    for (size_t i = 0; i < call->n; i++) {
        if (!is_repeated(call->jobs, i)) {
            jobs[n_jobs++] = CONST_CAST(struct intentrec_job *,
                                        begin_job(cojob, call->jobs[i], txn));
        }
    }
    intentrec_stage_set_jobs(stage, jobs, n_jobs);
    free(jobs);
    ovsdb_idl_txn_add_comment(txn, "stagecoach: stage %s/%d begins",
                              call->cojob, call->rung);
    return NULL;
}

static void
end_stage(const struct intentrec_stage *stage)
{
    if (!strcmp(stage->state, "running")) {
        intentrec_stage_set_state(stage, "done");
        intentrec_stage_set_ended(stage, time_wall_msec());
    }
}

static void
end_job(const struct intentrec_job *job, const char *outcome)
{
    if (!strcmp(job->state, "running")) {
        intentrec_job_set_state(job, outcome);
        intentrec_job_set_ended(job, time_wall_msec());
    }
}

static char *
edit_stage_end(const struct call *call, struct ovsdb_idl_txn *txn)
{
    const struct intentrec_cojob *cojob = find_cojob(call);
    const struct intentrec_stage *stage;

    if (!cojob) {
        return no_cojob(call);
    }
    stage = find_stage(cojob, call->rung);
    if (!stage) {
        return xasprintf("cojob \"%s\": stage %d is unknown, it has not "
                         "begun", call->cojob, call->rung);
    }
    end_stage(stage);
    ovsdb_idl_txn_add_comment(txn, "stagecoach: stage %s/%d ends",
                              call->cojob, call->rung);
    return NULL;
}

static char *
edit_job_end(const struct call *call, struct ovsdb_idl_txn *txn)
{
    const struct intentrec_cojob *cojob = find_cojob(call);
    const struct intentrec_job *job;

    if (!cojob) {
        return no_cojob(call);
    }
    job = find_job(cojob, call->job);
    if (!job) {
        return xasprintf("cojob \"%s\": job \"%s\" is unknown, it has not "
                         "begun", call->cojob, call->job);
    }
    end_job(job, call->outcome);
    ovsdb_idl_txn_add_comment(txn, "stagecoach: job %s/%s ends (%s)",
                              call->cojob, call->job, call->outcome);
    return NULL;
}

/* With a cojob ends all that still runs of it. */
static char *
edit_cojob_end(const struct call *call, struct ovsdb_idl_txn *txn)
{
    const struct intentrec_cojob *cojob = find_cojob(call);

    if (!cojob) {
        return no_cojob(call);
    }
    for (size_t i = 0; i < cojob->n_stages; i++) {
        end_stage(cojob->stages[i]);
    }
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        end_job(cojob->jobs[i], "done");
    }
    intentrec_cojob_set_state(cojob, "done");
    ovsdb_idl_txn_add_comment(txn, "stagecoach: cojob %s ends", call->cojob);
    return NULL;
}

/* A name goes into paths, maps and messages, so the rule holds here too. */
static char *
check_name(const char *what, const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = strlen(name);

    if (n < 1 || n > 31 || strspn(name, allowed) != n
        || !strncmp(name, ".", 1) || !strncmp(name, "-", 1)) {
        return xasprintf("%s \"%.64s\": not a name, 1 to 31 letters, digits, "
                         "'.', '_' and '-' are allowed", what, name);
    }
    return NULL;
}

static char *
run_call(struct intent_client *ic, edit_func *edit, struct call *call,
         int timeout_ms)
{
    char *error = check_name("cojob", call->cojob);

    if (!error && call->job) {
        error = check_name("job", call->job);
    }
    for (size_t i = 0; !error && call->jobs && i < call->n; i++) {
        error = check_name("job", call->jobs[i]);
    }
    return error ? error : transact(ic, edit, call, timeout_ms);
}

char *
intent_client_cojob_begin(struct intent_client *ic, const char *cojob,
                          double weight)
{
    struct call call = { .cojob = cojob, .weight = weight };

    return run_call(ic, edit_cojob_begin, &call, ic->timeout_ms);
}

char *
intent_client_job_begin(struct intent_client *ic, const char *cojob,
                        const char *job,
                        const struct announce_worker *workers, size_t n,
                        long long model_bytes)
{
    struct call call = {
        .cojob = cojob, .job = job, .workers = workers, .n = n,
        .model_bytes = model_bytes,
    };

    return run_call(ic, edit_job_begin, &call, ic->timeout_ms);
}

/* Jobs that nobody has announced begin with the stage. */
char *
intent_client_stage_begin(struct intent_client *ic, const char *cojob,
                          int rung, long long iterations,
                          const char *const *jobs, size_t n_jobs)
{
    struct call call = {
        .cojob = cojob, .rung = rung, .iterations = iterations,
        .jobs = jobs, .n = n_jobs,
    };

    return run_call(ic, edit_stage_begin, &call, ic->timeout_ms);
}

char *
intent_client_stage_end(struct intent_client *ic, const char *cojob,
                        int rung)
{
    struct call call = { .cojob = cojob, .rung = rung };

    return run_call(ic, edit_stage_end, &call, ic->timeout_ms);
}

char *
intent_client_job_end(struct intent_client *ic, const char *cojob,
                      const char *job, const char *outcome)
{
    struct call call = { .cojob = cojob, .job = job, .outcome = outcome };

    return run_call(ic, edit_job_end, &call, ic->timeout_ms);
}

char *
intent_client_cojob_end(struct intent_client *ic, const char *cojob)
{
    struct call call = { .cojob = cojob };

    return run_call(ic, edit_cojob_end, &call, ic->timeout_ms);
}

/* The search's view. */

/* A call whose strings are its own, to be made when the database answers. */
struct waiting_call {
    struct ovs_list node;       /* In struct intent_client's 'waiting'. */
    edit_func *edit;
    struct call call;
};

static void
waiting_call_destroy(struct waiting_call *w)
{
    for (size_t i = 0; i < w->call.n; i++) {
        if (w->call.jobs) {
            free(CONST_CAST(char *, w->call.jobs[i]));
        } else {
            free(CONST_CAST(char *, w->call.workers[i].host));
            free(CONST_CAST(char *, w->call.workers[i].role));
        }
    }
    free(CONST_CAST(void *, (const void *) w->call.jobs));
    free(CONST_CAST(struct announce_worker *, w->call.workers));
    free(CONST_CAST(char *, w->call.cojob));
    free(CONST_CAST(char *, w->call.job));
    free(CONST_CAST(char *, w->call.outcome));
    ovs_list_remove(&w->node);
    free(w);
}

static void
let_wait(struct intent_client *ic, edit_func *edit, const struct call *call)
{
    struct waiting_call *w = xmalloc(sizeof *w);

    w->edit = edit;
    w->call = *call;
    w->call.cojob = nullable_xstrdup(call->cojob);
    w->call.job = nullable_xstrdup(call->job);
    w->call.outcome = nullable_xstrdup(call->outcome);
    if (call->jobs) {
        const char **jobs = xcalloc(call->n + 1, sizeof *jobs);

        for (size_t i = 0; i < call->n; i++) {
            jobs[i] = xstrdup(call->jobs[i]);
        }
        w->call.jobs = jobs;
    } else if (call->workers) {
        struct announce_worker *workers = xcalloc(call->n + 1,
                                                  sizeof *workers);

        for (size_t i = 0; i < call->n; i++) {
            workers[i] = call->workers[i];
            workers[i].host = xstrdup(call->workers[i].host);
            workers[i].role = xstrdup(call->workers[i].role);
        }
        w->call.workers = workers;
    }
    ovs_list_push_back(&ic->waiting, &w->node);
}

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
        char *error = transact(ic, w->edit, &w->call, left);

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
announce(struct intent_client *ic, edit_func *edit, struct call *call)
{
    int timeout_ms = ic->outage ? OUTAGE_TIMEOUT_MS : ic->timeout_ms;
    char *error;

    ic->timed_out = false;
    error = make_waiting(ic, timeout_ms);

    error = error ? error : run_call(ic, edit, call, timeout_ms);
    if (error && ic->timed_out) {
        let_wait(ic, edit, call);
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
    struct call call = { .cojob = cojob, .weight = weight };

    announce(ic, edit_cojob_begin, &call);
}

static void
announce_job_begin(void *ic, const char *cojob, const char *job,
                   const struct announce_worker *workers, size_t n,
                   long long model_bytes)
{
    struct call call = {
        .cojob = cojob, .job = job, .workers = workers, .n = n,
        .model_bytes = model_bytes,
    };

    announce(ic, edit_job_begin, &call);
}

static void
announce_stage_begin(void *ic, const char *cojob, int rung,
                     long long iterations, const char *const *jobs,
                     size_t n_jobs)
{
    struct call call = {
        .cojob = cojob, .rung = rung, .iterations = iterations,
        .jobs = jobs, .n = n_jobs,
    };

    announce(ic, edit_stage_begin, &call);
}

static void
announce_stage_end(void *ic, const char *cojob, int rung)
{
    struct call call = { .cojob = cojob, .rung = rung };

    announce(ic, edit_stage_end, &call);
}

static void
announce_job_end(void *ic, const char *cojob, const char *job,
                 const char *outcome)
{
    struct call call = { .cojob = cojob, .job = job, .outcome = outcome };

    announce(ic, edit_job_end, &call);
}

static void
announce_cojob_end(void *ic, const char *cojob)
{
    struct call call = { .cojob = cojob };

    announce(ic, edit_cojob_end, &call);
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
