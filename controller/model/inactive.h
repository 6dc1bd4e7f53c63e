/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INACTIVE_H
#define INACTIVE_H 1

/* Detects stages and cojobs that have no running process.
 *
 * A search that is killed leaves its stage in state "running" in the intent
 * database.  Without a timeout the stage would keep its rank forever.  Agents
 * report the jobs that have a process on their host once a second at least.  A
 * stage is marked inactive after INACTIVE_MS in which all hosts of all its
 * jobs were connected and none reported one of the jobs.  If a host of a job
 * is unknown or disconnected, the job counts as running.
 *
 * A cojob with neither a running stage nor a process for INACTIVE_COJOB_MS is
 * marked inactive too.
 *
 * Long before that, such a stage must not delay others: a name that is
 * mistyped in "stage begin" has no demand, and an order would rank it first.
 * stage_find_idle() returns what a stage lacks:
 *
 *   - STAGE_NO_PROCESS: STAGE_JOIN_MS after the stage began, all hosts of its
 *     jobs are connected (or none is known), no host reports one of its jobs,
 *     and there has been no progress.
 *   - STAGE_NO_TRAFFIC: it has processes, and its iterations are known to send
 *     bytes that are counted, but since it began there have been neither bytes
 *     nor progress, for STAGE_TRAFFIC_MS and ten iterations.  A job of
 *     invisible bytes (RDMA, one host), or that may still compute its
 *     first iteration, does not count as idle. */

#include "controller/model/cluster.h"

#define INACTIVE_MS 60000
#define INACTIVE_COJOB_MS 600000
#define STAGE_JOIN_MS 5000
#define STAGE_TRAFFIC_MS 10000

/* 'now' is time_msec(). */
enum stage_idle stage_find_idle(const struct stage *, long long now);

/* Sets 'inactive' and 'last_active' of all running stages and cojobs.  'now'
 * is time_msec(). */
void inactive_run(struct cluster *, long long now);

#endif /* controller/model/inactive.h */
