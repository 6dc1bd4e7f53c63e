/* SPDX-License-Identifier: Apache-2.0 */

#ifndef JOB_TRACE_H
#define JOB_TRACE_H 1

/* Reads the jobs of public traces of training clusters.
 *
 * No public trace has the traffic of its jobs.  Some have arrival, duration,
 * number of GPUs and model of each job, from which workload-jobs.h makes
 * searches.  Four formats are recognized by their first line:
 *
 *    gavel      no header; seven fields between tabs: model, command,
 *               argument, flag, steps, arrival in seconds, workers
 *    tiresias   job_id,num_gpu,submit_time,iterations,model_name,duration,
 *               interval
 *    openb      name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,
 *               pod_phase,creation_time,deletion_time,scheduled_time; pods
 *               without a GPU are left out, pods of one size count as one
 *               model
 *    runtimes   runtime, in seconds; nothing else is known
 *
 * Plain data, the caller's. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Numbers that a format does not have are NAN. */
struct trace_job {
    char *model;                /* What alike jobs have in common; NULL if
                                 * the format does not say. */
    int n_gpus;                 /* At least 1. */
    double arrival;             /* Seconds. */
    double length;              /* Seconds, or steps: proportional to how long
                                 * it is. */
};

struct job_trace {
    size_t n, allocated;
    struct trace_job *jobs;     /* In the file's order. */
};

/* Returns true if 'line' is the first of a trace of jobs. */
bool job_trace_begins(const char *line);

/* 'name' is what messages begin with.  Returns NULL and stores the trace, or
 * returns a malloc()'d message, "NAME:LINE: what was found, what is allowed",
 * and stores NULL. */
char *job_trace_read(const char *name, FILE *, struct job_trace **);
void job_trace_destroy(struct job_trace *);

#endif /* sim/workload/job-trace.h */
