/* SPDX-License-Identifier: Apache-2.0 */

/* The summaries of a report: what its tables say of each policy. */

#include "reporting/report-private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int
compare_doubles(const void *a_, const void *b_)
{
    const double *a = a_, *b = b_;

    return *a < *b ? -1 : *a > *b;
}

double *
report_stage_times(const struct report_policy *p, size_t *np)
{
    double *times = report_must(calloc(p->n_stages + 1, sizeof *times));
    size_t n = 0;

    for (size_t i = 0; i < p->n_stages; i++) {
        double time = p->stages[i].end - p->stages[i].start;

        if (!isnan(time)) {
            times[n++] = time;
        }
    }
    qsort(times, n, sizeof *times, compare_doubles);
    *np = n;
    return times;
}

/* The row of 'stage' in pictures. */
static long long
stage_row(const struct report_policy *p, const struct report_stage *stage)
{
    const struct report_search *s = report_find_search(p, stage->cojob);

    return (s ? s - p->searches : (long long) p->n_searches) * 1000
           + stage->rung;
}

/* Sorts stages by search and rung; there are few. */
static void
sort_stages(struct report_policy *p)
{
    for (size_t i = 1; i < p->n_stages; i++) {
        struct report_stage stage = p->stages[i];
        size_t j = i;

        for (; j > 0 && stage_row(p, &p->stages[j - 1])
                        > stage_row(p, &stage); j--) {
            p->stages[j] = p->stages[j - 1];
        }
        p->stages[j] = stage;
    }
}

static void
summarize_stages(struct report_policy *p)
{
    double *sct = report_stage_times(p, &p->n_ended);
    double sum = 0;

    for (size_t i = 0; i < p->n_stages; i++) {
        if (!isnan(p->stages[i].end)) {
            sum += p->stages[i].end - p->stages[i].start;
        }
    }
    if (p->n_ended) {
        p->mean_sct_s = sum / p->n_ended;
        p->p95_sct_s = sct[(size_t) ceil(0.95 * p->n_ended) - 1];
    }
    free(sct);
}

static const struct report_cojob *
find_cojob(const struct report_policy *p, const char *cojob)
{
    for (size_t i = 0; i < p->n_cojobs; i++) {
        if (!strcmp(p->cojobs[i].cojob, cojob)) {
            return &p->cojobs[i];
        }
    }
    return NULL;
}

static void
summarize_searches(struct report_policy *p)
{
    double first = INFINITY, last = -INFINITY, accuracy = 0;
    bool complete = p->n_searches > 0;
    size_t n = 0;

    for (size_t i = 0; i < p->n_searches; i++) {
        const struct report_search *s = &p->searches[i];

        first = fmin(first, s->start);
        last = fmax(last, s->end);
        if (!find_cojob(p, s->cojob)) {
            accuracy += s->accuracy;    /* NAN if one is not known. */
            n++;
        }
        complete = complete && !isnan(s->end);
    }
    if (complete) {
        p->makespan_s = last - first;
        p->accuracy = n ? accuracy / n : NAN;
    }
}

static void
summarize_jobs(struct report_policy *p)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = 0; i < p->n_jobs; i++) {
        const struct report_job *j = &p->jobs[i];

        if (j->n_iterations) {
            sum += j->busy_s / j->n_iterations;
            n++;
        }
    }
    p->iteration_s = n ? sum / n : NAN;
}

void
report_finish(struct report *r)
{
    const struct report_policy *baseline = NULL;

    for (size_t i = 0; i < r->n_policies; i++) {
        struct report_policy *p = r->policies[i];

        sort_stages(p);
        summarize_stages(p);
        summarize_searches(p);
        summarize_jobs(p);
        if (!baseline || (!strcmp(p->name, "fair")
                          && strcmp(baseline->name, "fair"))) {
            baseline = p;
        }
    }
    for (size_t i = 0; r->n_policies > 1 && i < r->n_policies; i++) {
        struct report_policy *p = r->policies[i];

        r->baseline = baseline;
        if (p != baseline) {
            r->candidate = p;
        }
        if (!p->failure && !baseline->failure) {
            p->ratio = p->mean_sct_s / baseline->mean_sct_s;
        }
    }
}
