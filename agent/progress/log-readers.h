/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_READERS_H
#define LOG_READERS_H 1

/* Reads the logs of jobs.
 *
 *
 * Motivation
 * ==========
 *
 * A job that does not use the progress socket usually writes its progress to a
 * file.  The job's environment, or the first matching rule, names the files;
 * log-job.h follows them.  "stagecoach run --log" stores its argument in the
 * environment of the command, as STAGECOACH_LOG, so an agent that starts late
 * or again finds it with the job.  A job must not make the agent read files
 * that the job could not read itself: the user of the job must own the files
 * that its environment names.
 *
 * Files may have any length, so reading begins a bounded distance before the
 * end, each call reads a bounded number of bytes, and a reader that lags by
 * more than that distance jumps, because only the last value counts.  A file
 * that has become shorter is read from its beginning, and a replaced file is a
 * new file.  A file of another format is logged once and ignored until it is
 * replaced.
 *
 *
 * Usage
 * =====
 *
 *    lr = log_readers_create(cgroup_root, report, aux);
 *    error = log_readers_load(lr, file);
 *    log_readers_job_begin(lr, "asha/t0");
 *    for (;;) {
 *        log_readers_run(lr);
 *        log_readers_wait(lr);
 *        poll_block();
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only.  'report' is called from log_readers_run() only. */

#include "agent/progress/log-job.h"

struct json;
struct log_readers;

/* 'cgroup_root' is the absolute path of the jobs' cgroups; NULL if there is
 * none, then environments are not read.  It must outlive the object. */
struct log_readers *log_readers_create(const char *cgroup_root,
                                       log_report_func *, void *aux);
void log_readers_destroy(struct log_readers *);

/* Loads the rules in 'file', in place of the previous ones.  Returns NULL, or
 * a malloc()'d message; then nothing has changed. */
char *log_readers_load(struct log_readers *, const char *file);

void log_readers_job_begin(struct log_readers *, const char *job);
void log_readers_job_end(struct log_readers *, const char *job);

void log_readers_run(struct log_readers *);
void log_readers_wait(struct log_readers *);

/* Returns the state of all readers: an array of one object per job. */
struct json *log_readers_to_json(const struct log_readers *);

#endif /* agent/progress/log-readers.h */
