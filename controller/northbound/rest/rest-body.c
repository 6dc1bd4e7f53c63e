/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/rest/rest-body.h"

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/json-check.h"
#include "policies/policy.h"
#include "util.h"
#include "wire/membership.h"
#include "wire/progress-datagram.h"
#include "wire/progress-json.h"

/* Prefix of json-check's messages, which ours do not have. */
#define BODY "body"

static const char *const roles[] = { "worker", "server", "peer", NULL };
static const char *const methods[] = { "synchronous", "asynchronous", NULL };

/* Removes the name from 'error', a message of json-check, "NAME: /POINTER:
 * WHAT" or "NAME:LINE: WHAT".  Frees 'error'. */
static char *
strip_name(char *error)
{
    const char *place = error ? error + strlen(BODY ":") : NULL;
    char *message;

    if (!error) {
        return NULL;
    }
    message =
        (*place == ' ' ? xstrdup(place + 1)
                       : xasprintf("/: line %s; expected an object", place));
    free(error);
    return message;
}

/* Opens a body.  An empty body is an object without members. */
static struct json_check *
open_body(const char *text, size_t size)
{
    bool is_text = strlen(text) == size;
    struct json_check *jc = json_check_open(BODY,
                                            size && is_text ? text : "{}");

    if (!is_text) {
        json_fail(json_check_top(jc), NULL,
                  "a null byte in the body; expected text");
    }
    return jc;
}

static void
read_workers(const struct json_at *top, struct intent_edit *edit)
{
    const struct json_at *array = json_array_or_null(top, "workers", 0,
                                                     REST_MAX_WORKERS);
    struct intent_worker *workers;

    edit->n = json_n(array);
    edit->workers = workers = xcalloc(edit->n + 1, sizeof *workers);
    for (size_t i = 0; i < edit->n; i++) {
        const struct json_at *at = json_element_object(array, i);

        workers[i] = (struct intent_worker) {
            .host = json_name(at, "host"),
            .role = xstrdup(roles[json_enum_or(at, "role", roles, 0)]),
            .index = json_integer_or(at, "index", 0, REST_MAX_WORKERS, i),
        };
    }
}

static void
read_jobs(const struct json_at *top, struct intent_edit *edit, int min)
{
    const struct json_at *array = json_array(top, "jobs", min, REST_MAX_JOBS);
    const char **jobs;

    edit->n = json_n(array);
    edit->jobs = jobs = xcalloc(edit->n + 1, sizeof *jobs);
    for (size_t i = 0; i < edit->n; i++) {
        jobs[i] = json_at_name(json_element(array, i));
    }
}

/* "iterations" is short for the only rung that is known. */
static void
read_rungs(const struct json_at *top, struct intent_edit *edit, int n_jobs)
{
    if (json_has(top, "rungs")) {
        edit->rungs = search_rungs_read(top, n_jobs, &edit->n_rungs);
    } else {
        struct search_rung *rung = xmalloc(sizeof *rung);

        *rung = (struct search_rung){
            json_integer(top, "iterations", 1, RUNG_MAX_ITERATIONS), n_jobs > 0
        };
        edit->rungs = rung;
        edit->n_rungs = 1;
    }
}

/* An asynchronous stage has the trials that run, now and then none. */
static void
read_stage(const struct json_at *top, struct intent_edit *edit)
{
    if (!json_enum_or(top, "method", methods, 0)) {
        read_jobs(top, edit, 1);
        read_rungs(top, edit, edit->n);
        return;
    }
    read_jobs(top, edit, 0);
    read_rungs(top, edit, 0);
    edit->eta = json_number_or(top, "eta", 2, 1000, 3);
    edit->to_come = json_integer_or(top, "to_come", 0, REST_MAX_TO_COME, 0);
    if (json_has(top, "trials")) {
        edit->trials =
            xstrdup(policy_trials[json_enum(top, "trials", policy_trials)]);
    }
}

/* The owner of a cojob is a user, a namespace of pods, or neither. */
static void
read_owner(const struct json_at *top, struct intent_edit *edit)
{
    char *space = json_string_or(top, "namespace", NULL);

    edit->uid = json_integer_or(top, "uid", 1, MEMBERSHIP_MAX_UID, 0);
    if (space && edit->uid) {
        json_fail(top, "namespace", "beside uid; expected one of them");
    } else if (space) {
        edit->owner = xasprintf(MEMBERSHIP_NAMESPACE "%s", space);
        edit->uid = membership_namespace(space);
    }
    free(space);
}

/* Reads the body of an edit of 'kind' into '*edit'.  Returns NULL, or an error
 * message that the caller frees; then '*edit' need not be uninitialized. */
char *
rest_body_edit(enum intent_kind kind, const char *text, size_t size,
               struct intent_edit *edit)
{
    struct json_check *jc = open_body(text, size);
    const struct json_at *top = json_check_top(jc);
    char *error;

    *edit = (struct intent_edit) { .kind = kind };
    if (kind == INTENT_COJOB_BEGIN) {
        edit->weight = json_number_or(top, "weight", 0.001, 1000, 1);
        read_owner(top, edit);
    } else if (kind == INTENT_JOB_BEGIN) {
        read_workers(top, edit);
        edit->model_bytes = json_integer_or(top, "model_bytes", 0, 1LL << 50,
                                            0);
    } else if (kind == INTENT_STAGE_BEGIN) {
        read_stage(top, edit);
        edit->bytes_per_iteration =
            json_integer_or(top, "bytes_per_iteration", 0, 1LL << 50, 0);
        edit->compute_s = json_number_or(top, "compute_s", 0, 86400, 0);
    }
    error = strip_name(json_check_close(jc));
    if (error) {
        intent_edit_uninit(edit);
    }
    return error;
}

/* Reads the progress of a job; members are those of a progress datagram.
 * Returns as rest_body_edit(). */
char *
rest_body_progress(const char *text, size_t size, struct progress *p)
{
    static const char known[] = "/iteration/metric/value/stage/time/";
    cJSON *top;
    char *error;

    if (strlen(text) != size) {
        return xstrdup("/: a null byte in the body; expected text");
    }
    top = progress_json_parse(text, size);
    error = progress_json_read(top, p);
    for (const cJSON *m = top ? top->child : NULL; m && !error; m = m->next) {
        char *name = xasprintf("/%s/", m->string ? m->string : "");

        if (!strstr(known, name)) {
            error = xasprintf("/%.64s: unknown member", m->string);
        }
        free(name);
    }
    cJSON_Delete(top);
    return error;
}
