/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WORKLOAD_OPEN_H
#define WORKLOAD_OPEN_H 1

/* Opens whatever can be simulated: the one place that knows which file is
 * what, for "stagecoach sim" and "stagecoach policy".
 *
 *    char *error = workload_open("trace.txt", NULL, &input);
 *
 * "generate:SEED,NAME=VALUE..." is made by chance, see
 * sim/workload/workload-generate.h.  A file that begins like JSON is a scenario of the
 * simulator if it has "cojobs", what a controller recorded if it has "stages",
 * else a scenario of the lab.  One that begins like a trace of jobs, see
 * sim/workload/job-trace.h, is one, and "FILE,NAME=VALUE..." says how to read it, see
 * sim/workload/workload-jobs.h.  Any other is a trace of coflow-benchmark. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct workload;

struct workload_input {
    struct workload *workload;
    bool levels;                /* A lab's: its switches serve levels. */
    size_t n_policies;
    char **policies;            /* Names and files that the file names. */
};

/* Opens 'what'.  '*seed', if not null, replaces the one of what is made by
 * chance.  Returns NULL or a malloc()'d message, then '*input' is empty.
 * The caller frees both with workload_input_uninit(). */
char *workload_open(const char *what, const uint64_t *seed,
                    struct workload_input *);
void workload_input_uninit(struct workload_input *);

/* Replaces the fabric of 'w' by 'what', the argument of --fabric.  Returns NULL
 * or a malloc()'d message. */
char *fabric_open(const char *what, struct workload *w);

#endif /* cli/simulate/workload-open.h */
