/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/workload/job-trace.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

#include "order/problem/memory.h"
#include "sim/fabric/line-reader.h"

#define MAX_JOBS 1000000
#define MAX_GPUS 100000
#define MAX_SECONDS 1e12
#define MAX_STEPS 1e15
#define MAX_NAME 255 /* Bytes. */
#define MAX_COLUMNS 64

/* CPU, memory and GPU together are a model.  The numbers begin with
 * ARRIVAL. */
enum column {
    MODEL,
    NAME,
    SEARCH,
    N_GPUS,
    ARRIVAL,
    END,
    LENGTH,
    CPU,
    MEMORY,
    GPU,
    ITERATIONS,
    BYTES,
    COMPUTE,
    N_COLUMNS
};

static const char *const formats[][N_COLUMNS] = {
    { [MODEL] = "model_name",
      [N_GPUS] = "num_gpu",
      [ARRIVAL] = "submit_time",
      [LENGTH] = "duration" },
    { [CPU] = "cpu_milli",
      [MEMORY] = "memory_mib",
      [GPU] = "gpu_milli",
      [N_GPUS] = "num_gpu",
      [ARRIVAL] = "creation_time",
      [END] = "deletion_time" },
    { [LENGTH] = "runtime" },
    { [MODEL] = "model",
      [N_GPUS] = "workers",
      [ARRIVAL] = "arrival",
      [LENGTH] = "duration",
      [NAME] = "job",
      [SEARCH] = "search",
      [ITERATIONS] = "iterations",
      [BYTES] = "bytes",
      [COMPUTE] = "compute_s" },
};
#define N_FORMATS (sizeof formats / sizeof *formats)

/* How the lines of a file are read. */
struct layout {
    bool tabs;                /* Gavel's. */
    int n;                    /* Columns of the header. */
    const char *const *names; /* Of the format, by enum column. */
    int at[N_COLUMNS];        /* The column's place, from 1; 0: none. */
};

/* Divides the line into at most MAX_COLUMNS + 1 fields. */
static int
divide(struct line_reader *lr, char separator, char *fields[MAX_COLUMNS + 1])
{
    int n = 0;

    while (n <= MAX_COLUMNS && lr->at && !lr->error) {
        fields[n++] = line_reader_field(lr, separator, "a field");
    }
    return n;
}

static int
find_place(char *fields[], int n, const char *name)
{
    for (int i = 0; name && i < n; i++) {
        if (!strcasecmp(fields[i], name)) {
            return i + 1;
        }
    }
    return 0;
}

/* Finds the layout of a file that begins with the line of 'lr', which is used
 * up if it is a header.  Returns false if the file has none. */
static bool
find_layout(struct line_reader *lr, struct layout *layout)
{
    char *fields[MAX_COLUMNS + 1];
    int most = 0;

    *layout = (struct layout){ .tabs = isalpha((unsigned char) *lr->at)
                                       && strchr(lr->at, '\t') };
    if (layout->tabs) {
        return true; /* The line is a job's. */
    }
    layout->n = divide(lr, ',', fields);
    for (size_t i = 0; i < N_FORMATS; i++) {
        int at[N_COLUMNS], n = 0;

        for (int c = 0; c < N_COLUMNS; c++) {
            at[c] = find_place(fields, layout->n, formats[i][c]);
            n += at[c] > 0;
        }
        if (n > most) {
            most = n;
            layout->names = formats[i];
            memcpy(layout->at, at, sizeof at);
        }
    }
    return layout->at[ARRIVAL] || layout->at[END] || layout->at[LENGTH]
           || layout->at[ITERATIONS];
}

bool
job_trace_begins(const char *line)
{
    char *copy = order_strdup(line);
    struct line_reader lr = { .name = "", .at = copy };
    struct layout layout;
    bool begins = find_layout(&lr, &layout);

    free(copy);
    free(lr.error);
    return begins;
}

/* A field as a number, NAN if it is missing or empty. */
static double
number(struct line_reader *lr, char *field, const char *what, double min,
       double max)
{
    return (field && *field
                ? line_reader_number(lr, field, what, min, max, false)
                : NAN);
}

/* A field as a number of workers: 1 if it is missing, 0 if it is empty. */
static int
n_gpus(struct line_reader *lr, char *field)
{
    return (field && *field ? line_reader_number(
                lr, field, "number of workers", 0, MAX_GPUS, true)
                            : !field);
}

/* A copy of a field, NULL if it is missing or empty. */
static char *
text(const char *field)
{
    char *copy = field && *field ? order_must(strndup(field, MAX_NAME)) : NULL;

    for (char *c = copy; c && *c; c++) {
        *c = iscntrl((unsigned char) *c) ? '?' : *c;
    }
    return copy;
}

static void
read_gavel(struct line_reader *lr, struct trace_job *job)
{
    char *fields[MAX_COLUMNS + 1], *batch;
    int n = divide(lr, '\t', fields);
    bool ten = n == 10;

    if (n != 7 && !ten) {
        line_reader_fail(lr,
                         "%d fields between tabs; expected 7 or 10, as in "
                         "traces of Gavel",
                         n);
        return;
    }
    batch = strstr(fields[0], " (batch");
    if (batch) {
        *batch = '\0';
    }
    job->model = text(fields[0]);
    job->length =
        number(lr, fields[ten ? 5 : 4], "number of steps", 0, MAX_STEPS);
    job->n_gpus = n_gpus(lr, fields[6]);
    job->arrival =
        number(lr, fields[ten ? 9 : 5], "arrival in s", 0, MAX_SECONDS);
}

/* The model: its name, or a pod's size, or NULL. */
static char *
model(char *const *cells, const double *x)
{
    char *size;

    if (!cells[CPU] && !cells[MEMORY] && !cells[GPU]) {
        return text(cells[MODEL]);
    }
    if (asprintf(&size, "%g/%g/%g", x[CPU], x[MEMORY], x[GPU]) < 0) {
        abort();
    }
    return size;
}

static void
read_csv(struct line_reader *lr, const struct layout *layout,
         struct trace_job *job)
{
    char *fields[MAX_COLUMNS + 1], *cells[N_COLUMNS];
    int n = divide(lr, ',', fields);
    double x[N_COLUMNS];

    if (n != layout->n) {
        line_reader_fail(lr, "%d fields; expected %d, as in the header", n,
                         layout->n);
        return;
    }
    for (int c = 0; c < N_COLUMNS; c++) {
        cells[c] = layout->at[c] ? fields[layout->at[c] - 1] : NULL;
    }
    for (int c = ARRIVAL; c <= COMPUTE; c++) {
        x[c] = number(lr, cells[c], layout->names[c],
                      c == ITERATIONS || c == BYTES,
                      c == ITERATIONS || c == BYTES ? MAX_STEPS : MAX_SECONDS);
    }
    *job = (struct trace_job){ .model = model(cells, x),
                               .n_gpus = n_gpus(lr, cells[N_GPUS]),
                               .arrival = x[ARRIVAL],
                               .length = x[LENGTH],
                               .name = text(cells[NAME]),
                               .search = text(cells[SEARCH]),
                               .iterations = x[ITERATIONS],
                               .bytes = x[BYTES],
                               .compute = x[COMPUTE] };
    if (x[END] >= 0 && x[ARRIVAL] >= 0) {
        job->length = fmax(0, x[END] - x[ARRIVAL]);
    }
}

/* Returns true if 'job' has workers and the times for which the file has
 * columns. */
static bool
is_known(const struct trace_job *job, const struct layout *layout)
{
    const int *at = layout->at;
    bool arrives = layout->tabs || at[ARRIVAL];
    bool ends = layout->tabs || at[END] || at[LENGTH] || at[ITERATIONS];

    return job->n_gpus > 0 && !(arrives && isnan(job->arrival))
           && !(ends && isnan(job->length) && isnan(job->iterations));
}

static void
job_uninit(struct trace_job *job)
{
    free(job->model);
    free(job->name);
    free(job->search);
}

/* Adds the job of the line that 'lr' is at. */
static void
read_job(struct line_reader *lr, const struct layout *layout,
         struct job_trace *trace)
{
    struct trace_job job = { .iterations = NAN, .bytes = NAN, .compute = NAN };

    if (layout->tabs) {
        read_gavel(lr, &job);
    } else {
        read_csv(lr, layout, &job);
    }
    if (trace->n == MAX_JOBS) {
        line_reader_fail(lr, "one more job; expected at most %d", MAX_JOBS);
    }
    if (lr->error || !is_known(&job, layout)) {
        trace->n_left_out++;
        job_uninit(&job);
        return;
    }
    trace->jobs = order_grow(trace->jobs, trace->n + 1, &trace->allocated,
                             sizeof *trace->jobs);
    trace->jobs[trace->n++] = job;
}

char *
job_trace_read(const char *name, FILE *stream, struct job_trace **tracep)
{
    struct line_reader lr = { .name = name };
    struct job_trace *trace = order_alloc(1, sizeof *trace);
    struct layout layout;

    if (!line_reader_next(&lr, stream)) {
        line_reader_fail(&lr, "no line; expected " JOB_TRACE_FORMATS);
    } else if (!lr.error) {
        if (!find_layout(&lr, &layout)) {
            line_reader_fail(&lr,
                             "no trace of jobs; expected " JOB_TRACE_FORMATS);
        }
        trace->own = layout.at[ITERATIONS] || layout.at[BYTES];
        if (layout.tabs) {
            read_job(&lr, &layout, trace);
        }
    }
    while (!lr.error && line_reader_next(&lr, stream)) {
        read_job(&lr, &layout, trace);
    }
    if (!trace->n) {
        line_reader_fail(&lr, "the trace ends without a job that has workers "
                              "and times");
    }
    line_reader_uninit(&lr);
    if (lr.error) {
        job_trace_destroy(trace);
        trace = NULL;
    }
    *tracep = trace;
    return lr.error;
}

void
job_trace_destroy(struct job_trace *trace)
{
    if (trace) {
        for (size_t i = 0; i < trace->n; i++) {
            job_uninit(&trace->jobs[i]);
        }
        free(trace->jobs);
        free(trace);
    }
}
