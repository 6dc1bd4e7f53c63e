/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/intent/intent-edit.h"

#include <stdlib.h>
#include <string.h>

#include "wire/intent-idl.h"
#include "ovsdb-idl.h"
#include "timeval.h"
#include "util.h"

/* What the functions of one edit share. */
struct room {
    const struct intent_edit *edit;
    struct ovsdb_idl_txn *txn;
    const struct intentrec_cojob *cojob;        /* NULL if there is none. */
    bool *changed;
};

/* Lets 'idl', of a database of ours, follow what edits look at. */
void
intent_edit_follow(struct ovsdb_idl *idl)
{
    ovsdb_idl_add_table(idl, &intentrec_table_cojob);
    ovsdb_idl_add_table(idl, &intentrec_table_job);
    ovsdb_idl_add_table(idl, &intentrec_table_worker);
    ovsdb_idl_add_table(idl, &intentrec_table_stage);
    ovsdb_idl_add_column(idl, &intentrec_cojob_col_name);
    ovsdb_idl_add_column(idl, &intentrec_cojob_col_owner);
    ovsdb_idl_add_column(idl, &intentrec_cojob_col_weight);
    ovsdb_idl_add_column(idl, &intentrec_cojob_col_began);
    ovsdb_idl_add_column(idl, &intentrec_cojob_col_state);
    ovsdb_idl_add_column(idl, &intentrec_cojob_col_jobs);
    ovsdb_idl_add_column(idl, &intentrec_cojob_col_stages);
    ovsdb_idl_add_column(idl, &intentrec_job_col_name);
    ovsdb_idl_add_column(idl, &intentrec_job_col_state);
    ovsdb_idl_add_column(idl, &intentrec_job_col_began);
    ovsdb_idl_add_column(idl, &intentrec_job_col_ended);
    ovsdb_idl_add_column(idl, &intentrec_job_col_model_bytes);
    ovsdb_idl_add_column(idl, &intentrec_job_col_workers);
    ovsdb_idl_add_column(idl, &intentrec_worker_col_host);
    ovsdb_idl_add_column(idl, &intentrec_worker_col_role);
    ovsdb_idl_add_column(idl, &intentrec_worker_col_index);
    ovsdb_idl_add_column(idl, &intentrec_stage_col_rung);
    ovsdb_idl_add_column(idl, &intentrec_stage_col_iterations);
    ovsdb_idl_add_column(idl, &intentrec_stage_col_state);
    ovsdb_idl_add_column(idl, &intentrec_stage_col_began);
    ovsdb_idl_add_column(idl, &intentrec_stage_col_ended);
    ovsdb_idl_add_column(idl, &intentrec_stage_col_jobs);
}

static const struct intentrec_cojob *
find_cojob(const struct ovsdb_idl *idl, const char *name)
{
    const struct intentrec_cojob *cojob;

    INTENTREC_COJOB_FOR_EACH (cojob, idl) {
        if (!strcmp(cojob->name, name)) {
            return cojob;
        }
    }
    return NULL;
}

static bool
is_running(const struct intentrec_cojob *cojob)
{
    return !strcmp(cojob->state, "running");
}

static char *
no_cojob(const struct intent_edit *edit)
{
    return xasprintf("cojob \"%s\": unknown, it has not begun", edit->cojob);
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
begin_cojob(const struct room *r)
{
    const struct intentrec_cojob *cojob = r->cojob;

    if (!cojob || !is_running(cojob)) {
        if (!cojob) {
            const char *owner = r->edit->owner;

            if (!owner) {
                owner = getenv("USER");
            }
            cojob = intentrec_cojob_insert(r->txn);
            intentrec_cojob_set_name(cojob, r->edit->cojob);
            intentrec_cojob_set_owner(cojob, owner ? owner : "");
        }
        intentrec_cojob_set_began(cojob, time_wall_msec());
        intentrec_cojob_set_state(cojob, "running");
        intentrec_cojob_set_jobs(cojob, NULL, 0);
        intentrec_cojob_set_stages(cojob, NULL, 0);
        *r->changed = true;
    } else if (cojob->weight < r->edit->weight
               || cojob->weight > r->edit->weight) {
        *r->changed = true;
    }
    intentrec_cojob_set_weight(cojob, r->edit->weight);
    return NULL;
}

/* Returns job 'name' of the cojob, which runs from now on if it did not. */
static const struct intentrec_job *
run_job(const struct room *r, const char *name)
{
    const struct intentrec_job *job = find_job(r->cojob, name);

    if (!job) {
        job = intentrec_job_insert(r->txn);
        intentrec_job_set_name(job, name);
        intentrec_job_set_state(job, "running");
        intentrec_job_set_began(job, time_wall_msec());
        intentrec_cojob_update_jobs_addvalue(r->cojob, job);
        *r->changed = true;
    } else if (strcmp(job->state, "running")) {
        intentrec_job_set_state(job, "running");
        intentrec_job_set_began(job, time_wall_msec());
        intentrec_job_set_ended(job, 0);
        *r->changed = true;
    }
    return job;
}

static bool
has_worker(const struct intentrec_job *job, const struct announce_worker *w)
{
    for (size_t i = 0; i < job->n_workers; i++) {
        const struct intentrec_worker *have = job->workers[i];

        if (have->index == w->index && !strcmp(have->host, w->host)
            && !strcmp(have->role, w->role)) {
            return true;
        }
    }
    return false;
}

static bool
has_workers(const struct intentrec_job *job, const struct intent_edit *edit)
{
    for (size_t i = 0; i < edit->n; i++) {
        if (!has_worker(job, &edit->workers[i])) {
            return false;
        }
    }
    return job->n_workers == edit->n;
}

static char *
begin_job(const struct room *r)
{
    const struct intent_edit *edit = r->edit;
    const struct intentrec_job *job = run_job(r, edit->job);
    long long model_bytes = MAX(edit->model_bytes, 0);
    struct intentrec_worker **workers;

    *r->changed |= job->model_bytes != model_bytes;
    intentrec_job_set_model_bytes(job, model_bytes);
    if (has_workers(job, edit)) {
        return NULL;
    }
    workers = xcalloc(edit->n ? edit->n : 1, sizeof *workers);
    for (size_t i = 0; i < edit->n; i++) {
        workers[i] = intentrec_worker_insert(r->txn);
        intentrec_worker_set_host(workers[i], edit->workers[i].host);
        intentrec_worker_set_role(workers[i], edit->workers[i].role);
        intentrec_worker_set_index(workers[i], edit->workers[i].index);
    }
    intentrec_job_set_workers(job, workers, edit->n);
    free(workers);
    *r->changed = true;
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

/* Returns stage 'rung' of the cojob, which runs from now on if it did not. */
static const struct intentrec_stage *
run_stage(const struct room *r)
{
    const struct intentrec_stage *stage = find_stage(r->cojob, r->edit->rung);

    if (!stage) {
        stage = intentrec_stage_insert(r->txn);
        intentrec_stage_set_rung(stage, r->edit->rung);
        intentrec_cojob_update_stages_addvalue(r->cojob, stage);
    }
    if (!stage->state || strcmp(stage->state, "running") || !stage->began) {
        intentrec_stage_set_state(stage, "running");
        intentrec_stage_set_began(stage, time_wall_msec());
        intentrec_stage_set_ended(stage, 0);
        *r->changed = true;
    }
    return stage;
}

static bool
has_jobs(const struct intentrec_stage *stage,
         struct intentrec_job *const *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool found = false;

        for (size_t j = 0; j < stage->n_jobs; j++) {
            found |= stage->jobs[j] == jobs[i];
        }
        if (!found) {
            return false;
        }
    }
    return stage->n_jobs == n;
}

static char *
begin_stage(const struct room *r)
{
    const struct intent_edit *edit = r->edit;
    const struct intentrec_stage *stage = run_stage(r);
    struct intentrec_job **jobs;
    size_t n_jobs = 0;

    *r->changed |= stage->iterations != edit->iterations;
    intentrec_stage_set_iterations(stage, edit->iterations);
    jobs = xcalloc(edit->n ? edit->n : 1, sizeof *jobs);
    for (size_t i = 0; i < edit->n; i++) {
        if (!is_repeated(edit->jobs, i)) {
            jobs[n_jobs++] = CONST_CAST(struct intentrec_job *,
                                        run_job(r, edit->jobs[i]));
        }
    }
    *r->changed |= !has_jobs(stage, jobs, n_jobs);
    intentrec_stage_set_jobs(stage, jobs, n_jobs);
    free(jobs);
    return NULL;
}

static void
finish_stage(const struct room *r, const struct intentrec_stage *stage)
{
    if (!strcmp(stage->state, "running")) {
        intentrec_stage_set_state(stage, "done");
        intentrec_stage_set_ended(stage, time_wall_msec());
        *r->changed = true;
    }
}

static void
finish_job(const struct room *r, const struct intentrec_job *job,
           const char *outcome)
{
    if (!strcmp(job->state, "running")) {
        intentrec_job_set_state(job, outcome);
        intentrec_job_set_ended(job, time_wall_msec());
        *r->changed = true;
    }
}

static char *
end_stage(const struct room *r)
{
    const struct intentrec_stage *stage = find_stage(r->cojob, r->edit->rung);

    if (!stage) {
        return xasprintf("cojob \"%s\": stage %d is unknown, it has not "
                         "begun", r->edit->cojob, r->edit->rung);
    }
    finish_stage(r, stage);
    return NULL;
}

static char *
end_job(const struct room *r)
{
    const struct intentrec_job *job = find_job(r->cojob, r->edit->job);

    if (!job) {
        return xasprintf("cojob \"%s\": job \"%s\" is unknown, it has not "
                         "begun", r->edit->cojob, r->edit->job);
    }
    finish_job(r, job, r->edit->outcome);
    return NULL;
}

/* With a cojob ends all that still runs of it. */
static char *
end_cojob(const struct room *r)
{
    for (size_t i = 0; i < r->cojob->n_stages; i++) {
        finish_stage(r, r->cojob->stages[i]);
    }
    for (size_t i = 0; i < r->cojob->n_jobs; i++) {
        finish_job(r, r->cojob->jobs[i], "done");
    }
    *r->changed |= is_running(r->cojob);
    intentrec_cojob_set_state(r->cojob, "done");
    return NULL;
}

static const struct kind {
    const char *what;           /* Of messages and comments. */
    bool needs_running;         /* A cojob that has ended must begin again
                                 * before anything of it can. */
    char *(*apply)(const struct room *);
} kinds[N_INTENT_KINDS] = {
    [INTENT_COJOB_BEGIN] = { "begins", false, begin_cojob },
    [INTENT_COJOB_END] = { "ends", false, end_cojob },
    [INTENT_JOB_BEGIN] = { "begins", true, begin_job },
    [INTENT_JOB_END] = { "ends", false, end_job },
    [INTENT_STAGE_BEGIN] = { "begins", true, begin_stage },
    [INTENT_STAGE_END] = { "ends", false, end_stage },
};

/* Writes what 'edit' wants into 'txn', of 'idl'; may be done again if the
 * database changed meanwhile.  '*changed' is false if all was so already. */
char *
intent_edit_apply(const struct intent_edit *edit, struct ovsdb_idl *idl,
                  struct ovsdb_idl_txn *txn, bool *changed)
{
    const struct kind *kind = &kinds[edit->kind];
    const struct room r = {
        .edit = edit, .txn = txn, .changed = changed,
        .cojob = find_cojob(idl, edit->cojob),
    };
    char *text, *error;

    *changed = false;
    if (edit->kind != INTENT_COJOB_BEGIN
        && (!r.cojob || (kind->needs_running && !is_running(r.cojob)))) {
        return no_cojob(edit);
    }
    error = kind->apply(&r);
    if (!error) {
        text = intent_edit_to_string(edit);
        ovsdb_idl_txn_add_comment(txn, "stagecoach: %s", text);
        free(text);
    }
    return error;
}

char *
intent_edit_to_string(const struct intent_edit *edit)
{
    const char *what = kinds[edit->kind].what;

    switch (edit->kind) {
    case INTENT_JOB_BEGIN:
        return xasprintf("job %s/%s %s", edit->cojob, edit->job, what);
    case INTENT_JOB_END:
        return xasprintf("job %s/%s %s (%s)", edit->cojob, edit->job, what,
                         edit->outcome);
    case INTENT_STAGE_BEGIN:
    case INTENT_STAGE_END:
        return xasprintf("stage %s/%d %s", edit->cojob, edit->rung, what);
    case INTENT_COJOB_BEGIN:
    case INTENT_COJOB_END:
    case N_INTENT_KINDS:
    default:
        return xasprintf("cojob %s %s", edit->cojob, what);
    }
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

char *
intent_edit_check(const struct intent_edit *edit)
{
    bool has_job = (edit->kind == INTENT_JOB_BEGIN
                    || edit->kind == INTENT_JOB_END);
    char *error = check_name("cojob", edit->cojob);

    if (!error && has_job) {
        error = check_name("job", edit->job);
    }
    if (!error && edit->kind == INTENT_STAGE_BEGIN) {
        for (size_t i = 0; !error && i < edit->n; i++) {
            error = check_name("job", edit->jobs[i]);
        }
    }
    return error;
}
