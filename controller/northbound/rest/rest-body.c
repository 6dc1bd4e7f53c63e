/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/rest/rest-body.h"

#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "util.h"

/* Prefix of json-check's messages, which ours do not have. */
#define BODY "body"

static const char *const roles[] = { "worker", "server", "peer", NULL };

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
    message = (*place == ' ' ? xstrdup(place + 1)
               : xasprintf("/: line %s, an object is allowed", place));
    free(error);
    return message;
}

/* Opens a body.  An empty body is an object without members. */
static char *
open_body(const char *text, size_t size, struct json_check **jcp)
{
    *jcp = NULL;
    if (strlen(text) != size) {
        return xstrdup("/: a null byte in the body, text is allowed");
    }
    *jcp = json_check_open(BODY, size ? text : "{}");
    return NULL;
}

static void
read_workers(const struct json_at *top, struct rest_change *change)
{
    const struct json_at *workers = json_array_or_null(top, "workers", 0,
                                                       REST_MAX_WORKERS);

    change->edit.n = json_n(workers);
    change->workers = xcalloc(change->edit.n + 1, sizeof *change->workers);
    for (size_t i = 0; i < change->edit.n; i++) {
        const struct json_at *at = json_element_object(workers, i);

        change->workers[i] = (struct intent_worker) {
            .host = json_name(at, "host"),
            .role = roles[json_enum_or(at, "role", roles, 0)],
            .index = json_integer_or(at, "index", 0, REST_MAX_WORKERS, i),
        };
    }
    change->edit.workers = change->workers;
}

static void
read_jobs(const struct json_at *top, struct rest_change *change)
{
    const struct json_at *jobs = json_array(top, "jobs", 1, REST_MAX_JOBS);

    change->edit.n = json_n(jobs);
    change->jobs = xcalloc(change->edit.n + 1, sizeof *change->jobs);
    for (size_t i = 0; i < change->edit.n; i++) {
        change->jobs[i] = json_at_name(json_element(jobs, i));
    }
    change->edit.jobs = (const char *const *) change->jobs;
}

/* Reads the body of an edit of 'kind' into '*change'.  Returns NULL, or an
 * error message that the caller frees; then '*change' need not be
 * uninitialized. */
char *
rest_body_change(enum intent_kind kind, const char *text, size_t size,
                 struct rest_change *change)
{
    const struct json_at *top;
    struct json_check *jc;
    char *error;

    *change = (struct rest_change) { .edit.kind = kind };
    error = open_body(text, size, &jc);
    if (error) {
        return error;
    }
    top = json_check_top(jc);
    if (kind == INTENT_COJOB_BEGIN) {
        change->edit.weight = json_number_or(top, "weight", 0.001, 1000, 1);
    } else if (kind == INTENT_JOB_BEGIN) {
        read_workers(top, change);
        change->edit.model_bytes = json_integer_or(top, "model_bytes", 0,
                                                   1LL << 50, 0);
    } else if (kind == INTENT_STAGE_BEGIN) {
        change->edit.iterations = json_integer(top, "iterations", 1,
                                               1LL << 50);
        read_jobs(top, change);
    }
    error = strip_name(json_check_close(jc));
    if (error) {
        rest_change_uninit(change);
    }
    return error;
}

void
rest_change_uninit(struct rest_change *change)
{
    for (size_t i = 0; change->workers && i < change->edit.n; i++) {
        free(CONST_CAST(char *, change->workers[i].host));
    }
    for (size_t i = 0; change->jobs && i < change->edit.n; i++) {
        free(change->jobs[i]);
    }
    free(change->workers);
    free(change->jobs);
    *change = (struct rest_change) { .edit.n = 0 };
}

/* Reads the progress of a job; members are those of a progress datagram. */
char *
rest_body_progress(const char *text, size_t size, struct rest_progress *p)
{
    const struct json_at *top;
    struct json_check *jc;
    char *error;

    *p = (struct rest_progress) { .iteration = -1 };
    error = open_body(text, size, &jc);
    if (error) {
        return error;
    }
    top = json_check_top(jc);
    p->iteration = json_integer(top, "iteration", 0, 1LL << 50);
    if (json_has(top, "metric") || json_has(top, "value")) {
        p->metric = json_name(top, "metric");
        p->value = json_number(top, "value", -1e300, 1e300);
    }
    json_ignore(top, "stage");
    json_ignore(top, "time");
    error = strip_name(json_check_close(jc));
    if (error) {
        rest_progress_uninit(p);
    }
    return error;
}

void
rest_progress_uninit(struct rest_progress *p)
{
    free(p->metric);
    p->metric = NULL;
}
