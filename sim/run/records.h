/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_RECORDS_H
#define SIM_RECORDS_H 1

/* What of a job is written down.
 *
 * How fast a job learns is a curve of its iterations, so the iteration with
 * which it is early done is known before it begins; the simulation only has
 * to look at the clock then.  Records are the caller's. */

#include <stddef.h>
#include <stdint.h>

struct sim_job;
struct workload;
struct workload_cojob;
struct workload_curve;

/* What a job's metric is after 'k' iterations. */
double curve_value(const struct workload_curve *, double k);

/* After how many iterations job 'index' has 0.9 of what it has after its last
 * planned one, that of the last rung that it takes part in; -1 if it has no
 * metric. */
int64_t early_iteration(const struct workload_cojob *, size_t index);

/* Returns records of all jobs that take part in any rung, by cojob, then by
 * job, and stores their number, and where those of each cojob begin. */
struct sim_job *job_records_create(const struct workload *, size_t *n,
                                   size_t **first);

#endif /* sim/run/records.h */
