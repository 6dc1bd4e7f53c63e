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
 * job's own environment, says which files; the kernel (inotify) says when one
 * of them changes, comes or goes.
 *
 * A file can be any length, so reading begins a bounded distance before its
 * end, a turn reads a bounded number of bytes, and a reader that is further
 * behind than that distance jumps: of values that came meanwhile the last is
 * what counts.  A file that became shorter is read from its beginning, one
 * that was replaced is another file.  One that is not what it should be is
 * ignored, and a line says so, until it is replaced.  Where a path with
 * wildcards names several files the latest LOG_MAX_FILES are read.
 *
 * Watches can fail (there is a limit for each user), and some file systems
 * tell nothing: hence a look at everything each LOG_SAFETY_MS.
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

#include <stdbool.h>
#include <stdint.h>

#include "agent/progress/log-decoder.h"

struct json;
struct log_readers;

#define LOG_MAX_FILES 8         /* Of a job. */
#define LOG_TAIL (256 * 1024)   /* Bytes before the end, where one begins. */
#define LOG_SAFETY_MS 10000

typedef void log_tell_func(const char *job, const struct progress *,
                           void *aux);

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
