/* SPDX-License-Identifier: Apache-2.0 */

#include "reporting/report.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Limits of a page, which must stay small.  report.json has everything. */
#define PAGE_STAGES 1000        /* The first stages of each policy. */
#define PAGE_SEARCHES 100       /* The first searches of each policy. */
#define PAGE_STEPS 400          /* Steps of a CDF. */
#define PAGE_POINTS 200         /* Points of the loss of a job. */

/* Returns 'value' rounded to a millionth, null for NAN. */
static cJSON *
number_to_json(double value)
{
    return (isfinite(value) ? cJSON_CreateNumber(round(value * 1e6) / 1e6)
            : cJSON_CreateNull());
}

static void
add_number(cJSON *object, const char *name, double value)
{
    cJSON_AddItemToObject(object, name, number_to_json(value));
}

static cJSON *
numbers_to_json(const double *values, size_t n)
{
    cJSON *array = cJSON_CreateArray();

    for (size_t i = 0; i < n; i++) {
        cJSON_AddItemToArray(array, number_to_json(values[i]));
    }
    return array;
}

static void
add_string(cJSON *object, const char *name, const char *value)
{
    if (value) {
        cJSON_AddStringToObject(object, name, value);
    } else {
        cJSON_AddNullToObject(object, name);
    }
}

static void
add_policy(cJSON *policies, const struct report_policy *p)
{
    cJSON *o = cJSON_CreateObject();
    cJSON *searches;

    add_string(o, "name", p->name);
    cJSON_AddBoolToObject(o, "complete", !p->failure);
    add_string(o, "failure", p->failure);
    cJSON_AddNumberToObject(o, "stages", p->n_ended);
    add_number(o, "mean_sct_s", p->mean_sct_s);
    add_number(o, "p95_sct_s", p->p95_sct_s);
    add_number(o, "makespan_s", p->makespan_s);
    add_number(o, "accuracy", p->accuracy);
    add_number(o, "iteration_s", p->iteration_s);
    add_number(o, "early_s", p->early_s);
    add_number(o, "target_s", p->target_s);
    add_number(o, "gpu_s", p->device_s);
    add_number(o, "gpu_s_to_target", p->device_s_to_target);
    add_number(o, "ratio", p->ratio);
    searches = cJSON_AddObjectToObject(o, "searches_vs_baseline");
    for (int i = 0; i < REPORT_N_SEARCH_RATIOS; i++) {
        add_number(searches, report_search_ratios[i],
                   p->searches_vs_baseline[i]);
    }
    add_number(o, "exchange_s", p->exchange_s);
    add_number(o, "bound_mean_s", p->bound_mean_s);
    add_number(o, "bound_strict_mean_s", p->bound_strict_mean_s);
    add_string(o, "bound_kind", p->bound_kind);
    add_number(o, "coverage", p->coverage);
    add_number(o, "coverage_fabric", p->coverage_fabric);
    add_number(o, "cpu_busy", p->cpu_busy);
    add_number(o, "decisions", p->decisions);
    add_number(o, "decision_us_max", p->decision_us_max);
    cJSON_AddNumberToObject(o, "restarts", p->restarts);
    cJSON_AddNumberToObject(o, "stalls", p->stalls);
    add_number(o, "startup_s", p->startup_s);
    add_number(o, "tcp_timeouts", p->tcp_timeouts);
    add_number(o, "retransmitted_share", p->retransmitted_share);
    add_number(o, "queue_p99_bytes", p->queue_p99_bytes);
    if (p->queues) {
        add_string(o, "queues", p->queues);
    }
    if (p->congestion_control) {
        add_string(o, "congestion_control", p->congestion_control);
    }
    if (p->tcp_congestion_control) {
        add_string(o, "tcp_congestion_control", p->tcp_congestion_control);
    }
    for (const cJSON *d = p->details ? p->details->child : NULL; d;
         d = d->next) {
        cJSON_AddItemToObject(o, d->string, cJSON_Duplicate(d, true));
    }
    cJSON_AddItemToArray(policies, o);
}

static void
add_stages(cJSON *stages, const struct report_policy *p, size_t max)
{
    for (size_t i = 0; i < p->n_stages && i < max; i++) {
        const struct report_stage *s = &p->stages[i];
        cJSON *o = cJSON_CreateObject();

        add_string(o, "policy", p->name);
        add_string(o, "cojob", s->cojob);
        cJSON_AddNumberToObject(o, "rung", s->rung);
        cJSON_AddNumberToObject(o, "jobs", s->n_jobs);
        add_number(o, "start", s->start);
        add_number(o, "end", s->end);
        cJSON_AddItemToArray(stages, o);
    }
}

static void
add_searches(cJSON *searches, const struct report_policy *p, size_t max)
{
    for (size_t i = 0; i < p->n_searches && i < max; i++) {
        const struct report_search *s = &p->searches[i];
        cJSON *o = cJSON_CreateObject();

        add_string(o, "policy", p->name);
        add_string(o, "cojob", s->cojob);
        add_number(o, "start", s->start);
        add_number(o, "end", s->end);
        add_string(o, "best", s->best);
        add_number(o, "accuracy", s->accuracy);
        add_number(o, "loss", s->loss);
        cJSON_AddItemToArray(searches, o);
    }
}

/* Adds 'j' with at most 'max' points [time, iteration, loss, accuracy]. */
static void
add_job(cJSON *jobs, const char *policy, const struct report_job *j,
        size_t max)
{
    size_t step = j->n_points / max + 1;
    cJSON *o = cJSON_CreateObject();
    cJSON *points;

    add_string(o, "policy", policy);
    add_string(o, "cojob", j->cojob);
    add_string(o, "job", j->job);
    add_string(o, "outcome", j->outcome);
    cJSON_AddNumberToObject(o, "iteration", j->iteration);
    add_number(o, "loss", j->loss);
    add_number(o, "accuracy", j->accuracy);
    points = cJSON_AddArrayToObject(o, "points");
    for (size_t k = 0; k < j->n_points; k += step) {
        const struct report_point *p = &j->points[k];

        cJSON_AddItemToArray(points, numbers_to_json((const double[]) {
            p->time, p->iteration, p->loss, p->accuracy }, 4));
    }
    cJSON_AddItemToArray(jobs, o);
}

static void
add_jobs(cJSON *jobs, const struct report_policy *p, size_t max_points)
{
    for (size_t k = 0; k < p->n_jobs; k++) {
        add_job(jobs, p->name, &p->jobs[k], max_points);
    }
}

/* Adds the last iteration of each job of 'cojob'. */
static void
add_iterations(cJSON *o, const struct report_policy *p, const char *cojob)
{
    cJSON *jobs = cJSON_AddObjectToObject(o, "iterations");

    for (size_t i = 0; i < p->n_jobs; i++) {
        if (!strcmp(p->jobs[i].cojob, cojob)) {
            cJSON_AddNumberToObject(jobs, p->jobs[i].job,
                                    p->jobs[i].iteration);
        }
    }
}

static void
add_cojobs(cJSON *cojobs, const struct report_policy *p)
{
    for (size_t i = 0; i < p->n_cojobs; i++) {
        const struct report_cojob *c = &p->cojobs[i];
        cJSON *o = cJSON_CreateObject();

        add_string(o, "policy", p->name);
        add_string(o, "cojob", c->cojob);
        add_number(o, "tagged_bytes", c->tagged);
        add_number(o, "untagged_bytes", c->untagged);
        add_number(o, "coverage", c->tagged / (c->tagged + c->untagged));
        add_iterations(o, p, c->cojob);
        cJSON_AddItemToArray(cojobs, o);
    }
}

static void
add_links(cJSON *links, const struct report_policy *p)
{
    for (size_t i = 0; i < p->n_ports && p->n_samples; i++) {
        cJSON *o = cJSON_CreateObject();
        double max, mean = report_port_use(p, i, &max);

        add_string(o, "policy", p->name);
        add_string(o, "port", p->ports[i]);
        add_number(o, "mean_use", mean);
        add_number(o, "max_use", max);
        cJSON_AddItemToArray(links, o);
    }
}

/* Writes 'top' and destroys it.  If 'in_page', no "<" remains, so that the
 * text cannot end the script element that it is in. */
static void
put_json(cJSON *top, FILE *stream, bool in_page)
{
    char *text = in_page ? cJSON_PrintUnformatted(top) : cJSON_Print(top);

    for (const char *p = text; p && *p; p++) {
        if (in_page && *p == '<') {
            fputs("\\u003c", stream);
        } else {
            putc(*p, stream);
        }
    }
    putc('\n', stream);
    free(text);
    cJSON_Delete(top);
}

void
report_put_json(const struct report *r, FILE *stream)
{
    cJSON *top = cJSON_CreateObject();
    cJSON *policies, *stages, *searches, *cojobs, *links, *jobs;

    add_string(top, "title", r->title);
    add_string(top, "kind", r->kind);
    add_string(top, "setting", r->setting);
    if (r->inputs) {
        add_string(top, "inputs", r->inputs);
    }
    add_string(top, "about", r->about);
    cJSON_AddNumberToObject(top, "time", r->when);
    policies = cJSON_AddArrayToObject(top, "policies");
    add_string(top, "baseline", r->baseline ? r->baseline->name : NULL);
    add_number(top, "ratio", r->candidate ? r->candidate->ratio : NAN);
    stages = cJSON_AddArrayToObject(top, "stages");
    searches = cJSON_AddArrayToObject(top, "searches");
    cojobs = cJSON_AddArrayToObject(top, "cojobs");
    links = cJSON_AddArrayToObject(top, "links");
    jobs = cJSON_AddArrayToObject(top, "jobs");
    for (size_t i = 0; i < r->n_policies; i++) {
        add_policy(policies, r->policies[i]);
        add_stages(stages, r->policies[i], SIZE_MAX);
        add_searches(searches, r->policies[i], SIZE_MAX);
        add_cojobs(cojobs, r->policies[i]);
        add_links(links, r->policies[i]);
        add_jobs(jobs, r->policies[i], SIZE_MAX);
    }
    put_json(top, stream, false);
}

/* Adds the steps [seconds, share of the stages] of the distribution of
 * completion times. */
static void
add_cdf(cJSON *o, const struct report_policy *p)
{
    cJSON *cdf = cJSON_AddArrayToObject(o, "cdf");
    size_t n;
    double *times = report_stage_times(p, &n);
    size_t step = n / PAGE_STEPS + 1;

    /* The last step is always the longest time. */
    for (size_t i = n ? (n - 1) % step : 0; i < n; i += step) {
        cJSON_AddItemToArray(cdf, numbers_to_json((const double[]) {
            times[i], (i + 1.0) / n }, 2));
    }
    free(times);
}

/* Adds the use of each port at each sample, in percent. */
static void
add_use(cJSON *o, const struct report_policy *p)
{
    cJSON *ports = cJSON_AddArrayToObject(o, "ports");
    cJSON *use = cJSON_AddArrayToObject(o, "use");

    cJSON_AddItemToObject(o, "samples",
                          numbers_to_json(p->sample_times, p->n_samples));
    for (size_t i = 0; i < p->n_ports; i++) {
        cJSON *row = cJSON_CreateArray();

        cJSON_AddItemToArray(ports, cJSON_CreateString(p->ports[i]));
        for (size_t j = 0; j < p->n_samples; j++) {
            cJSON_AddItemToArray(row, cJSON_CreateNumber(
                round(100 * p->use[j * p->n_ports + i])));
        }
        cJSON_AddItemToArray(use, row);
    }
}

/* Writes what ui/report.js draws: {"baseline", "candidate" (names, or null),
 * "policies": [{"name", "cdf", "ports", "use", "samples"}], "stages",
 * "searches", "jobs"}.  The last three are those of report_put_json(), but
 * limited in number. */
void
report_put_page_json(const struct report *r, FILE *stream)
{
    cJSON *top = cJSON_CreateObject();
    cJSON *policies = cJSON_AddArrayToObject(top, "policies");
    cJSON *stages = cJSON_AddArrayToObject(top, "stages");
    cJSON *searches = cJSON_AddArrayToObject(top, "searches");
    cJSON *jobs = cJSON_AddArrayToObject(top, "jobs");

    add_string(top, "baseline", r->baseline ? r->baseline->name : NULL);
    add_string(top, "candidate", r->candidate ? r->candidate->name : NULL);
    for (size_t i = 0; i < r->n_policies; i++) {
        cJSON *o = cJSON_CreateObject();

        add_string(o, "name", r->policies[i]->name);
        add_cdf(o, r->policies[i]);
        add_use(o, r->policies[i]);
        cJSON_AddItemToArray(policies, o);
        add_stages(stages, r->policies[i], PAGE_STAGES);
        add_searches(searches, r->policies[i], PAGE_SEARCHES);
        add_jobs(jobs, r->policies[i], PAGE_POINTS);
    }
    put_json(top, stream, true);
}
