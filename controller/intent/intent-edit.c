/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/intent/intent-edit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/name.h"
#include "base/stage-name.h"
#include "base/user-name.h"
#include "ovsdb-idl.h"
#include "timeval.h"
#include "util.h"
#include "wire/intent-idl.h"

/* Context that intent_edit_apply() passes to the handler of one edit. */
struct edit_ctx {
    const struct intent_edit *edit;
    struct ovsdb_idl_txn *txn;
    const struct intentrec_cojob *cojob;        /* NULL if unknown. */
    bool *changed;              /* Set if the edit changes the database. */
};

struct intent_rows
intent_edit_follow(struct ovsdb_idl *idl)
{
    static const struct ovsdb_idl_table_class *const tables[] = {
        &intentrec_table_cojob, &intentrec_table_job,
        &intentrec_table_worker, &intentrec_table_stage,
    };

    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        ovsdb_idl_add_table(idl, tables[i]);
        for (size_t k = 0; k < tables[i]->n_columns; k++) {
            ovsdb_idl_add_column(idl, &tables[i]->columns[k]);
        }
    }
    return (struct intent_rows){ idl, ovsdb_idl_index_create1(
                                          idl, &intentrec_cojob_col_name) };
}

struct intent_edit
intent_edit_clone(const struct intent_edit *edit)
{
    struct intent_edit copy = *edit;

    copy.cojob = nullable_xstrdup(edit->cojob);
    copy.job = nullable_xstrdup(edit->job);
    copy.owner = nullable_xstrdup(edit->owner);
    copy.outcome = nullable_xstrdup(edit->outcome);
    copy.trials = nullable_xstrdup(edit->trials);
    if (edit->jobs) {
        const char **jobs = xcalloc(edit->n + 1, sizeof *jobs);

        copy.rungs = xmemdup(edit->rungs, edit->n_rungs * sizeof *edit->rungs);
        for (size_t i = 0; i < edit->n; i++) {
            jobs[i] = xstrdup(edit->jobs[i]);
        }
        copy.jobs = jobs;
    } else if (edit->workers) {
        struct intent_worker *workers = xcalloc(edit->n + 1, sizeof *workers);

        for (size_t i = 0; i < edit->n; i++) {
            workers[i] = edit->workers[i];
            workers[i].host = xstrdup(edit->workers[i].host);
            workers[i].role = xstrdup(edit->workers[i].role);
        }
        copy.workers = workers;
    }
    return copy;
}

/* Frees the strings of 'edit', which comes from intent_edit_clone(). */
void
intent_edit_uninit(struct intent_edit *edit)
{
    for (size_t i = 0; i < edit->n; i++) {
        if (edit->jobs) {
            free(CONST_CAST(char *, edit->jobs[i]));
        } else {
            free(CONST_CAST(char *, edit->workers[i].host));
            free(CONST_CAST(char *, edit->workers[i].role));
        }
    }
    free(CONST_CAST(const char **, edit->jobs));
    free(CONST_CAST(struct intent_worker *, edit->workers));
    free(CONST_CAST(struct search_rung *, edit->rungs));
    free(CONST_CAST(char *, edit->cojob));
    free(CONST_CAST(char *, edit->job));
    free(CONST_CAST(char *, edit->owner));
    free(CONST_CAST(char *, edit->outcome));
    free(CONST_CAST(char *, edit->trials));
}

static const struct intentrec_cojob *
find_cojob(const struct intent_rows *rows, const char *name)
{
    struct intentrec_cojob *like =
        intentrec_cojob_index_init_row(rows->cojobs);
    const struct intentrec_cojob *cojob;

    intentrec_cojob_index_set_name(like, name);
    cojob = intentrec_cojob_index_find(rows->cojobs, like);
    intentrec_cojob_index_destroy_row(like);
    return cojob;
}

static bool
is_running(const struct intentrec_cojob *cojob)
{
    return !strcmp(cojob->state, "running");
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

/* Begins a cojob.  If it was done, it begins again without jobs and stages,
 * and belongs to the user that began it again. */
static char *
begin_cojob(const struct edit_ctx *ctx)
{
    const struct intentrec_cojob *cojob = ctx->cojob;

    if (!cojob || !is_running(cojob)) {
        char *user = user_name();
        int64_t uid = ctx->edit->owner ? ctx->edit->uid : user_id();

        if (!cojob) {
            cojob = intentrec_cojob_insert(ctx->txn);
            intentrec_cojob_set_name(cojob, ctx->edit->cojob);
        }
        intentrec_cojob_set_owner(cojob, ctx->edit->owner ? ctx->edit->owner
                                         : user);
        free(user);
        intentrec_cojob_set_owner_uid(cojob, &uid, uid > 0);
        intentrec_cojob_set_began(cojob, time_wall_msec());
        intentrec_cojob_set_state(cojob, "running");
        intentrec_cojob_set_jobs(cojob, NULL, 0);
        intentrec_cojob_set_stages(cojob, NULL, 0);
        *ctx->changed = true;
    } else if (cojob->weight < ctx->edit->weight
               || cojob->weight > ctx->edit->weight) {
        *ctx->changed = true;
    }
    intentrec_cojob_set_weight(cojob, ctx->edit->weight);
    return NULL;
}

/* Returns job 'name' of the cojob.  Begins it unless it is running. */
static const struct intentrec_job *
run_job(const struct edit_ctx *ctx, const char *name)
{
    const struct intentrec_job *job = find_job(ctx->cojob, name);

    if (!job) {
        job = intentrec_job_insert(ctx->txn);
        intentrec_job_set_name(job, name);
        intentrec_cojob_update_jobs_addvalue(ctx->cojob, job);
    } else if (!strcmp(job->state, "running")) {
        return job;
    }
    intentrec_job_set_state(job, "running");
    intentrec_job_set_began(job, time_wall_msec());
    intentrec_job_set_ended(job, 0);
    *ctx->changed = true;
    return job;
}

static bool
has_workers(const struct intentrec_job *job, const struct intent_edit *edit)
{
    for (size_t i = 0; i < edit->n; i++) {
        const struct intent_worker *w = &edit->workers[i];
        bool found = false;

        for (size_t j = 0; j < job->n_workers; j++) {
            const struct intentrec_worker *have = job->workers[j];

            found |= (have->index == w->index && !strcmp(have->host, w->host)
                      && !strcmp(have->role, w->role));
        }
        if (!found) {
            return false;
        }
    }
    return job->n_workers == edit->n;
}

static char *
begin_job(const struct edit_ctx *ctx)
{
    const struct intent_edit *edit = ctx->edit;
    const struct intentrec_job *job = run_job(ctx, edit->job);
    long long model_bytes = MAX(edit->model_bytes, 0);
    struct intentrec_worker **workers;

    *ctx->changed |= job->model_bytes != model_bytes;
    intentrec_job_set_model_bytes(job, model_bytes);
    if (has_workers(job, edit)) {
        return NULL;
    }
    workers = xcalloc(edit->n ? edit->n : 1, sizeof *workers);
    for (size_t i = 0; i < edit->n; i++) {
        workers[i] = intentrec_worker_insert(ctx->txn);
        intentrec_worker_set_host(workers[i], edit->workers[i].host);
        intentrec_worker_set_role(workers[i], edit->workers[i].role);
        intentrec_worker_set_index(workers[i], edit->workers[i].index);
    }
    intentrec_job_set_workers(job, workers, edit->n);
    free(workers);
    *ctx->changed = true;
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

/* Returns the edit's stage of the cojob.  Begins it unless it is running. */
static const struct intentrec_stage *
run_stage(const struct edit_ctx *ctx)
{
    const struct intentrec_stage *stage = find_stage(ctx->cojob,
                                                     ctx->edit->rung);

    if (!stage) {
        stage = intentrec_stage_insert(ctx->txn);
        intentrec_stage_set_rung(stage, ctx->edit->rung);
        intentrec_cojob_update_stages_addvalue(ctx->cojob, stage);
    }
    if (!stage->state || strcmp(stage->state, "running") || !stage->began) {
        intentrec_stage_set_state(stage, "running");
        intentrec_stage_set_began(stage, time_wall_msec());
        intentrec_stage_set_ended(stage, 0);
        *ctx->changed = true;
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

static bool
has_rungs(const struct intentrec_stage *stage, const int64_t *iterations,
          const int64_t *keep, size_t n)
{
    return (stage->n_rungs == n
            && !memcmp(stage->key_rungs, iterations, n * sizeof *iterations)
            && !memcmp(stage->value_rungs, keep, n * sizeof *keep));
}

static void
set_rungs(const struct edit_ctx *ctx, const struct intentrec_stage *stage)
{
    size_t n = ctx->edit->n_rungs;
    size_t last = ctx->edit->eta > 0 ? n - 1 : 0;
    int64_t *iterations = xcalloc(n, sizeof *iterations);
    int64_t *keep = xcalloc(n, sizeof *keep);

    for (size_t i = 0; i < n; i++) {
        iterations[i] = ctx->edit->rungs[i].iterations;
        keep[i] = MAX(ctx->edit->rungs[i].keep, 1);
    }
    *ctx->changed |= (stage->iterations != iterations[last]
                      || !has_rungs(stage, iterations, keep, n));
    intentrec_stage_set_iterations(stage, iterations[last]);
    intentrec_stage_set_rungs(stage, iterations, keep, n);
    free(iterations);
    free(keep);
}

/* Sets how the search judges the jobs of 'stage'. */
static void
set_trials(const struct edit_ctx *ctx, const struct intentrec_stage *stage)
{
    const struct intent_edit *edit = ctx->edit;

    *ctx->changed |=
        (stage->eta < edit->eta || stage->eta > edit->eta
         || stage->to_come != edit->to_come
         || !nullable_string_is_equal(stage->trials, edit->trials));
    intentrec_stage_set_eta(stage, edit->eta);
    intentrec_stage_set_to_come(stage, edit->to_come);
    intentrec_stage_set_trials(stage, edit->trials);
}

static char *
begin_stage(const struct edit_ctx *ctx)
{
    const struct intent_edit *edit = ctx->edit;
    const struct intentrec_stage *stage = run_stage(ctx);
    struct intentrec_job **jobs;
    size_t n_jobs = 0;

    set_rungs(ctx, stage);
    set_trials(ctx, stage);
    *ctx->changed |= (stage->bytes_per_iteration != edit->bytes_per_iteration
                      || stage->compute_s < edit->compute_s
                      || stage->compute_s > edit->compute_s);
    intentrec_stage_set_bytes_per_iteration(stage, edit->bytes_per_iteration);
    intentrec_stage_set_compute_s(stage, edit->compute_s);
    jobs = xcalloc(edit->n ? edit->n : 1, sizeof *jobs);
    for (size_t i = 0; i < edit->n; i++) {
        if (!is_repeated(edit->jobs, i)) {
            jobs[n_jobs++] = CONST_CAST(struct intentrec_job *,
                                        run_job(ctx, edit->jobs[i]));
        }
    }
    *ctx->changed |= !has_jobs(stage, jobs, n_jobs);
    intentrec_stage_set_jobs(stage, jobs, n_jobs);
    free(jobs);
    return NULL;
}

static void
finish_stage(const struct edit_ctx *ctx, const struct intentrec_stage *stage)
{
    if (!strcmp(stage->state, "running")) {
        intentrec_stage_set_state(stage, "done");
        intentrec_stage_set_ended(stage, time_wall_msec());
        *ctx->changed = true;
    }
}

static void
finish_job(const struct edit_ctx *ctx, const struct intentrec_job *job,
           const char *outcome)
{
    if (!strcmp(job->state, "running")) {
        intentrec_job_set_state(job, outcome);
        intentrec_job_set_ended(job, time_wall_msec());
        *ctx->changed = true;
    }
}

static char *
end_stage(const struct edit_ctx *ctx)
{
    const struct intentrec_stage *stage = find_stage(ctx->cojob,
                                                     ctx->edit->rung);

    if (!stage) {
        return xasprintf("cojob \"%s\": stage %d is unknown, it has not "
                         "begun", ctx->edit->cojob, ctx->edit->rung);
    }
    finish_stage(ctx, stage);
    return NULL;
}

static char *
end_job(const struct edit_ctx *ctx)
{
    const struct intentrec_job *job = find_job(ctx->cojob, ctx->edit->job);

    if (!job) {
        return xasprintf("cojob \"%s\": job \"%s\" is unknown, it has not "
                         "begun", ctx->edit->cojob, ctx->edit->job);
    }
    finish_job(ctx, job, ctx->edit->outcome);
    return NULL;
}

/* Ends a cojob with its running stages and jobs. */
static char *
end_cojob(const struct edit_ctx *ctx)
{
    for (size_t i = 0; i < ctx->cojob->n_stages; i++) {
        finish_stage(ctx, ctx->cojob->stages[i]);
    }
    for (size_t i = 0; i < ctx->cojob->n_jobs; i++) {
        finish_job(ctx, ctx->cojob->jobs[i], "done");
    }
    *ctx->changed |= is_running(ctx->cojob);
    intentrec_cojob_set_state(ctx->cojob, "done");
    return NULL;
}

bool
intent_is_owner(const char *user, int64_t uid, const char *owner,
                int64_t owner_uid)
{
    return (owner_uid ? uid == owner_uid : owner && !strcmp(user, owner));
}

static bool
is_owner(const struct intent_edit *edit, const struct intentrec_cojob *cojob)
{
    return intent_is_owner(edit->owner, edit->uid, cojob->owner,
                           cojob->n_owner_uid ? cojob->owner_uid[0] : 0);
}

/* Returns an error if the weights of the owner's running cojobs and of 'edit',
 * which begins one, are above 'edit->total'. */
static char *
check_total(const struct intent_edit *edit, const struct ovsdb_idl *idl)
{
    const struct intentrec_cojob *cojob;
    double total = edit->weight;

    INTENTREC_COJOB_FOR_EACH (cojob, idl) {
        if (is_running(cojob) && strcmp(cojob->name, edit->cojob)
            && is_owner(edit, cojob)) {
            total += cojob->weight;
        }
    }
    return (total <= edit->total
                ? NULL
                : xasprintf("cojob \"%s\": weight %g makes %g of all running "
                            "cojobs of %s; expected at most %g, the policy's "
                            "/weights/total",
                            edit->cojob, edit->weight, total, edit->owner,
                            edit->total));
}

/* A running cojob belongs to its owner.  Root and clients that may change any
 * cojob have no number; an owner with a number must be the cojob's user. */
char *
intent_edit_authorize(const struct intent_edit *edit,
                      const struct intent_rows *rows)
{
    const struct intentrec_cojob *cojob = find_cojob(rows, edit->cojob);
    int64_t uid = edit->owner ? edit->uid : getuid();

    if (cojob && is_running(cojob)
        && (edit->as_user
                ? !is_owner(edit, cojob)
                : cojob->n_owner_uid && uid && uid != cojob->owner_uid[0])) {
        return (cojob->n_owner_uid
                    ? xasprintf("cojob \"%s\": belongs to user %" PRId64
                                "; expected this user or an operator",
                                cojob->name, cojob->owner_uid[0])
                    : xasprintf("cojob \"%s\": belongs to %s; expected this "
                                "client or an operator",
                                cojob->name, cojob->owner));
    }
    return (edit->as_user && edit->kind == INTENT_COJOB_BEGIN
                ? check_total(edit, rows->idl)
                : NULL);
}

static const struct kind {
    const char *what;           /* Verb of intent_edit_to_string(). */
    bool needs_running;         /* Refused unless the cojob is running. */
    char *(*apply)(const struct edit_ctx *);
} kinds[N_INTENT_KINDS] = {
    [INTENT_COJOB_BEGIN] = { "begins", false, begin_cojob },
    [INTENT_COJOB_END] = { "ends", false, end_cojob },
    [INTENT_JOB_BEGIN] = { "begins", true, begin_job },
    [INTENT_JOB_END] = { "ends", false, end_job },
    [INTENT_STAGE_BEGIN] = { "begins", true, begin_stage },
    [INTENT_STAGE_END] = { "ends", false, end_stage },
};

/* Adds 'edit' to 'txn', a transaction of the rows' database.  Sets '*changed'
 * to whether it changes the database.  Must be called again, with another
 * transaction, if the database has changed meanwhile. */
char *
intent_edit_apply(const struct intent_edit *edit,
                  const struct intent_rows *rows, struct ovsdb_idl_txn *txn,
                  bool *changed)
{
    const struct kind *kind = &kinds[edit->kind];
    const struct edit_ctx ctx = {
        .edit = edit,
        .txn = txn,
        .changed = changed,
        .cojob = find_cojob(rows, edit->cojob),
    };
    char *text, *error;

    *changed = false;
    if (edit->kind != INTENT_COJOB_BEGIN
        && (!ctx.cojob || (kind->needs_running && !is_running(ctx.cojob)))) {
        return xasprintf("cojob \"%s\": unknown, it has not begun",
                         edit->cojob);
    }
    error = kind->apply(&ctx);
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

    return (edit->kind >= INTENT_STAGE_BEGIN ? xasprintf(
                "stage " STAGE_NAME_FMT " %s", edit->cojob, edit->rung, what)
            : edit->kind == INTENT_JOB_END
            ? xasprintf("job %s/%s %s (%s)", edit->cojob, edit->job, what,
                        edit->outcome)
            : edit->kind == INTENT_JOB_BEGIN
            ? xasprintf("job %s/%s %s", edit->cojob, edit->job, what)
            : xasprintf("cojob %s %s", edit->cojob, what));
}

/* Names become parts of paths and messages. */
static char *
check_name(const char *what, const char *name)
{
    return (name_is_valid(name)
                ? NULL
                : xasprintf("%s: \"%.64s\" is not " NAME_RULE, what, name));
}

static char *
check_rungs(const struct intent_edit *edit)
{
    int64_t before = 0, left = edit->n;

    for (size_t i = 0; i < edit->n_rungs; i++) {
        const struct search_rung *r = &edit->rungs[i];

        if (r->iterations <= before) {
            return xasprintf("rungs: %" PRId64 " iterations after %" PRId64
                             "; expected at least %" PRId64,
                             r->iterations, before, before + 1);
        } else if (edit->eta > 0 && r->keep) {
            return xasprintf("rungs: keep %d of trials that are judged one by "
                             "one; expected none, by eta",
                             r->keep);
        } else if (!(edit->eta > 0) && (r->keep < 1 || r->keep > left)) {
            return xasprintf("rungs: keep %d of %" PRId64 " jobs; expected 1 "
                             "to %" PRId64,
                             r->keep, left, left);
        }
        before = r->iterations;
        left = r->keep;
    }
    return NULL;
}

char *
intent_edit_check(const struct intent_edit *edit)
{
    bool has_jobs = edit->kind == INTENT_STAGE_BEGIN;
    char *error = check_name("cojob", edit->cojob);

    if (!error && (edit->kind == INTENT_JOB_BEGIN
                   || edit->kind == INTENT_JOB_END)) {
        error = check_name("job", edit->job);
    }
    for (size_t i = 0; !error && has_jobs && i < edit->n; i++) {
        error = check_name("job", edit->jobs[i]);
    }
    return error || !has_jobs ? error : check_rungs(edit);
}
