/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/tail/log-job.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/tail/tail-protocol.h"
#include "base/compare.h"
#include "util.h"

#define SCAN_MS 1000            /* Between scans for files. */
#define READ_MS 100             /* Between reads of the size of files. */
#define MORE_MS 5               /* While there is more to read. */
#define SETTLE_MS 500           /* Without a change, after a rewrite. */
#define MAX_READ (64 * 1024)    /* Bytes per call of read_file(). */
#define MAX_HEAD 4096

/* A growing file, and the position up to which it has been read. */
struct log_file {
    int fd;
    dev_t dev;
    ino_t ino;
    uint64_t at;                /* Position: bytes before it were read or
                                 * skipped. */
    uint64_t skipped;           /* Skipped bytes. */
    bool bad;                   /* The file cannot be read. */
    struct timespec mtime;      /* Of the last read. */
    char head[MAX_HEAD];        /* What the file begins with. */
    size_t n_head;
    bool again;        /* The file was rewritten: its lines up to iteration
                        * 'reported' are read a second time. */
    long long changed; /* Time of the last change, ms. */
    int64_t reported;  /* Last reported iteration. */
    struct log_decoder *decoder;
};

static void
close_file(struct log_file *f)
{
    if (f) {
        close(f->fd);
        log_decoder_destroy(f->decoder);
        free(f);
    }
}

/* Continues reading at 'at'. */
static void
restart(struct log_file *f, uint64_t at)
{
    char *head = xmalloc(MAX_READ);
    ssize_t n = pread(f->fd, head, MAX_READ, 0);

    log_decoder_restart(f->decoder, head, MAX(n, 0), at > 0);
    free(head);
    f->at = at;
}

/* Returns true if the file no longer begins as it did when it was read, and
 * forgets its begin. */
static bool
is_rewritten(struct log_file *f)
{
    char head[MAX_HEAD];
    ssize_t n = MAX(0, pread(f->fd, head, sizeof head, 0));
    bool differs = n < f->n_head || memcmp(head, f->head, f->n_head);

    memcpy(f->head, head, n);
    f->n_head = n;
    return differs;
}

/* Reads a bounded number of bytes at time 'now'.  Returns true if there are
 * more. */
static bool
read_file(struct log_file *f, long long now)
{
    struct stat s;
    char *data;
    ssize_t n;

    if (f->bad || fstat(f->fd, &s)
        || (s.st_size == f->at
            && !memcmp(&s.st_mtim, &f->mtime, sizeof f->mtime))) {
        return false;
    }
    f->changed = now;
    f->mtime = s.st_mtim;
    if (s.st_size - (int64_t) f->at > LOG_TAIL) {
        f->skipped += s.st_size - LOG_TAIL - f->at;
        restart(f, s.st_size - LOG_TAIL);
    }
    data = xmalloc(MAX_READ);
    n = pread(f->fd, data, MAX_READ, f->at);
    if (is_rewritten(f) || s.st_size < f->at) {
        restart(f, 0);
        f->again = true;
        free(data);
        return s.st_size > 0;
    }
    if (n > 0) {
        f->at += n;
    }
    f->bad = n < 0;
    log_decoder_feed(f->decoder, data, MAX(n, 0));
    free(data);
    return n > 0 && f->at < s.st_size;
}

/* Reports what is new in a file.  What is read a second time is no fall of the
 * iteration, unless the file then stays as it is. */
static void
report_file(struct log_file *f, long long now, log_progress_func *report,
            void *aux)
{
    struct progress progress;

    if (f->again && f->decoder->last.iteration < f->reported
        && now - f->changed < SETTLE_MS) {
        return;
    }
    if (log_decoder_take(f->decoder, &progress)) {
        f->reported = progress.iteration;
        f->again = false;
        report(&progress, aux);
    }
}

void
log_job_init(struct log_job *lj, const char *job, const struct log_spec *spec)
{
    *lj = (struct log_job){ .spec = spec, .path = log_spec_path(spec, job) };
}

void
log_job_uninit(struct log_job *lj)
{
    for (size_t i = 0; i < lj->n_files; i++) {
        close_file(lj->files[i]);
    }
    free(lj->path);
}

/* A scan for files that a path with wildcards names.
 *
 * The process has the rights of the job, so the kernel decides what it may
 * read, also behind symbolic links.  Only regular files are opened: opening a
 * pipe or a device can wait or change something.  The last part of a path is
 * not followed if it is a link. */

struct found {
    double mtime; /* In s.  First, for compare_doubles(). */
    const char *path;
    dev_t dev;
    ino_t ino;
};

/* Fills in 'found' for 'path'.  Returns false if that is no regular file. */
static bool
find_file(struct log_job *lj, const char *path, struct found *found)
{
    struct stat s;

    if (lstat(path, &s)) {
        lj->n_refused += errno == EACCES;
        return false;
    }
    *found = (struct found){
        .mtime = s.st_mtim.tv_sec + s.st_mtim.tv_nsec * 1e-9,
        .path = path,
        .dev = s.st_dev,
        .ino = s.st_ino,
    };
    return S_ISREG(s.st_mode);
}

/* Returns the file, which 'lj' no longer has if it had it, or NULL if it
 * cannot be read. */
static struct log_file *
take_file(struct log_job *lj, const struct found *found)
{
    struct log_file *f;
    struct stat s;
    int fd;

    for (size_t i = 0; i < lj->n_files; i++) {
        f = lj->files[i];
        if (f && f->ino == found->ino && f->dev == found->dev) {
            lj->files[i] = NULL;
            return f;
        }
    }
    fd = open(found->path,
              O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        lj->n_refused += errno == EACCES;
        return NULL;
    }
    if (fstat(fd, &s) || !S_ISREG(s.st_mode)) {
        close(fd);
        return NULL;
    }
    f = xzalloc(sizeof *f);
    f->fd = fd;
    f->dev = s.st_dev;
    f->ino = s.st_ino;
    f->reported = -1;
    f->decoder = log_decoder_create(lj->spec);
    return f;
}

static void
scan_files(struct log_job *lj, long long now)
{
    struct log_file *files[LOG_MAX_FILES];
    size_t n = 0, n_files = 0;
    struct found *found;
    glob_t paths = { .gl_pathc = 0 };

    lj->next_scan = now + SCAN_MS;
    lj->next_read = now;
    lj->n_refused = 0;
    /* A path that names nothing is scanned too, for why that is so. */
    glob(lj->path, GLOB_NOSORT | GLOB_NOCHECK, NULL, &paths);
    found = xcalloc(paths.gl_pathc, sizeof *found);
    for (size_t i = 0; i < paths.gl_pathc; i++) {
        n += find_file(lj, paths.gl_pathv[i], &found[n]);
    }
    qsort(found, n, sizeof *found, compare_doubles);
    while (n > 0 && n_files < LOG_MAX_FILES) {
        struct log_file *f = take_file(lj, &found[--n]);

        if (f) {
            files[LOG_MAX_FILES - ++n_files] = f;
        }
    }
    for (size_t i = 0; i < lj->n_files; i++) {
        close_file(lj->files[i]);
    }
    lj->n_files = n_files;
    memcpy(lj->files, &files[LOG_MAX_FILES - n_files],
           n_files * sizeof *files);
    free(found);
    globfree(&paths);
}

/* Reads from each file.  Returns false if an expression has reached a
 * limit. */
static bool
read_files(struct log_job *lj, long long now, log_progress_func *report,
           void *aux)
{
    bool good = true;

    lj->next_read = now + READ_MS;
    for (size_t i = 0; i < lj->n_files && good; i++) {
        struct log_file *f = lj->files[i];

        if (read_file(f, now)) {
            lj->next_read = now + MORE_MS;
        }
        report_file(f, now, report, aux);
        good = !f->decoder->exhausted;
    }
    return good;
}

long long
log_job_next(const struct log_job *lj)
{
    return MIN(lj->next_scan, lj->next_read);
}

const char *
log_job_run(struct log_job *lj, long long now, log_progress_func *report,
            void *aux)
{
    if (now >= lj->next_scan) {
        scan_files(lj, now);
    }
    return now < lj->next_read || read_files(lj, now, report, aux)
               ? NULL
               : "an expression took more steps or memory for a line than allowed";
}

/* Writes what an operator should know about the files to 'r'. */
static void
write_words(const struct log_job *lj, struct tail_report *r)
{
    if (r->bad) {
        snprintf(r->words, sizeof r->words, "%.100s is not \"%s\", ignored "
                 "until it is replaced", lj->path,
                 log_format_names[lj->spec->format]);
    } else if (r->refused && !r->n_files) {
        snprintf(r->words, sizeof r->words, "the job may not read %.100s",
                 lj->path);
    }
}

void
log_job_report(const struct log_job *lj, struct tail_report *r)
{
    r->n_files = lj->n_files;
    r->refused = lj->n_refused;
    for (size_t i = 0; i < lj->n_files; i++) {
        const struct log_decoder *d = lj->files[i]->decoder;

        r->records += d->records;
        r->malformed += d->malformed;
        r->no_value += d->no_value;
        r->skipped_bytes += lj->files[i]->skipped;
        r->bad += lj->files[i]->bad;
    }
    write_words(lj, r);
}
