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
#define MAX_MODEL 64            /* Characters. */

/* How one format is read. */
struct format {
    const char *header;         /* The first line; NULL if there is none. */
    char separator;

    /* Reads a line into 'job'; returns false if it is to be left out. */
    bool (*read)(struct line_reader *, char separator, struct trace_job *job);
};

static double
number(struct line_reader *lr, char separator, const char *what, double max)
{
    return line_reader_number(lr, line_reader_field(lr, separator, what), what,
                              0, max, false);
}

static void
skip(struct line_reader *lr, char separator, int n, const char *what)
{
    while (n--) {
        line_reader_field(lr, separator, what);
    }
}

static int
n_gpus(struct line_reader *lr, char separator, int min)
{
    const char *what = "number of GPUs";

    return line_reader_number(lr, line_reader_field(lr, separator, what), what,
                              min, MAX_GPUS, true);
}

/* A copy of the next field, of which at most the first 'n' characters. */
static char *
model(struct line_reader *lr, char separator)
{
    char *field = line_reader_field(lr, separator, "a model");

    if (field && !*field) {
        line_reader_fail(lr, "no model, a name is expected");
    }
    return field ? order_must(strndup(line_reader_shown(field), MAX_MODEL))
           : NULL;
}

static bool
read_gavel(struct line_reader *lr, char tab, struct trace_job *job)
{
    char *batch;

    job->model = model(lr, tab);
    batch = job->model ? strstr(job->model, " (batch") : NULL;
    if (batch) {
        *batch = '\0';
    }
    skip(lr, tab, 3, "a command, its argument and a flag");
    job->length = number(lr, tab, "number of steps", MAX_STEPS);
    job->arrival = number(lr, tab, "arrival in s", MAX_SECONDS);
    job->n_gpus = n_gpus(lr, tab, 1);
    return true;
}

static bool
read_tiresias(struct line_reader *lr, char comma, struct trace_job *job)
{
    skip(lr, comma, 1, "an ID");
    job->n_gpus = n_gpus(lr, comma, 1);
    job->arrival = number(lr, comma, "submit time in s", MAX_SECONDS);
    number(lr, comma, "number of iterations", MAX_STEPS);
    job->model = model(lr, comma);
    job->length = number(lr, comma, "duration in s", MAX_SECONDS);
    number(lr, comma, "interval", MAX_SECONDS);
    return true;
}

static bool
read_openb(struct line_reader *lr, char comma, struct trace_job *job)
{
    double cpu, memory, gpu, deletion;

    skip(lr, comma, 1, "a name");
    cpu = number(lr, comma, "cpu_milli", MAX_STEPS);
    memory = number(lr, comma, "memory_mib", MAX_STEPS);
    job->n_gpus = n_gpus(lr, comma, 0);
    gpu = number(lr, comma, "gpu_milli", MAX_STEPS);
    skip(lr, comma, 3, "gpu_spec, qos and pod_phase");
    job->arrival = number(lr, comma, "creation_time in s", MAX_SECONDS);
    deletion = number(lr, comma, "deletion_time in s", MAX_SECONDS);
    skip(lr, comma, 1, "scheduled_time");
    job->length = fmax(0, deletion - job->arrival);
    if (asprintf(&job->model, "%g/%g/%g", cpu, memory, gpu) < 0) {
        abort();
    }
    return job->n_gpus > 0;
}

static bool
read_runtime(struct line_reader *lr, char comma, struct trace_job *job)
{
    job->length = number(lr, comma, "runtime in s", MAX_SECONDS);
    job->arrival = NAN;
    job->n_gpus = 1;
    return true;
}

static const struct format formats[] = {
    { "job_id,num_gpu,submit_time,iterations,model_name,duration,interval",
      ',', read_tiresias },
    { "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
      "creation_time,deletion_time,scheduled_time", ',', read_openb },
    { "runtime", ',', read_runtime },
    { NULL, '\t', read_gavel },
};

/* Returns the format of which 'line' is the first line, or NULL. */
static const struct format *
find_format(const char *line)
{
    const struct format *f = formats;

    for (; f->header; f++) {
        size_t n = strlen(f->header);

        if (!strncmp(line, f->header, n)
            && strspn(line + n, "\r\n") == strlen(line + n)) {
            return f;
        }
    }
    return isalpha((unsigned char) *line) && strchr(line, f->separator)
           ? f : NULL;
}

bool
job_trace_begins(const char *line)
{
    return find_format(line);
}

/* Adds the job of the line that 'lr' is at. */
static void
read_job(struct line_reader *lr, const struct format *format,
         struct job_trace *trace)
{
    struct trace_job job = { .model = NULL };
    bool wanted;

    if (!lr->at[strspn(lr->at, " \t\r\n")]) {
        return;
    }
    wanted = format->read(lr, format->separator, &job);
    line_reader_end(lr, "the last field");
    if (trace->n == MAX_JOBS) {
        line_reader_fail(lr, "one more job, at most %d are allowed", MAX_JOBS);
    }
    if (lr->error || !wanted) {
        free(job.model);
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
    const struct format *format = NULL;

    if (!line_reader_next(&lr, stream)) {
        lr.line = 1;
        line_reader_fail(&lr, "%s", ferror(stream) ? strerror(errno)
                         : "no line, a trace of jobs is expected");
    } else if (!lr.error) {
        format = find_format(lr.text);
        if (!format) {
            line_reader_fail(&lr, "no header of a trace of jobs, one such as "
                             "\"job_id,num_gpu,...\" is expected");
        } else if (!format->header) {
            read_job(&lr, format, trace);
        }
    }
    while (!lr.error && line_reader_next(&lr, stream)) {
        read_job(&lr, format, trace);
    }
    if (!trace->n) {
        line_reader_fail(&lr, "the trace ends without a job");
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
            free(trace->jobs[i].model);
        }
        free(trace->jobs);
        free(trace);
    }
}
