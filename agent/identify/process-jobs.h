/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PROCESS_JOBS_H
#define PROCESS_JOBS_H 1

/* For whom a process works, by its environment and by who started it.
 *
 * An environment is read once, when the process has its last program; what is
 * claimed of a process counts for those that it started.  What is found
 * becomes a claim of the process in the registry, which is the caller's and
 * outlives it.  Anybody can write anything into an environment: of a job, it
 * counts for processes of one user, and root's.  Main thread only. */

#include <stdbool.h>
#include <sys/types.h>

#include "agent/identify/claim.h"

struct process;
struct process_jobs;
struct registry;

/* 'cgroup_root' may be null. */
struct process_jobs *process_jobs_create(struct registry *,
                                         const char *cgroup_root);
void process_jobs_destroy(struct process_jobs *);
void process_jobs_clear(struct process_jobs *);

bool process_jobs_look(struct process_jobs *, pid_t, bool check,
                       long long now, bool *foreverp);

const struct claim *process_jobs_claim(const struct process_jobs *, pid_t);
void process_jobs_add(struct process_jobs *, const struct process *,
                      enum claim_source, const char *name, long long now);

#endif /* agent/identify/process-jobs.h */
