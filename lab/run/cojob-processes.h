/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_COJOB_PROCESSES_H
#define LAB_COJOB_PROCESSES_H 1

/* The processes of a cojob of commands.
 *
 *
 * Motivation
 * ==========
 *
 * A job is one command that runs on each of its hosts.  A process gets by its
 * arguments or its environment what launchers of distributed training tell,
 * and starts by "stagecoach run" in its host's namespace, so that what it
 * sends is known to be of the job.
 *
 *
 * Usage
 * =====
 *
 *    cp = cojob_processes_create(plan, scenario, cojob);
 *    error = cojob_processes_start(cp);
 *    while (!error && cojob_processes_are_running(cp, NULL)) {
 *        error = cojob_processes_reap(cp);       // Again and again.
 *    }
 *    cojob_processes_destroy(cp);        // Ends those that still run.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only.  The arguments of cojob_processes_create() must outlive
 * it. */

#include <stdbool.h>

struct cojob_processes;
struct plan;
struct scenario;
struct scenario_cojob;
struct scenario_job;

struct cojob_processes *cojob_processes_create(const struct plan *,
                                               const struct scenario *,
                                               const struct scenario_cojob *);
void cojob_processes_destroy(struct cojob_processes *);

/* Starts all.  Returns NULL or a message, and then some may run. */
char *cojob_processes_start(struct cojob_processes *);
void cojob_processes_stop(struct cojob_processes *);

/* Sees which have ended.  Returns NULL or how the first of them failed, with
 * the end of its log. */
char *cojob_processes_reap(struct cojob_processes *);

/* Whether a process of the job, or of any job if it is null, runs. */
bool cojob_processes_are_running(const struct cojob_processes *,
                                 const struct scenario_job *);

#endif /* lab/run/cojob-processes.h */
