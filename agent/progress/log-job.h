/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_JOB_H
#define LOG_JOB_H 1

/* What one job logs: its files, found and read.
 *
 *
 * Motivation
 * ==========
 *
 * A specification says where the files are, with wildcards, so files come and
 * go.  They are looked for when the kernel (inotify) tells of a change in one
 * of their directories, and read when it tells of one in a file.  Of more than
 * LOG_MAX_FILES the latest are read.
 *
 * Watches can fail (there is a limit for each user), and some file systems
 * tell nothing: hence a look at everything each LOG_SAFETY_MS.
 *
 *
 * Usage
 * =====
 *
 *    log_job_init(&log, "asha/t0", watch);
 *    log_job_set_spec(&log, &spec, NULL);
 *    for (;;) {
 *        log_watch_run(watch);
 *        log_job_take_news(&log);
 *        log_job_run(&log, time_msec(), tell, aux);
 *        poll_timer_wait_until(log_job_next(&log));
 *        log_watch_wait(watch);
 *        poll_block();
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The watch must outlive it.  Main thread only.  'tell' is called from
 * log_job_run() alone. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/progress/log-decoder.h"
#include "wire/log-spec.h"
#include "agent/progress/log-watch.h"

struct json;

#define LOG_MAX_FILES 8
#define LOG_SAFETY_MS 10000

typedef void log_tell_func(const char *job, const struct progress *,
                           void *aux);

/* Read-only outside this module. */
struct log_job {
    char *job;                  /* "COJOB/JOB". */
    struct log_watch *watch;

    bool has_spec;              /* The rest has a meaning. */
    bool own;                   /* It is from the job's environment. */
    uid_t uid;                  /* Who must own the files, if 'own'. */
    struct log_spec spec;
    char *path;
    size_t n_files;
    struct log_file *files[LOG_MAX_FILES];      /* The latest last. */
    struct log_watch_set watches;

    bool look, read;            /* There may be something new. */
    long long next_look, next_read;     /* The earliest times for both. */
    long long safety;           /* When to look in any case. */
    bool told_bad;              /* A line has said that a file is bad. */
    uint64_t n_refused;         /* Files of another user. */
};

void log_job_init(struct log_job *, const char *job, struct log_watch *);
void log_job_uninit(struct log_job *);

/* Copies the specification, which is from the environment of the job's user
 * 'uid', or from a rule if 'uid' is null.  Without one there are no files. */
void log_job_set_spec(struct log_job *, const struct log_spec *,
                      const uid_t *uid);
void log_job_clear_spec(struct log_job *);

/* To be called after log_watch_run(). */
void log_job_take_news(struct log_job *);

/* The time_msec() from which log_job_run() has something to do, LLONG_MAX if
 * there is nothing. */
long long log_job_next(const struct log_job *);
void log_job_run(struct log_job *, long long now, log_tell_func *, void *aux);

struct json *log_job_to_json(const struct log_job *);

#endif /* agent/progress/log-job.h */
