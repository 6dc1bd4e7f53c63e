/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/search/events.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "trainer/search/job.h"

static cJSON *
event_create(const struct events *events, const char *type)
{
    cJSON *event = cJSON_CreateObject();

    cJSON_AddStringToObject(event, "event", type);
    cJSON_AddNumberToObject(event, "time", clock_wall_ms());
    cJSON_AddStringToObject(event, "cojob", events->cojob);
    return event;
}

static void
event_send(const struct events *events, cJSON *event)
{
    if (events->callback) {
        events->callback(events->aux, event);
    }
    cJSON_Delete(event);
}

/* cJSON prints numbers that are not finite as null. */
static void
add_state(cJSON *event, const struct job *job)
{
    cJSON_AddStringToObject(event, "job", job->name);
    cJSON_AddNumberToObject(event, "iteration", job->iteration);
    cJSON_AddNumberToObject(event, "loss", job->loss);
    cJSON_AddNumberToObject(event, "accuracy", job->accuracy);
}

void
events_search_begin(const struct events *events, const char *const *jobs,
                    int n)
{
    cJSON *event = event_create(events, "search-begin");

    cJSON_AddItemToObject(event, "jobs", cJSON_CreateStringArray(jobs, n));
    event_send(events, event);
}

void
events_job_begin(const struct events *events, const struct job *job)
{
    cJSON *event = event_create(events, "job-begin");
    cJSON *hyper;

    cJSON_AddStringToObject(event, "job", job->name);
    hyper = cJSON_AddObjectToObject(event, "hyperparameters");
    cJSON_AddNumberToObject(hyper, "learning_rate",
                            job->trial.learning_rate);
    if (search_model_has_width(&job->spec->model)) {
        cJSON_AddNumberToObject(hyper, "width", job->trial.width);
    }
    cJSON_AddNumberToObject(hyper, "batch", job->trial.batch);
    event_send(events, event);
}

void
events_stage_begin(const struct events *events, int rung, int64_t iterations,
                   const char *const *jobs, int n)
{
    cJSON *event = event_create(events, "stage-begin");

    cJSON_AddNumberToObject(event, "rung", rung);
    cJSON_AddNumberToObject(event, "iterations", iterations);
    cJSON_AddItemToObject(event, "jobs", cJSON_CreateStringArray(jobs, n));
    event_send(events, event);
}

void
events_progress(const struct events *events, int rung, const struct job *job)
{
    cJSON *event = event_create(events, "progress");

    cJSON_AddNumberToObject(event, "rung", rung);
    add_state(event, job);
    event_send(events, event);
}

void
events_stage_end(const struct events *events, int rung, double seconds,
                 const char *const *ranking, int n)
{
    cJSON *event = event_create(events, "stage-end");

    cJSON_AddNumberToObject(event, "rung", rung);
    cJSON_AddNumberToObject(event, "seconds", seconds);
    cJSON_AddItemToObject(event, "ranking",
                          cJSON_CreateStringArray(ranking, n));
    event_send(events, event);
}

void
events_job_end(const struct events *events, const struct job *job,
               const char *outcome)
{
    cJSON *event = event_create(events, "job-end");

    add_state(event, job);
    cJSON_AddStringToObject(event, "outcome", outcome);
    cJSON_AddNumberToObject(event, "bytes", job->bytes);
    event_send(events, event);
}

void
events_search_end(const struct events *events, const struct job *best,
                  double seconds)
{
    cJSON *event = event_create(events, "search-end");

    if (best) {
        cJSON_AddStringToObject(event, "best", best->name);
    } else {
        cJSON_AddNullToObject(event, "best");
    }
    cJSON_AddNumberToObject(event, "seconds", seconds);
    event_send(events, event);
}

void
events_warning(const struct events *events, const struct job *job)
{
    fprintf(stderr, "%s/%s: failed at iteration %lld%s%s\n", events->cojob,
            job->name, (long long) job->iteration, job->error ? ": " : "",
            job->error ? job->error : "");
}
