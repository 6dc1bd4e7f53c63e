/* SPDX-License-Identifier: Apache-2.0 */

#include "reporting/report.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/compare.h"
#include "base/memory.h"
#include "reporting/about.h"

/* Of the best accuracy of a search, to be its target. */
#define TARGET_SHARE 0.99

/* Replaces '*member' by a copy of 'value', which may be null. */
void
report_set(char **member, const char *value)
{
    free(*member);
    *member = duplicate(value);
}

struct report *
report_create(const char *title, const char *kind)
{
    struct report *r = allocate(1, sizeof *r);

    report_set(&r->title, title);
    report_set(&r->kind, kind);
    r->about = about_this_run();
    r->legend = report_legend;
    r->when = time(NULL);
    return r;
}

static void
policy_destroy_contents(struct report_policy *p)
{
    for (size_t i = 0; i < p->n_stages; i++) {
        free(p->stages[i].cojob);
    }
    for (size_t i = 0; i < p->n_jobs; i++) {
        free(p->jobs[i].cojob);
        free(p->jobs[i].job);
        free(p->jobs[i].outcome);
        free(p->jobs[i].points);
    }
    for (size_t i = 0; i < p->n_searches; i++) {
        free(p->searches[i].cojob);
        free(p->searches[i].best);
    }
    for (size_t i = 0; i < p->n_cojobs; i++) {
        free(p->cojobs[i].cojob);
    }
    free(p->cojobs);
    free(p->stages);
    free(p->jobs);
    free(p->searches);
    free_strings(p->ports, p->n_ports);
    free(p->sample_times);
    free(p->use);
    free(p->name);
    free(p->failure);
    free(p->bound_kind);
    free(p->queues);
    free(p->remark);
    cJSON_Delete(p->details);
    free(p->tcp_congestion_control);
    free(p->figures);
}

void
report_destroy(struct report *r)
{
    if (r) {
        for (size_t i = 0; i < r->n_policies; i++) {
            policy_destroy_contents(r->policies[i]);
            free(r->policies[i]);
        }
        free(r->policies);
        free(r->title);
        free(r->kind);
        free(r->description);
        free(r->setting);
        free(r->inputs);
        free(r->about);
        free(r);
    }
}

struct report_policy *
report_add_policy(struct report *r, const char *name)
{
    struct report_policy *p = allocate(1, sizeof *p);

    report_set(&p->name, name);
    p->coverage = p->coverage_fabric = p->cpu_busy = NAN;
    p->bound_mean_s = p->bound_strict_mean_s = p->decision_us_max = NAN;
    p->decisions = p->startup_s = p->tcp_timeouts = NAN;
    p->retransmitted_share = p->queue_p99_bytes = NAN;
    p->mean_sct_s = p->p95_sct_s = p->makespan_s = NAN;
    p->accuracy = p->iteration_s = p->exchange_s = p->ratio = NAN;
    p->early_s = p->target_s = p->device_s = p->device_s_to_target = NAN;
    report_compare_searches(NULL, 0, NULL, 0, p->searches_vs_baseline);
    r->policies = reallocate(r->policies, r->n_policies + 1,
                             sizeof *r->policies);
    r->policies[r->n_policies++] = p;
    return p;
}

static const struct report_search *
search_in(const struct report_search searches[], size_t n, const char *cojob)
{
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(searches[i].cojob, cojob)) {
            return &searches[i];
        }
    }
    return NULL;
}

static struct report_search *
find_search(const struct report_policy *p, const char *cojob)
{
    return (struct report_search *) search_in(p->searches, p->n_searches,
                                              cojob);
}

/* Rows of charts are in the order of these calls.  A second call for a search
 * replaces its start. */
void
report_search_begin(struct report_policy *p, const char *cojob, double t)
{
    struct report_search *s = find_search(p, cojob);

    if (s) {
        s->start = t;
        return;
    }
    p->searches = grow(p->searches, p->n_searches, &p->allocated_searches,
                       sizeof *p->searches);
    s = &p->searches[p->n_searches++];
    *s = (struct report_search){
        .cojob = duplicate(cojob),
        .start = t,
        .end = NAN,
        .accuracy = NAN,
        .loss = NAN,
    };
}

static struct report_job *
find_job(struct report_policy *p, const char *cojob, const char *job)
{
    for (size_t i = 0; i < p->n_jobs; i++) {
        struct report_job *j = &p->jobs[i];

        if (!strcmp(j->cojob, cojob) && !strcmp(j->job, job)) {
            return j;
        }
    }
    return NULL;
}

/* 'best' may be null. */
void
report_search_end(struct report_policy *p, const char *cojob, double t,
                  const char *best)
{
    const struct report_job *job = best ? find_job(p, cojob, best) : NULL;
    struct report_search *s = find_search(p, cojob);

    if (s) {
        s->end = t;
        report_set(&s->best, best);
        s->accuracy = job ? job->accuracy : NAN;
        s->loss = job ? job->loss : NAN;
    }
}

void
report_stage_begin(struct report_policy *p, const char *cojob, int rung,
                   double t, int n_jobs)
{
    struct report_stage *s;

    p->stages = grow(p->stages, p->n_stages, &p->allocated_stages,
                     sizeof *p->stages);
    s = &p->stages[p->n_stages++];
    *s = (struct report_stage) {
        .cojob = duplicate(cojob), .rung = rung, .n_jobs = n_jobs, .start = t,
        .end = NAN,
    };
    for (size_t i = 0; i < p->n_jobs; i++) {
        if (!strcmp(p->jobs[i].cojob, cojob)) {
            /* The job has waited for others since its last iteration. */
            p->jobs[i].time = t;
        }
    }
}

void
report_stage_end(struct report_policy *p, const char *cojob, int rung,
                 double t)
{
    for (size_t i = 0; i < p->n_stages; i++) {
        struct report_stage *s = &p->stages[i];

        if (s->rung == rung && !strcmp(s->cojob, cojob) && isnan(s->end)) {
            s->end = t;
        }
    }
}

/* Returns the start of the running stage of 'cojob', NAN without one. */
static double
stage_start(const struct report_policy *p, const char *cojob)
{
    for (size_t i = p->n_stages; i-- > 0; ) {
        const struct report_stage *s = &p->stages[i];

        if (!strcmp(s->cojob, cojob)) {
            return isnan(s->end) ? s->start : NAN;
        }
    }
    return NAN;
}

static struct report_job *
get_job(struct report_policy *p, const char *cojob, const char *job)
{
    struct report_job *j = find_job(p, cojob, job);

    if (!j) {
        p->jobs = grow(p->jobs, p->n_jobs, &p->allocated_jobs,
                       sizeof *p->jobs);
        j = &p->jobs[p->n_jobs++];
        *j = (struct report_job){ .cojob = duplicate(cojob),
                                  .job = duplicate(job),
                                  .loss = NAN,
                                  .accuracy = NAN,
                                  .exchange_s = NAN,
                                  .begin = NAN,
                                  .end = NAN,
                                  .time = stage_start(p, cojob) };
    }
    return j;
}

/* The job begins its first iteration at 't', 'startup' seconds after its
 * search. */
void
report_job_ready(struct report_policy *p, const char *cojob, const char *job,
                 double t, double startup)
{
    get_job(p, cojob, job)->time = t;
    p->startup_s = startup + (isnan(p->startup_s) ? 0 : p->startup_s);
}

/* 'loss' and 'accuracy' are NAN if they were not reported. */
void
report_progress(struct report_policy *p, const char *cojob, const char *job,
                double t, long long iteration, double loss, double accuracy)
{
    struct report_job *j = get_job(p, cojob, job);

    if (iteration > j->iteration && t >= j->time) {
        j->busy_s += t - j->time;
        j->n_iterations += iteration - j->iteration;
    }
    if (iteration != j->iteration || isnan(j->time)) {
        j->time = t;
    }
    j->iteration = iteration;
    if (!isnan(accuracy)) {
        j->accuracy = accuracy;
    }
    if (!isnan(loss)) {
        j->loss = loss;
        j->points = grow(j->points, j->n_points, &j->allocated_points,
                         sizeof *j->points);
        j->points[j->n_points++] =
            (struct report_point){ t, iteration, loss, accuracy };
    }
}

void
report_job_end(struct report_policy *p, const char *cojob, const char *job,
               const char *outcome, double exchange_s)
{
    struct report_job *j = get_job(p, cojob, job);

    report_set(&j->outcome, outcome);
    j->exchange_s = exchange_s;
}

void
report_job_devices(struct report_policy *p, const char *cojob, const char *job,
                   double begin, double end, int devices)
{
    struct report_job *j = get_job(p, cojob, job);

    j->begin = begin;
    j->end = end;
    j->devices = devices;
}

/* Adds a cojob of commands, for which its hosts sent 'tagged' bytes. */
void
report_cojob(struct report_policy *p, const char *cojob, double tagged,
             double untagged)
{
    p->cojobs = grow(p->cojobs, p->n_cojobs, &p->allocated_cojobs,
                     sizeof *p->cojobs);
    p->cojobs[p->n_cojobs++] = (struct report_cojob) {
        .cojob = duplicate(cojob), .tagged = tagged, .untagged = untagged,
    };
}

void
report_set_ports(struct report_policy *p, const char *const names[], size_t n)
{
    p->n_ports = n;
    p->ports = allocate(n, sizeof *p->ports);
    for (size_t i = 0; i < n; i++) {
        report_set(&p->ports[i], names[i]);
    }
}

/* 'use' has one element for each port. */
void
report_links(struct report_policy *p, double t, const float use[])
{
    size_t allocated = p->allocated_samples;

    p->sample_times = grow(p->sample_times, p->n_samples,
                           &p->allocated_samples, sizeof *p->sample_times);
    if (p->allocated_samples != allocated) {
        p->use = reallocate(p->use, p->allocated_samples,
                            (p->n_ports ? p->n_ports : 1) * sizeof *p->use);
    }
    memcpy(p->use + p->n_samples * p->n_ports, use, p->n_ports * sizeof *use);
    p->sample_times[p->n_samples++] = t;
}

const struct report_stage *
report_find_stage(const struct report_policy *p, const char *cojob, int rung)
{
    for (size_t i = 0; i < p->n_stages; i++) {
        if (p->stages[i].rung == rung && !strcmp(p->stages[i].cojob, cojob)) {
            return &p->stages[i];
        }
    }
    return NULL;
}

double
report_port_use(const struct report_policy *p, size_t port, double *max)
{
    double sum = 0;

    *max = p->n_samples && port < p->n_ports ? 0 : NAN;
    for (size_t i = 0; i < p->n_samples && port < p->n_ports; i++) {
        double use = p->use[i * p->n_ports + port];

        sum += use;
        *max = fmax(*max, use);
    }
    return isnan(*max) ? NAN : sum / p->n_samples;
}

double *
report_stage_times(const struct report_policy *p, size_t *np)
{
    double *times = allocate(p->n_stages + 1, sizeof *times);
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

/* Returns the sort key of 'stage': its search, then its rung. */
static long long
stage_row(const struct report_policy *p, const struct report_stage *stage)
{
    const struct report_search *s = find_search(p, stage->cojob);

    return (s ? s - p->searches : (long long) p->n_searches) * 1000
           + stage->rung;
}

/* Sorts stages by search and rung. */
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

    for (size_t i = 0; i < p->n_ended; i++) {
        sum += sct[i];
    }
    if (p->n_ended) {
        p->mean_sct_s = sum / p->n_ended;
        p->p95_sct_s = sct[(size_t) ceil(0.95 * p->n_ended) - 1];
    }
    free(sct);
}

/* Returns true if 'cojob' is one of commands. */
static bool
is_of_commands(const struct report_policy *p, const char *cojob)
{
    for (size_t i = 0; i < p->n_cojobs; i++) {
        if (!strcmp(p->cojobs[i].cojob, cojob)) {
            return true;
        }
    }
    return false;
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
        if (!is_of_commands(p, s->cojob)) {
            accuracy += s->accuracy;    /* NAN if the accuracy of one search
                                         * is. */
            n++;
        }
        complete = complete && !isnan(s->end);
    }
    if (complete) {
        p->makespan_s = last - first;
        p->accuracy = n ? accuracy / n : NAN;
    }
}

/* Returns the seconds from the begin of the search of 'j' until it reported
 * 0.9 of its last accuracy, NAN if it did not. */
static double
early_time(const struct report_policy *p, const struct report_job *j)
{
    const struct report_search *s = find_search(p, j->cojob);

    for (size_t i = 0; s && i < j->n_points; i++) {
        if (j->points[i].accuracy >= 0.9 * j->accuracy) {
            return j->points[i].time - s->start;
        }
    }
    return NAN;
}

/* Returns the largest last accuracy of the jobs of 'cojob', NAN without. */
static double
best_accuracy(const struct report_policy *p, const char *cojob)
{
    double best = NAN;

    for (size_t i = 0; i < p->n_jobs; i++) {
        if (!strcmp(p->jobs[i].cojob, cojob)) {
            best = fmax(best, p->jobs[i].accuracy);
        }
    }
    return best;
}

/* Returns when a job of 'cojob' first reported 'accuracy', INFINITY if none
 * did. */
static double
first_time(const struct report_policy *p, const char *cojob, double accuracy)
{
    double first = INFINITY;

    for (size_t i = 0; i < p->n_jobs; i++) {
        const struct report_job *j = &p->jobs[i];
        size_t k = strcmp(j->cojob, cojob) ? j->n_points : 0;

        while (k < j->n_points && !(j->points[k].accuracy >= accuracy)) {
            k++;
        }
        first = k < j->n_points ? fmin(first, j->points[k].time) : first;
    }
    return first;
}

static void
summarize_targets(struct report_policy *p)
{
    double sum = 0, held = 0, until = 0;
    size_t n = 0;

    for (size_t i = 0; i < p->n_searches; i++) {
        const struct report_search *s = &p->searches[i];
        double at =
            first_time(p, s->cojob, TARGET_SHARE * best_accuracy(p, s->cojob));

        for (size_t k = 0; k < p->n_jobs && isfinite(at); k++) {
            const struct report_job *j = &p->jobs[k];

            if (!strcmp(j->cojob, s->cojob) && !isnan(j->end)) {
                held += j->devices * (j->end - j->begin);
                until += j->devices * fmax(fmin(j->end, at) - j->begin, 0);
            }
        }
        if (isfinite(at)) {
            sum += at - s->start;
            n++;
        }
    }
    if (n) {
        p->target_s = sum / n;
        p->device_s = held;
        p->device_s_to_target = until;
    }
}

static void
summarize_jobs(struct report_policy *p)
{
    double sum = 0, early = 0, exchange_s = NAN;
    size_t n = 0, n_early = 0;

    for (size_t i = 0; i < p->n_jobs; i++) {
        const struct report_job *j = &p->jobs[i];
        double time = early_time(p, j);

        if (!isnan(time)) {
            early += time;
            n_early++;
        }
        if (!isnan(j->exchange_s)) {
            exchange_s = fmax(exchange_s, 0) + j->exchange_s;
        }
        if (j->n_iterations) {
            sum += j->busy_s / j->n_iterations;
            n++;
        }
    }
    p->iteration_s = n ? sum / n : NAN;
    p->early_s = n_early ? early / n_early : NAN;
    p->exchange_s = exchange_s;
}

const char *const report_search_ratios[] = {
    [REPORT_SEARCH_MEAN] = "mean",
    [REPORT_SEARCH_WORST] = "worst",
    [REPORT_SEARCH_LATER] = "later_share",
};

int
report_baseline_rank(const char *policy)
{
    return !strcmp(policy, "plain") ? 2 : !strcmp(policy, "fair");
}

void
report_compare_searches(const struct report_search searches[], size_t n,
                        const struct report_search base[], size_t n_base,
                        double ratios[REPORT_N_SEARCH_RATIOS])
{
    double sum = 0, worst = NAN;
    size_t n_both = 0, n_later = 0;

    for (size_t i = 0; i < n; i++) {
        const struct report_search *a = &searches[i];
        const struct report_search *b = search_in(base, n_base, a->cojob);
        double ratio = b ? (a->end - a->start) / (b->end - b->start) : NAN;

        if (isfinite(ratio)) {
            sum += ratio;
            worst = fmax(worst, ratio);
            n_later += ratio > 1.05;
            n_both++;
        }
    }
    ratios[REPORT_SEARCH_MEAN] = n_both ? sum / n_both : NAN;
    ratios[REPORT_SEARCH_WORST] = worst;
    ratios[REPORT_SEARCH_LATER] = n_both ? (double) n_later / n_both : NAN;
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
        summarize_targets(p);
        if (!baseline
            || (report_baseline_rank(p->name)
                > report_baseline_rank(baseline->name))) {
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
            report_compare_searches(p->searches, p->n_searches,
                                    baseline->searches, baseline->n_searches,
                                    p->searches_vs_baseline);
        }
    }
}

static char *
write_file(const struct report *r, const char *file,
           void (*put)(const struct report *, FILE *))
{
    FILE *stream = fopen(file, "we");
    bool failed = !stream;

    if (stream) {
        put(r, stream);
        failed = ferror(stream);
        failed = fclose(stream) || failed;
    }
    return failed ? message("%s: %s", file, strerror(errno)) : NULL;
}

char *
report_write_html(const struct report *r, const char *file)
{
    return write_file(r, file, report_put_html);
}

char *
report_write(const struct report *r, const char *dir)
{
    char *json = message("%s/report.json", dir);
    char *html = message("%s/report.html", dir);
    char *error = (mkdir(dir, 0755) && errno != EEXIST
                   ? message("%s: %s", dir, strerror(errno))
                   : write_file(r, json, report_put_json));

    error = error ? error : report_write_html(r, html);
    free(html);
    free(json);
    return error;
}
