/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PROCESS_JOBS_H
#define PROCESS_JOBS_H 1

/* Attributes processes to jobs by their environment and their ancestors.
 *
 * An environment is read once, after the process has executed its last
 * program; a claim of a process applies to its descendants too.  Results
 * become claims in the registry.  Any process can write anything into its
 * environment, so the environment counts only for processes of the job's
 * user and of the host's root (registry.h).  Main thread only. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/identify/claim.h"

struct process;
struct registry;

/* What is known of a process; all 0 at first, and to look again. */
struct process_look {
    uint64_t born; /* As in struct process. */
    bool settled;  /* It was old enough when its environment was
                    * read, which is final then. */
};

/* Looks at a process.  Returns true if it belongs to a job; otherwise that can
 * change by itself unless '*look' is settled. */
bool process_jobs_look(struct registry *, const struct process *,
                       struct process_look *look, long long now);

const struct claim *process_jobs_claim(const struct registry *, pid_t);

/* Claims the process of this user for the job called 'name', unless it is of
 * another user, which is a warning.  Returns false if that may change, because
 * the user of the job is unknown. */
bool process_jobs_add(struct registry *, const struct process *, uid_t,
                      enum claim_source, const char *name, long long now);

#endif /* agent/identify/process-jobs.h */
