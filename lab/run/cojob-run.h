/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_COJOB_RUN_H
#define LAB_COJOB_RUN_H 1

/* A cojob of commands: its processes and its stages.
 *
 *
 * Motivation
 * ==========
 *
 * The commands do not know about stages.  The lab does what an engineer would
 * do: it announces the cojob, starts each process with "stagecoach run" in the
 * namespace of its host, and reads the iteration count of the jobs from the
 * agents, which is reported by the job or estimated from its traffic.  A stage
 * ends when all jobs have reached its iterations.
 *
 *
 * Usage
 * =====
 *
 *    cr = cojob_run_create(plan, scenario, cojob, policy, epoch);
 *    error = cojob_run_start(cr);
 *    while (!cojob_run_is_over(cr)) {
 *        cojob_run_run(cr);
 *        cojob_run_wait(cr);
 *        poll_block();
 *    }
 *    error = cojob_run_error(cr);
 *    cojob_run_destroy(cr);              // Ends it, if it still runs.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only.  The arguments of cojob_run_create() must outlive it. */

#include <stdbool.h>
#include <stddef.h>

#include "lab/run/search-run.h"

struct cojob_run;
struct ds;
struct plan;
struct report_policy;
struct scenario;
struct scenario_cojob;

struct cojob_run *cojob_run_create(const struct plan *,
                                   const struct scenario *,
                                   const struct scenario_cojob *,
                                   struct report_policy *policy,
                                   long long epoch_ms);
void cojob_run_destroy(struct cojob_run *);

char *cojob_run_start(struct cojob_run *);
void cojob_run_run(struct cojob_run *);
void cojob_run_wait(struct cojob_run *);
bool cojob_run_is_over(const struct cojob_run *);

/* Returns a message about the failure, which the caller must free, or NULL. */
char *cojob_run_error(const struct cojob_run *);

/* As search_run_jobs().  Jobs with an unknown iteration count are left out. */
size_t cojob_run_jobs(const struct cojob_run *, struct search_job jobs[],
                      size_t max);

/* Appends a short status such as "ddp rung 0 34/80". */
void cojob_run_status(const struct cojob_run *, struct ds *);

#endif /* lab/run/cojob-run.h */
