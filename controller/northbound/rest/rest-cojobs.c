/* SPDX-License-Identifier: Apache-2.0 */

/* Cojobs, jobs and stages: what people and schedulers change. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "controller/model/cluster.h"
#include "controller/northbound/views/cojobs-report.h"
#include "controller/northbound/views/control.h"
#include "controller/model/demand.h"
#include "controller/northbound/rest/rest-routes.h"
#include "openvswitch/json.h"
#include "timeval.h"
#include "util.h"

static char *
job_name(const struct rest_request *r)
{
    return xasprintf("%s/%s", r->args[0], r->args[1]);
}

/* The answer is 'json', or that there is none. */
static struct rest_answer
answer_or_404(const struct rest_request *r, struct json *json)
{
    char *quote;
    struct rest_answer answer;

    if (json) {
        return rest_answer_json(json);
    }
    quote = rest_path_quote(r->path);
    answer = rest_answer_error(MHD_HTTP_NOT_FOUND, "%s: unknown, what has "
                               "begun is allowed", quote);
    free(quote);
    return answer;
}

struct rest_answer
rest_get_cojob(struct rest_request *r)
{
    return answer_or_404(r, cojobs_report_cojob(r->ctl->cluster, r->args[0]));
}

struct rest_answer
rest_get_job(struct rest_request *r)
{
    char *name = job_name(r);
    struct json *json = cojobs_report_job(r->ctl->cluster, name);

    free(name);
    return answer_or_404(r, json);
}

/* Prepares the change of 'kind' that 'r' asks for. */
static struct rest_answer
change(struct rest_request *r, enum intent_kind kind)
{
    struct intent_edit *edit = &r->change.edit;
    char *error = rest_body_change(kind, r->body, r->body_size, &r->change);

    if (!error) {
        edit->cojob = r->args[0];
        edit->job = r->args[1];
        edit->owner = r->actor;
        error = intent_edit_check(edit);
        if (error) {
            rest_change_uninit(&r->change);
        }
    }
    if (error) {
        return rest_answer_message(MHD_HTTP_BAD_REQUEST, error);
    }
    r->next = REST_CHANGE;
    return (struct rest_answer) { .status = 0 };
}

struct rest_answer
rest_put_cojob(struct rest_request *r)
{
    return change(r, INTENT_COJOB_BEGIN);
}

struct rest_answer
rest_delete_cojob(struct rest_request *r)
{
    return change(r, INTENT_COJOB_END);
}

struct rest_answer
rest_put_job(struct rest_request *r)
{
    return change(r, INTENT_JOB_BEGIN);
}

struct rest_answer
rest_delete_job(struct rest_request *r)
{
    static const char *const outcomes[] = { "done", "stopped", "failed" };
    const char *outcome = r->query(r->query_aux, "outcome");
    struct rest_answer answer;
    char *quote;

    for (size_t i = 0; i < ARRAY_SIZE(outcomes); i++) {
        if (!outcome || !strcmp(outcome, outcomes[i])) {
            answer = change(r, INTENT_JOB_END);
            r->change.edit.outcome = outcomes[i];
            return answer;
        }
    }
    quote = rest_path_quote(outcome);
    answer = rest_answer_error(MHD_HTTP_BAD_REQUEST, "/outcome: \"%s\" is "
                               "none, done, stopped and failed are allowed",
                               quote);
    free(quote);
    return answer;
}

static struct rest_answer
change_stage(struct rest_request *r, enum intent_kind kind)
{
    struct rest_answer answer;
    unsigned int rung;

    if (!str_to_uint(r->args[1], 10, &rung) || rung > REST_MAX_RUNG) {
        return rest_answer_error(MHD_HTTP_BAD_REQUEST, "/rung: \"%s\" is no "
                                 "rung, 0 to %d are allowed", r->args[1],
                                 REST_MAX_RUNG);
    }
    answer = change(r, kind);
    r->change.edit.rung = rung;
    return answer;
}

struct rest_answer
rest_put_stage(struct rest_request *r)
{
    return change_stage(r, INTENT_STAGE_BEGIN);
}

struct rest_answer
rest_delete_stage(struct rest_request *r)
{
    return change_stage(r, INTENT_STAGE_END);
}

/* Progress never enters a database, so its answer is here at once. */
struct rest_answer
rest_post_progress(struct rest_request *r)
{
    struct rest_progress p;
    struct json *json;
    struct job *job;
    char *name, *error;

    error = rest_body_progress(r->body, r->body_size, &p);
    if (error) {
        return rest_answer_message(MHD_HTTP_BAD_REQUEST, error);
    }
    name = job_name(r);
    job = shash_find_data(&r->ctl->cluster->jobs, name);
    free(name);
    if (job) {
        demand_progress(r->ctl->cluster, job, &job->rest, p.iteration,
                        p.metric, p.value, time_msec());
    }
    rest_progress_uninit(&p);
    json = job ? json_object_create() : NULL;
    if (json) {
        json_object_put_string(json, "job", job->full_name);
        json_object_put(json, "iteration",
                        json_integer_create(job->iteration));
    }
    return answer_or_404(r, json);
}
