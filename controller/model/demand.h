/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DEMAND_H
#define DEMAND_H 1

/* Demand of each stage, and the traffic that was measured for it.
 *
 * The demand of a stage on a port is in seconds: for each job, the remaining
 * iterations, times the bytes per iteration through the port, divided by the
 * port's capacity.  Bytes per iteration are measured, because no formula knows
 * how a job is built; until then, what its stage announced is used, or a
 * formula.  Ports are the two
 * directions of each host's uplink, then those of the cluster's fabric
 * (fabric.h); iteration-traffic.h has the demand of an iteration on both.
 *
 *    demand_learn(c, report, first);     // Each telemetry message.
 *    demand_progress(c, job, &job->rest, iteration, NULL, 0, time_msec());
 *    remaining = demand_remaining_iterations(stage, job);
 *    bytes = demand_per_iteration(job, traffic, DIR_TX);
 *
 * Works on the cluster of the caller; main thread only. */

#include <stdbool.h>
#include <stdint.h>

#include "controller/model/cluster.h"
#include "controller/model/fabric.h"

struct telemetry_report;

/* Bytes count from this many iterations after the first one on.  A measurement
 * of as many has half of the average's weight. */
#define DEMAND_AVERAGE_ITERATIONS 8.0

/* Return the number of a port in an order problem: of a host, or of the
 * cluster's fabric. */
static inline int
demand_port(const struct host *host, enum direction dir)
{
    return host->index * N_DIRS + dir;
}

static inline int
demand_link_port(const struct cluster *c, int fabric_port)
{
    return c->n_hosts * N_DIRS + fabric_port;
}

static inline int
demand_n_ports(const struct cluster *c)
{
    return demand_link_port(c, c->fabric ? c->fabric->n_ports : 0);
}

char *demand_port_name(const struct host *, enum direction);
char **demand_port_names(const struct cluster *);

void demand_learn(struct cluster *, const struct telemetry_report *,
                  bool first);
bool demand_progress(struct cluster *, struct job *,
                     struct progress_source *, int64_t iteration,
                     const char *metric, double value, int64_t now);

double demand_per_iteration(const struct job *, const struct job_traffic *,
                            enum direction);
double demand_bytes_of_iteration(const struct job *);
double demand_counted_bytes(const struct job *);
int demand_devices(const struct job *);

/* Returns the GPUs of 'job': those of its launcher, or its processes that
 * compute, or as many as it has hosts. */
int demand_gpus(const struct job *);
bool demand_counts_iterations(const struct job *);
bool demand_is_starting(const struct job *);
int64_t demand_remaining_iterations(const struct stage *, const struct job *);

#endif /* controller/model/demand.h */
