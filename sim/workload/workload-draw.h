/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WORKLOAD_DRAW_H
#define WORKLOAD_DRAW_H 1

/* What is made by chance of a training job: where it runs, how much it
 * computes and how it learns.  For workload-generate.h and workload-jobs.h. */

struct sim_fabric;
struct sim_random;
struct workload_job;

/* Workers and servers of a job at most. */
#define WORKLOAD_DRAW_MAX_HOSTS 16

/* Lets 'job' exchange a model of 'bytes' among different hosts out of
 * 'n_hosts': 'n_workers' with 'n_servers' parameter servers, or in a ring if
 * there are no servers. */
void workload_draw_exchange(struct workload_job *job, struct sim_random *,
                            int n_hosts, int n_workers, int n_servers,
                            double bytes);

/* Then lets it compute for about 'share' of an iteration alone, and learn. */
void workload_draw_rest(struct workload_job *job, struct sim_random *,
                        const struct sim_fabric *, double share);

#endif /* sim/workload/workload-draw.h */
