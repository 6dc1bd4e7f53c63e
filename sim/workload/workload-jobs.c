/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/workload/workload-jobs.h"

#include <math.h>
#include <stdbool.h>

#include "base/compare.h"
#include "order/problem/memory.h"
#include "sim/workload/job-trace.h"
#include "sim/workload/random.h"
#include "sim/workload/settings.h"
#include "sim/workload/workload-pattern.h"
#include "sim/workload/workload.h"

#define LINK_CAPACITY 1.25e9    /* 10 Gbit/s, in bytes per second. */
#define MAX_SEARCH 16           /* Jobs of a search. */
#define MAX_RUNGS 3
#define MAX_WORKERS 8
#define MAX_OWN_WORKERS (WORKLOAD_DRAW_MAX_HOSTS - 2)
#define MIDDLE_ITERATIONS 24
#define MIN_ITERATIONS 4
#define MAX_ITERATIONS 240
#define MAX_MERGED 50000 /* Iterations of a trace of your own. */

/* Bytes of a model's parameters in float32, by how its name begins. */
static const struct {
    const char *name;
    double megabytes;
} models[] = {
    { "A3C", 3 },
    { "CycleGAN", 113 },
    { "LM", 56 },
    { "Recommendation", 97 },
    { "ResNet-18", 47 },
    { "ResNet-50", 102 },
    { "Transformer", 260 },
    { "alexnet", 244 },
    { "googlenet", 27 },
    { "inception3", 95 },
    { "inception4", 171 },
    { "resnet101", 178 },
    { "resnet152", 241 },
    { "resnet50", 102 },
    { "vgg11", 531 },
    { "vgg16", 553 },
    { "vgg19", 575 },
};
#define N_MODELS (sizeof models / sizeof *models)

/* Jobs that become one search. */
struct group {
    size_t n, allocated;
    const struct trace_job **jobs;
};

struct maker {
    const struct jobs_options *options;
    struct sim_random random;
    size_t n_jobs;
    struct trace_job *jobs;     /* By arrival. */
    double middle;              /* Median of their lengths. */
    bool own;                   /* As in struct job_trace. */
    double merged;              /* Iterations that become one. */
    size_t n_groups, allocated;
    struct group *groups;
    struct workload *w;
};

char *
jobs_options_parse(const char *text, struct jobs_options *o)
{
    double seed = o->seed;
    const struct setting settings[] = {
        { .name = "hosts", .integer = &o->n_hosts, .min = 2, .max = 4096 },
        { .name = "jobs", .integer = &o->n_jobs, .min = 1, .max = 100000 },
        { .name = "window", .number = &o->window, .min = 0, .max = 1e6 },
        { .name = "compute", .number = &o->compute, .min = 0, .max = 0.95 },
        { .name = "load", .number = &o->load, .min = 0.01, .max = 10 },
        { .name = "seed", .number = &seed, .min = 0, .max = 1e9 },
    };
    char *error = settings_read("jobs", text, settings,
                                sizeof settings / sizeof *settings);

    o->seed = seed;
    return error;
}

static int
compare_arrivals(const void *a_, const void *b_)
{
    const struct trace_job *a = a_, *b = b_;

    return a->arrival < b->arrival ? -1 : a->arrival > b->arrival;
}

/* Returns the median of those of 'lengths' that are known, NAN without any.
 * Sorts 'lengths'. */
static double
median(double *lengths, size_t n)
{
    size_t known = 0;

    for (size_t i = 0; i < n; i++) {
        if (!isnan(lengths[i])) {
            lengths[known++] = lengths[i];
        }
    }
    qsort(lengths, known, sizeof *lengths, compare_doubles);
    return known ? lengths[known / 2] : NAN;
}

/* Takes the jobs that are wanted, and gives them arrivals if they have
 * none. */
static void
take_jobs(struct maker *m, const struct job_trace *trace)
{
    size_t max = m->options->n_jobs;
    bool timed = !isnan(trace->jobs[0].arrival);
    double *lengths;
    double now = 0, iterations = 0;

    m->own = trace->own;
    m->jobs = order_alloc(trace->n, sizeof *m->jobs);
    memcpy(m->jobs, trace->jobs, trace->n * sizeof *m->jobs);
    for (size_t i = 0; !timed && i < trace->n; i++) {
        size_t j = sim_random_integer(&m->random, i, trace->n - 1);
        struct trace_job job = m->jobs[j];

        m->jobs[j] = m->jobs[i];
        m->jobs[i] = job;
        m->jobs[i].arrival = now += sim_random_gap(&m->random);
    }
    qsort(m->jobs, trace->n, sizeof *m->jobs, compare_arrivals);
    m->n_jobs = trace->n < max ? trace->n : max;
    lengths = order_alloc(m->n_jobs, sizeof *lengths);
    for (size_t i = 0; i < m->n_jobs; i++) {
        lengths[i] = m->jobs[i].length;
        iterations += isnan(m->jobs[i].iterations) ? 0 : m->jobs[i].iterations;
    }
    m->middle = median(lengths, m->n_jobs);
    m->merged = fmax(1, iterations / MAX_MERGED);
    free(lengths);
}

static bool
are_alike(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

/* Returns true if 'job' is like those of 'g' and comes within 'window' of the
 * first of them. */
static bool
belongs(const struct group *g, const struct trace_job *job, double window)
{
    const struct trace_job *first = g->jobs[0];

    return are_alike(job->model, first->model) && g->n < MAX_SEARCH
           && job->arrival - first->arrival <= window;
}

static void
add_to_group(struct maker *m, size_t i, const struct trace_job *job)
{
    struct group *g;

    if (i == m->n_groups) {
        m->groups = order_grow(m->groups, m->n_groups + 1, &m->allocated,
                               sizeof *m->groups);
        m->groups[m->n_groups++] = (struct group){ .n = 0 };
    }
    g = &m->groups[i];
    g->jobs = order_grow(g->jobs, g->n + 1, &g->allocated, sizeof *g->jobs);
    g->jobs[g->n++] = job;
}

/* Puts jobs of a trace of your own together by the names of their searches. */
static void
group_own_jobs(struct maker *m)
{
    for (size_t i = 0; i < m->n_jobs; i++) {
        const struct trace_job *job = &m->jobs[i];
        size_t g = job->search ? 0 : m->n_groups;

        while (g < m->n_groups
               && (!m->groups[g].jobs[0]->search
                   || strcmp(m->groups[g].jobs[0]->search, job->search))) {
            g++;
        }
        add_to_group(m, g, job);
    }
}

static void
group_jobs(struct maker *m)
{
    double span = m->jobs[m->n_jobs - 1].arrival - m->jobs[0].arrival;
    double window = span / m->n_jobs * m->options->window;
    size_t open = 0;            /* Groups before it are over. */

    for (size_t i = 0; i < m->n_jobs; i++) {
        const struct trace_job *job = &m->jobs[i];
        size_t g = open;

        while (g < m->n_groups && !belongs(&m->groups[g], job, window)) {
            bool over = job->arrival - m->groups[g].jobs[0]->arrival > window;

            open += g == open && over;
            g++;
        }
        add_to_group(m, g, job);
    }
}

static double
model_bytes(const char *name, struct sim_random *r)
{
    if (!name) {
        return models[sim_random_integer(r, 0, N_MODELS - 1)].megabytes * 1e6;
    }
    for (size_t i = 0; i < N_MODELS; i++) {
        if (!strncmp(name, models[i].name, strlen(models[i].name))) {
            return models[i].megabytes * 1e6;
        }
    }
    return sim_random_log_between(r, 1e6, 256e6);
}

/* Adds 'tj' with 'merged' iterations in one.  'bytes' and 'compute', a share
 * of an iteration, are for a job where they are not known. */
static void
add_job(struct maker *m, struct workload_cojob *cojob,
        const struct trace_job *tj, double bytes, double compute,
        double merged)
{
    struct sim_random *r = &m->random;
    int n_hosts = m->options->n_hosts;
    int max = m->own ? MAX_OWN_WORKERS : MAX_WORKERS;
    int n = tj->n_gpus < max ? tj->n_gpus : max;
    int n_servers = n < 4 ? 1 : 2;
    struct workload_job *job;
    char name[24];

    if (n > 1 && sim_random_next(r) >> 63) {
        n_servers = 0;
    }
    n = n + n_servers <= n_hosts ? n : n_hosts - n_servers;
    if (n < 1) {
        n = n_servers = 1;
    }
    snprintf(name, sizeof name, "t%zu", cojob->n_jobs);
    job = workload_add_job(cojob, tj->name ? tj->name : name, 0);
    workload_draw_exchange(job, r, n_hosts, n, n_servers,
                           merged * (isnan(tj->bytes) ? bytes : tj->bytes));
    workload_draw_rest(job, r, m->w->fabric, compute);
    if (!isnan(tj->compute)) {
        job->compute = merged * tj->compute;
    }
}

/* Iterations that the search's last rung ends with. */
static double
count_iterations(const struct maker *m, const struct group *g)
{
    double *lengths = order_alloc(g->n, sizeof *lengths);
    double most = NAN, n;

    for (size_t i = 0; i < g->n; i++) {
        lengths[i] = g->jobs[i]->length;
        most = fmax(most, g->jobs[i]->iterations);
    }
    n = m->middle > 0 ? MIDDLE_ITERATIONS * median(lengths, g->n) / m->middle
                      : MIDDLE_ITERATIONS;
    free(lengths);
    return (isnan(most) ? round(fmin(fmax(n, MIN_ITERATIONS), MAX_ITERATIONS))
                        : most);
}

static void
add_search(struct maker *m, const struct group *g)
{
    const struct trace_job *first = g->jobs[0];
    const struct jobs_options *o = m->options;
    double share = sim_random_between(&m->random, 0, 0.8);
    double bytes = model_bytes(first->model, &m->random);
    double iterations = count_iterations(m, g);
    int64_t total = fmax(1, floor(iterations / m->merged));
    int n_rungs = g->n >= 4 ? MAX_RUNGS : g->n >= 2 ? 2 : 1;
    struct workload_cojob *cojob;
    size_t n = g->n;
    char name[24];

    snprintf(name, sizeof name, "s%zu", m->w->n_cojobs);
    cojob = workload_add_cojob(m->w,
                               first->search ? first->search
                               : first->name ? first->name
                                             : name,
                               1, first->arrival - m->jobs[0].arrival);
    for (size_t i = 0; i < g->n; i++) {
        add_job(m, cojob, g->jobs[i], bytes,
                isnan(o->compute) ? share : o->compute, iterations / total);
    }
    n_rungs = n_rungs < total ? n_rungs : total;
    for (int i = 1; i <= n_rungs; i++) {
        workload_add_rung(m->w, cojob, total * i / n_rungs, n);
        n = (n + 1) / 2;
    }
    workload_keep_best(cojob);
}

static struct workload *
make_workload(const struct job_trace *trace,
              const struct jobs_options *options)
{
    struct maker m = { .options = options, .random = { options->seed } };
    bool as_it_is =
        trace->own && isnan(options->load) && !isnan(trace->jobs[0].arrival);

    m.w = workload_create("stage", sim_fabric_create(options->n_hosts,
                                                     LINK_CAPACITY));
    m.w->n_left_out = trace->n_left_out;
    take_jobs(&m, trace);
    if (m.own) {
        group_own_jobs(&m);
    } else {
        group_jobs(&m);
    }
    for (size_t i = 0; i < m.n_groups; i++) {
        add_search(&m, &m.groups[i]);
        free(m.groups[i].jobs);
    }
    if (!as_it_is) {
        workload_spread_arrivals(m.w,
                                 isnan(options->load) ? 1 : options->load);
    }
    free(m.groups);
    free(m.jobs);
    return m.w;
}

char *
workload_jobs_read(const char *name, FILE *stream,
                   const struct jobs_options *options, struct workload **wp)
{
    struct job_trace *trace;
    char *error = job_trace_read(name, stream, &trace);

    *wp = error ? NULL : make_workload(trace, options);
    job_trace_destroy(trace);
    return error;
}
