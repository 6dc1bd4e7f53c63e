/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_RECORDS_H
#define SIM_RECORDS_H 1

/* Records of jobs in the result of a simulation.
 *
 * The metric of a job is a function of its iterations, so the iteration at
 * which its early phase ends is known before it begins.  Records belong to the
 * caller. */

#include <stddef.h>
#include <stdint.h>

struct sim_job;
struct workload;
struct workload_cojob;

/* Returns the iteration at which job 'index' reports 0.9 of its metric after
 * the last rung that it takes part in; -1 if it has no metric. */
int64_t early_iteration(const struct workload_cojob *, size_t index);

/* Returns records of all jobs that take part in any rung, by cojob, then by
 * job, and stores their number, and where those of each cojob begin. */
struct sim_job *job_records_create(const struct workload *, size_t *n,
                                   size_t **first);

#endif /* sim/run/records.h */
