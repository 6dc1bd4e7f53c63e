/* SPDX-License-Identifier: Apache-2.0 */

#ifndef JOB_TRACE_H
#define JOB_TRACE_H 1

/* Reads traces of the jobs of training clusters.
 *
 * No public trace has the traffic of its jobs.  Some have arrival, duration,
 * number of GPUs and model of each job, from which workload-jobs.h makes
 * searches.  Their formats are recognized by the first line:
 *
 *    Gavel     no header; fields between tabs, of each line seven or ten:
 *              model, command, [folder,] argument, flag, steps, arrival,
 *              workers, or with ten: flag, steps, workers, weight, service
 *              level, arrival; arrivals in seconds
 *
 * The others are CSV: the first line names the columns, in any order and with
 * any others between them, a name or a value may have blanks around it or
 * quotes, and what has no column is not known:
 *
 *    Tiresias  num_gpu, submit_time, model_name, duration
 *    openb     num_gpu, creation_time, deletion_time, and cpu_milli,
 *              memory_mib, gpu_milli: pods of one size count as one model
 *    runtimes  runtime
 *    your own  job, search, model, workers, arrival, duration, iterations,
 *              bytes (that each worker sends in an iteration), compute_s (of
 *              an iteration)
 *
 * Times are in seconds.  The format is the one with most columns in the
 * header.  Without a column for workers each job has one; a job with none,
 * or without a time for which there is a column, is left out and counted.
 *
 * Plain data, the caller's. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* For messages. */
#define JOB_TRACE_FORMATS                                                     \
    "Gavel's 7 or 10 fields between tabs, or CSV with a header of Tiresias, " \
    "openb, \"runtime\" or your own such as \"arrival,job,iterations,bytes\""

/* Numbers that are not known are NAN. */
struct trace_job {
    char *model;                /* What alike jobs have in common; NULL if
                                 * not known. */
    int n_gpus;                 /* At least 1. */
    double arrival;             /* Seconds. */
    double length;              /* Seconds, or steps: proportional to how long
                                 * it is. */
    char *name, *search;        /* NULL if not known. */
    double iterations;          /* At least 1. */
    double bytes;               /* That each worker sends in an iteration, at
                                 * least 1. */
    double compute;             /* Seconds of an iteration. */
};

struct job_trace {
    size_t n, allocated;
    struct trace_job *jobs;     /* In the file's order. */
    size_t n_left_out;
    bool own; /* It has iterations, or bytes. */
};

/* Returns true if 'line' is the first of a trace of jobs. */
bool job_trace_begins(const char *line);

/* 'name' is what messages begin with.  Returns NULL and stores the trace, or
 * returns a malloc()'d message, "NAME:LINE: what was found, what is allowed",
 * and stores NULL. */
char *job_trace_read(const char *name, FILE *, struct job_trace **);
void job_trace_destroy(struct job_trace *);

#endif /* sim/workload/job-trace.h */
