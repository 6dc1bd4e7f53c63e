/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_JOB_H
#define LOG_JOB_H 1

/* Log files of one job.
 *
 * A specification names files by a path with wildcards, so files appear and
 * disappear.  Once a second the files are searched, and of more than
 * LOG_MAX_FILES the latest are read, whenever they have grown.  The kernel is
 * not requested to report changes: it cannot for a file that another host
 * writes, and a directory to watch need not be there yet.
 *
 * Files may have any length, so reading begins a bounded distance before the
 * end, each call reads a bounded number of bytes, and a reader that lags by
 * more than that distance jumps, because only the last value counts.  A file
 * that has become shorter, or begins otherwise than before because its writer
 * has rewritten it in place, is read from its beginning; iterations that were
 * reported before are not reported again unless the file ends with them for
 * half a second.  A replaced file is a new file.  A file of another format is
 * ignored until it is replaced.
 *
 *    log_job_init(&log, "asha/t0", &spec);
 *    for (;;) {
 *        ended = log_job_run(&log, now, report, aux);
 *        ...wait until log_job_next(&log)...
 *    }
 *
 * The specification must outlive the object.  Main thread only.  'report' is
 * called from log_job_run() only. */

#include <stddef.h>

#include "agent/tail/log-decoder.h"
#include "wire/log-spec.h"

struct log_file;
struct tail_report;

#define LOG_MAX_FILES 8
#define LOG_TAIL                                             \
    (256 * 1024) /* Bytes of the end of a file that are read \
                  * first. */

typedef void log_progress_func(const struct progress *, void *aux);

/* Read-only outside this module. */
struct log_job {
    const struct log_spec *spec;
    char *path;                 /* Path of the specification for this job. */
    size_t n_files;
    struct log_file *files[LOG_MAX_FILES]; /* By time of modification,
                                            * the latest last. */

    long long next_scan, next_read; /* Times of the next scan and read,
                                     * ms. */
    size_t n_refused;               /* Paths in the last scan that this process
                                     * may not read. */
};

void log_job_init(struct log_job *, const char *job, const struct log_spec *);
void log_job_uninit(struct log_job *);

/* Returns the time at which log_job_run() must be called. */
long long log_job_next(const struct log_job *);

/* Returns NULL, or why the log can no longer be read; then this must not be
 * called again. */
const char *log_job_run(struct log_job *, long long now, log_progress_func *,
                        void *aux);

/* Adds the state of the files to the report, in which that is zero. */
void log_job_report(const struct log_job *, struct tail_report *);

#endif /* agent/tail/log-job.h */
