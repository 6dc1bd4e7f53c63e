/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INACTIVE_H
#define INACTIVE_H 1

/* Detects stages and cojobs that have no running process.
 *
 * A search that is killed leaves its stage in state "running" in the intent
 * database.  Without a timeout the stage would keep its rank forever.  Agents
 * report the jobs that have a process on their host five times a second.  A
 * stage is marked inactive after INACTIVE_MS in which all hosts of all its
 * jobs were connected and none reported one of the jobs.  If a host of a job
 * is unknown or disconnected, the job counts as running.
 *
 * A cojob with neither a running stage nor a process for INACTIVE_COJOB_MS is
 * marked inactive too. */

#define INACTIVE_MS 60000
#define INACTIVE_COJOB_MS 600000

struct cluster;

/* Sets 'inactive' and 'last_active' of all running stages and cojobs.  'now'
 * is time_msec(). */
void inactive_run(struct cluster *, long long now);

#endif /* controller/model/inactive.h */
