/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_JOB_H
#define LOG_JOB_H 1

/* Log files of one job, and the process that reads them.
 *
 * A specification names files by a path with wildcards, so files appear and
 * disappear.  Once a second the files are looked for, and of more than
 * LOG_MAX_FILES the latest are read, whenever they have grown.  The kernel is
 * not asked to report changes: it cannot for a file that another host writes,
 * and a directory to watch need not be there yet.
 *
 * Files may have any length, so reading begins a bounded distance before the
 * end, each call reads a bounded number of bytes, and a reader that lags by
 * more than that distance jumps, because only the last value counts.  A file
 * that has become shorter is read from its beginning, and a replaced file is a
 * new file.  A file of another format is ignored until it is replaced.
 *
 *    log_job_init(&log, "asha/t0", &spec);
 *    for (;;) {
 *        ended = log_job_run(&log, now, report, aux);
 *        ...wait until log_job_next(&log)...
 *    }
 *
 * The specification must outlive the object.  Main thread only.  'report' is
 * called from log_job_run() only.
 *
 * The agent starts one stagecoach-tail for each job with a log, with these
 * descriptors:
 *
 *    TAIL_CONTROL   SOCK_SEQPACKET pair: the agent sends one struct
 *                   tail_start, the tail a struct tail_report with each
 *                   progress, and once a second
 *    TAIL_PROCESS   pidfd of a process of the job
 *    TAIL_SELF      its own program, which it closes
 *
 * Both are of the same build, so the structs have no version; the agent starts
 * the program that it found beside itself when it started.
 *
 * The agent does not rely on a report: its text is made printable, its
 * progress must be valid, and the other numbers are only shown. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/tail/log-decoder.h"
#include "wire/log-spec.h"

struct log_file;
struct tail_report;

#define LOG_MAX_FILES 8
#define LOG_TAIL                                           \
    (256 * 1024) /* Reading of a file begins so many bytes \
                  * before its end. */

typedef void log_progress_func(const struct progress *, void *aux);

/* Read-only outside this module. */
struct log_job {
    const struct log_spec *spec;
    char *path;                 /* Path of the specification for this job. */
    size_t n_files;
    struct log_file *files[LOG_MAX_FILES]; /* By time of modification,
                                            * the latest last. */

    long long next_look, next_read; /* Times of the next scan and read,
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

#define TAIL_CONTROL 3
#define TAIL_PROCESS 4
#define TAIL_SELF 5

#define TAIL_PROGRAM "stagecoach-tail"
#define TAIL_MAX_GROUPS 64
#define TAIL_MAX_SPEC                                                  \
    4096                    /* Bytes of a specification, with its null \
                             * byte. */
#define TAIL_REPORT_MS 1000 /* Time between reports. */

struct tail_start {
    uint32_t uid, gid; /* Of the process of the job. */
    uint32_t n_groups; /* Number of its supplementary groups. */
    uint32_t groups[TAIL_MAX_GROUPS];
    char job[PROGRESS_NAME_SIZE]; /* "COJOB/JOB". */
    char spec[TAIL_MAX_SPEC];     /* Text for log_spec_parse(). */
};

enum tail_state {
    TAIL_READING,
    TAIL_REFUSED, /* The specification or an expression is not
                   * valid, or an expression has reached a
                   * limit.  The tail exits, and a new one with
                   * this specification would, too. */
    TAIL_FAILED,  /* The tail could not take the rights of the
                   * job and exits. */
};

struct tail_report {
    uint32_t state;              /* enum tail_state. */
    uint32_t n_files;            /* Files that are read. */
    uint32_t bad;                /* Files of another format. */
    uint32_t refused;            /* Files that the job may not read. */
    uint64_t records, malformed; /* Of all files. */
    uint64_t skipped_bytes;

    /* Last progress, as in struct progress. */
    int64_t iteration; /* -1 before the first one. */
    int64_t stage;
    double value;    /* NAN if unknown. */
    char metric[32]; /* Empty if 'value' is unknown. */

    char words[256]; /* What an operator should know, one line;
                      * empty if there is nothing. */
};

#endif /* agent/tail/log-job.h */
