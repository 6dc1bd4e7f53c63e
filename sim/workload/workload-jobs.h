/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WORKLOAD_JOBS_H
#define WORKLOAD_JOBS_H 1

/* Makes searches of the jobs of a trace.
 *
 * Invented arrivals and lengths are kinder than real ones, which are heavy in
 * the tail and come in bursts.  So these are taken from a trace, and only
 * what no trace has is made by chance, by a seed:
 *
 *  - Jobs of the same model that come within a window are a search, of at most
 *    16 jobs, that halves them up to twice.
 *  - A search has 24 iterations times the length of its middle job by the
 *    length of the trace's middle job, from 4 to 240.
 *  - A job has as many workers as GPUs, at most 8, on hosts of their own, and
 *    exchanges its model with one or two parameter servers or, if it has two
 *    workers or more, as often in a ring.  Models have the sizes of their
 *    usual implementations in float32; unknown ones 1 to 256 MB.
 *  - What share of an iteration computes, learning curves, and hosts are drawn
 *    as workload-generate.h does.
 *  - Time is compressed so that the average port has the load that is asked
 *    for.  A trace without arrivals gets random ones; of one longer than the
 *    jobs that are wanted some are taken: the first, or by chance if there
 *    are no arrivals.
 *
 * A trace of your own (job-trace.h), which has iterations or bytes, is taken
 * as it is: jobs arrive at its times unless a load is asked for, the jobs of
 * one "search" are one, which arrives with its first job and has the most
 * iterations of its jobs, and any other job is a search of its own.  A job has
 * up to 256 workers.  "bytes" are those of the model.  Only what the trace
 * does not have is made as above.  More than 50000 iterations in all jobs are
 * merged: fewer ones with more bytes.
 *
 * "FILE,NAME=VALUE...", the names being
 *
 *    hosts=N       2 to 4096, default 32
 *    jobs=N        at most N, 1 to 100000, default 300
 *    window=N      of a search, in mean gaps between jobs, 0 to 1000000,
 *                  default 50
 *    compute=X     as in workload-generate.h
 *    load=X        as in workload-generate.h, default 1
 *    seed=N        0 to 1000000000, default 1
 *
 * The workload is the caller's. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>

struct workload;

struct jobs_options {
    uint64_t seed;
    int n_hosts;
    int n_jobs;                 /* At most. */
    double window;              /* Of a search, in mean gaps. */
    double compute;             /* Share of an iteration; NAN: drawn for each
                                 * search, 0 to 0.8. */
    double load;                /* Of the average port, > 0; NAN: default. */
};

#define JOBS_OPTIONS_INIT                                      \
    {                                                          \
        .seed = 1, .n_hosts = 32, .n_jobs = 300, .window = 50, \
        .compute = NAN, .load = NAN                            \
    }

/* Reads "NAME=VALUE,...".  Returns NULL or a malloc()'d message. */
char *jobs_options_parse(const char *text, struct jobs_options *);

/* Reads a trace.  Returns NULL and stores the workload in '*wp', or returns a
 * malloc()'d message and stores NULL. */
char *workload_jobs_read(const char *name, FILE *,
                         const struct jobs_options *, struct workload **wp);

#endif /* sim/workload/workload-jobs.h */
