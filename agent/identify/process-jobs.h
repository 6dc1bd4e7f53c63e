/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PROCESS_JOBS_H
#define PROCESS_JOBS_H 1

/* Attributes processes to jobs by their environment and their ancestors.
 *
 * An environment is read once, after the process has executed its last
 * program; a claim of a process applies to its descendants too.  Results
 * become claims in the registry, which belongs to the caller and must
 * outlive this object.  Any process can write anything into its
 * environment, so the environment counts only for processes of the job's
 * user and of the host's root (registry.h).  Main thread only. */

#include <stdbool.h>
#include <sys/types.h>

#include "agent/identify/claim.h"

struct process;
struct process_jobs;
struct registry;

/* 'cgroup_root' may be NULL, and must outlive the object. */
struct process_jobs *process_jobs_create(struct registry *,
                                         const char *cgroup_root);
void process_jobs_destroy(struct process_jobs *);
void process_jobs_clear(struct process_jobs *);

bool process_jobs_look(struct process_jobs *, pid_t, long long now,
                       bool *foreverp);

const struct claim *process_jobs_claim(const struct process_jobs *, pid_t);

/* Claims the process of this user for the job called 'name', unless it is of
 * another user, which is a warning.  Returns false if that may change, because
 * the user of the job is unknown. */
bool process_jobs_add(struct process_jobs *, const struct process *, uid_t,
                      enum claim_source, const char *name, long long now);

#endif /* agent/identify/process-jobs.h */
