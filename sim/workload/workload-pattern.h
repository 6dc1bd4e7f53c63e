/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WORKLOAD_PATTERN_H
#define WORKLOAD_PATTERN_H 1

/* Building blocks of training jobs: communication patterns, learning curves,
 * and the jobs that a search keeps.
 *
 * Scenarios, the generator and job traces make the same few kinds of jobs from
 * the size of a model and its hosts.
 *
 * Functions on a workload that the caller is making. */

#include <stddef.h>

struct search_method;
struct search_rung;
struct workload;
struct workload_cojob;
struct workload_curve;
struct workload_job;

/* Parameter servers: each has an equal part of a model of 'bytes', to which
 * every worker pushes and from which it then pulls.  What a host would send
 * itself is left out. */
void workload_add_ps(struct workload_job *,
                     const int *workers, size_t n_workers,
                     const int *servers, size_t n_servers, double bytes);

/* A ring all-reduce over 'n' different hosts: each sends the next one
 * 2 (n - 1) / n times a model of 'bytes'. */
void workload_add_ring(struct workload_job *, const int *hosts, size_t n,
                       double bytes);

/* Returns the metric after 'iterations', 0 without a metric. */
double workload_curve_at(const struct workload_curve *, double iterations);

/* Sorts the jobs so that each rung, which takes the first, takes those with
 * the best metric at the end of the rung before it; equal ones stay in their
 * order.  Call it when all jobs and rungs are there. */
void workload_keep_best(struct workload_cojob *);

/* Adds the rungs of a search that has all its jobs, as wire/rungs.h reads
 * them, and sorts the jobs of a synchronous one, of all brackets together. */
void workload_add_rungs(struct workload *, struct workload_cojob *,
                        const struct search_method *,
                        const struct search_rung *, size_t n);

/* Stretches the cojobs' arrivals, in proportion, so that the average port is
 * busy for 'load' of the time that there would be if the last one took as long
 * alone as the average does.  Cojobs that cannot make so much load all arrive
 * at time 0. */
void workload_spread_arrivals(struct workload *, double load);

/* Maximum number of workers and servers of workload_draw_exchange(). */
#define WORKLOAD_DRAW_MAX_HOSTS 258

struct sim_fabric;
struct sim_random;

/* Lets 'job' exchange a model of 'bytes' among random hosts out of 'n_hosts':
 * 'n_workers' with 'n_servers' parameter servers, or in a ring if there are no
 * servers. */
void workload_draw_exchange(struct workload_job *job, struct sim_random *,
                            int n_hosts, int n_workers, int n_servers,
                            double bytes);

/* Draws the compute time of 'job', about 'share' of an iteration without
 * competitors, and its learning curve.  Its exchange must be set. */
void workload_draw_rest(struct workload_job *job, struct sim_random *,
                        const struct sim_fabric *, double share);

#endif /* sim/workload/workload-pattern.h */
