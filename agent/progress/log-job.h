/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_JOB_H
#define LOG_JOB_H 1

/* Log files of one job.
 *
 *
 * Motivation
 * ==========
 *
 * A specification names files by a path with wildcards, so files appear and
 * disappear.  Directories are scanned when the kernel (inotify) reports a
 * change in them, and files are read when it reports a write.  Of more than
 * LOG_MAX_FILES files the latest are read.
 *
 * Watches can fail (the kernel limits their number per user), and some file
 * systems report nothing: therefore everything is also checked every
 * LOG_SAFETY_MS.
 *
 *
 * Usage
 * =====
 *
 *    log_job_init(&log, "asha/t0", watch);
 *    log_job_set_spec(&log, &spec, NULL);
 *    for (;;) {
 *        log_watch_run(watch);
 *        log_job_handle_events(&log);
 *        log_job_run(&log, time_msec(), report, aux);
 *        poll_timer_wait_until(log_job_next(&log));
 *        log_watch_wait(watch);
 *        poll_block();
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The watch must outlive the object.  Main thread only.  'report' is called
 * from log_job_run() only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/progress/log-decoder.h"
#include "agent/progress/log-watch.h"
#include "wire/log-spec.h"

struct json;
struct log_file;

#define LOG_MAX_FILES 8
#define LOG_TAIL (256 * 1024)   /* Reading of a file begins so many bytes
                                 * before its end. */
#define LOG_SAFETY_MS 10000

typedef void log_report_func(const char *job, const struct progress *,
                           void *aux);

/* Read-only outside this module. */
struct log_job {
    char *job;                  /* "COJOB/JOB". */
    struct log_watch *watch;

    bool has_spec;              /* The members below are valid. */
    bool own;                   /* The specification is from the job's
                                 * environment. */
    uid_t uid;                  /* Required owner of the files, if 'own'. */
    struct log_spec spec;
    char *path;
    size_t n_files;
    struct log_file *files[LOG_MAX_FILES];      /* By time of modification,
                                                 * the latest last. */
    struct log_watch_set watches;

    bool look, read;            /* Directories may have changed; files may
                                 * have grown. */
    long long next_look, next_read;     /* Earliest times of the next scan
                                         * and read. */
    long long safety;           /* Time of the next check in any case. */
    bool told_bad;              /* A bad file has been logged. */
    bool exhausted;             /* An expression has reached a limit, so
                                 * the files are no longer read. */
    uint64_t n_refused;         /* Files of another user, which are not
                                 * read. */
};

void log_job_init(struct log_job *, const char *job, struct log_watch *);
void log_job_uninit(struct log_job *);

/* Copies the specification.  It is from the environment of the job's user
 * '*uid', or from a rule if 'uid' is NULL.  Without one there are no files. */
void log_job_set_spec(struct log_job *, const struct log_spec *,
                      const uid_t *uid);
void log_job_clear_spec(struct log_job *);

/* Handles the events of the kernel; to be called after log_watch_run(). */
void log_job_handle_events(struct log_job *);

/* Returns the time_msec() at which log_job_run() must be called, LLONG_MAX if
 * never. */
long long log_job_next(const struct log_job *);
void log_job_run(struct log_job *, long long now, log_report_func *,
                 void *aux);

struct json *log_job_to_json(const struct log_job *);

#endif /* agent/progress/log-job.h */
