/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ENVIRON_H
#define ENVIRON_H 1

/* Which job a process is of, by its environment.
 *
 *
 * Motivation
 * ==========
 *
 * Every launcher and every framework tells its processes through variables
 * which of them belong together, and what they say is the same on each host.
 * So a job is known that nobody told us of, and under the same name
 * everywhere.  A table has a row for each of them; the first row whose
 * variables are there decides:
 *
 *    asha/t0                 STAGECOACH_COJOB=asha STAGECOACH_JOB=t0
 *    slurm-4711/7            SLURM_ARRAY_JOB_ID=4711 SLURM_ARRAY_TASK_ID=7
 *    torch/10.0.0.1-29500    MASTER_ADDR=10.0.0.1 MASTER_PORT=29500
 *
 * STAGECOACH_COJOB alone puts the job of any row into that cojob.
 *
 *
 * Usage
 * =====
 *
 *    text = process_environ(pid, &size);
 *    name = environ_job(text, size, &framework);
 *
 * What is not allowed in names becomes '-', and a name that is too long ends
 * in a hash of what it was.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Names are the caller's to free().  Thread-safe. */

#include <stddef.h>

char *environ_job(const char *environ, size_t size, const char **frameworkp);

#endif /* agent/identify/environ.h */
