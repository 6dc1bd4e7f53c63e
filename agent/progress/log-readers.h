/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_READERS_H
#define LOG_READERS_H 1

/* Reads what jobs log.
 *
 *
 * Motivation
 * ==========
 *
 * A job that does not talk to the progress socket mostly writes how far it is
 * into a file.  For each job of this host the first rule that matches, or the
 * job's own environment, says which files; log-job.h follows them.
 *
 * A file can be any length, so reading begins a bounded distance before its
 * end, a turn reads a bounded number of bytes, and a reader that is further
 * behind than that distance jumps: of values that came meanwhile the last is
 * what counts.  A file that became shorter is read from its beginning, one
 * that was replaced is another file.  One that is not what it should be is
 * ignored, and a line says so, until it is replaced.
 *
 *
 * Usage
 * =====
 *
 *    lr = log_readers_create(cgroup_root, tell, aux);
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
 * Main thread only.  'tell' is called from log_readers_run() alone. */

#include "agent/progress/log-job.h"

struct json;
struct log_readers;

/* 'cgroup_root' is the absolute path of the jobs' cgroups, NULL if there is
 * none: then environments are not looked at. */
struct log_readers *log_readers_create(const char *cgroup_root,
                                       log_tell_func *, void *aux);
void log_readers_destroy(struct log_readers *);

/* Reads the rules in 'file' and lets them take the place of those before.
 * Returns NULL, or a malloc()'d message, and then nothing has changed. */
char *log_readers_load(struct log_readers *, const char *file);

void log_readers_job_begin(struct log_readers *, const char *job);
void log_readers_job_end(struct log_readers *, const char *job);

void log_readers_run(struct log_readers *);
void log_readers_wait(struct log_readers *);

/* What is read, for people: an array, one object a job. */
struct json *log_readers_to_json(const struct log_readers *);

#endif /* agent/progress/log-readers.h */
