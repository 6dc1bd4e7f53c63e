/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/progress/log-job.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/progress/log-paths.h"
#include "openvswitch/json.h"
#include "openvswitch/vlog.h"
#include "util.h"
#include "wire/json-put.h"
#include "wire/log-expression.h"

VLOG_DEFINE_THIS_MODULE(log_job);

/* Minimum time between reads of a file, and between scans of directories. */
#define READ_MS 50
#define MORE_MS 5               /* Minimum time while there is more to read. */
#define LOOK_MS 100
#define MAX_READ (64 * 1024)    /* Bytes per call of read_file(). */

/* A growing file, and the position up to which it has been read. */
struct log_file {
    int fd;
    dev_t dev;
    ino_t ino;
    struct timespec mtime;
    uint64_t at;                /* Position: bytes before it were read or
                                 * skipped. */
    uint64_t skipped;           /* Skipped bytes. */
    bool bad;                   /* The file has another format or cannot be
                                 * read. */
    struct log_decoder *decoder;
};

/* Takes ownership of 'fd'. */
static struct log_file *
open_file(int fd, const struct stat *s, const struct log_spec *spec)
{
    struct log_file *f = xzalloc(sizeof *f);

    f->fd = fd;
    f->dev = s->st_dev;
    f->ino = s->st_ino;
    f->mtime = s->st_mtim;
    f->decoder = log_decoder_create(spec);
    log_decoder_restart(f->decoder, NULL, 0, false);
    return f;
}

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

/* Reads a bounded number of bytes.  Returns true if there are more. */
static bool
read_file(struct log_file *f)
{
    struct stat s;
    char *data;
    ssize_t n;

    if (f->bad || fstat(f->fd, &s)) {
        return false;
    }
    f->mtime = s.st_mtim;
    if (s.st_size < f->at) {
        restart(f, 0);
    }
    if (s.st_size - f->at > LOG_TAIL) {
        f->skipped += s.st_size - LOG_TAIL - f->at;
        restart(f, s.st_size - LOG_TAIL);
    }
    if (s.st_size == f->at) {
        return false;
    }
    data = xmalloc(MAX_READ);
    n = pread(f->fd, data, MAX_READ, f->at);
    if (n > 0) {
        f->at += n;
    }
    f->bad = n < 0 || !log_decoder_feed(f->decoder, data, n);
    free(data);
    return n > 0 && !f->bad && f->at < s.st_size;
}

void
log_job_init(struct log_job *lj, const char *job, struct log_watch *watch)
{
    *lj = (struct log_job) { .job = xstrdup(job), .watch = watch };
    log_watch_set_init(&lj->watches);
}

void
log_job_uninit(struct log_job *lj)
{
    log_job_clear_spec(lj);
    log_watch_set_uninit(&lj->watches);
    free(lj->job);
}

void
log_job_clear_spec(struct log_job *lj)
{
    if (!lj->has_spec) {
        return;
    }
    for (size_t i = 0; i < lj->n_files; i++) {
        close_file(lj->files[i]);
    }
    lj->n_files = 0;
    log_watch_set_clear(lj->watch, &lj->watches);
    log_spec_uninit(&lj->spec);
    free(lj->path);
    lj->path = NULL;
    lj->has_spec = lj->own = false;
}

void
log_job_set_spec(struct log_job *lj, const struct log_spec *spec,
                 const uid_t *uid)
{
    char *cojob = xstrdup(lj->job);
    char *slash = strchr(cojob, '/');

    log_job_clear_spec(lj);
    *slash = '\0';
    log_spec_clone(&lj->spec, spec);
    lj->path = log_spec_path(spec, cojob, slash + 1);
    lj->has_spec = true;
    lj->own = uid != NULL;
    lj->uid = uid ? *uid : 0;
    lj->look = true;
    lj->told_bad = lj->exhausted = false;
    lj->next_look = lj->next_read = 0;
    free(cojob);
}

/* A scan for files. */
struct look {
    struct log_job *log;
    size_t n;
    struct log_file *files[LOG_MAX_FILES];      /* By time of modification,
                                                 * the latest last. */
};

static void
say_unwatched(const struct log_job *lj, int error)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 1);

    if (error) {
        VLOG_WARN_RL(&rl, "%s: cannot watch the files (%s), looking at them "
                     "each %d s", lj->job, ovs_strerror(error),
                     LOG_SAFETY_MS / 1000);
    }
}

static void
see_dir(int fd, void *look_)
{
    struct look *look = look_;
    struct log_job *lj = look->log;

    say_unwatched(lj, log_watch_dir(lj->watch, &lj->watches, fd));
}

static bool
is_older(const struct log_file *a, const struct log_file *b)
{
    return a->mtime.tv_sec != b->mtime.tv_sec
           ? a->mtime.tv_sec < b->mtime.tv_sec
           : a->mtime.tv_nsec < b->mtime.tv_nsec;
}

/* Removes the file that is the same as 's' from 'lj' and returns it, NULL if
 * it is new. */
static struct log_file *
remove_known(struct log_job *lj, const struct stat *s)
{
    for (size_t i = 0; i < lj->n_files; i++) {
        struct log_file *f = lj->files[i];

        if (f && f->ino == s->st_ino && f->dev == s->st_dev) {
            lj->files[i] = NULL;
            f->mtime = s->st_mtim;
            return f;
        }
    }
    return NULL;
}

static void
see_file(int fd, const struct stat *s, void *look_)
{
    struct look *look = look_;
    struct log_job *lj = look->log;
    struct log_file *f;
    size_t i;

    if (lj->own && lj->uid && s->st_uid != lj->uid) {
        lj->n_refused++;
        close(fd);
        return;
    }
    f = remove_known(lj, s);
    if (f) {
        close(fd);
    } else {
        f = open_file(fd, s, &lj->spec);
    }
    if (look->n == LOG_MAX_FILES) {
        if (is_older(f, look->files[0])) {
            close_file(f);
            return;
        }
        close_file(look->files[0]);
        look->n--;
        memmove(look->files, look->files + 1, look->n * sizeof *look->files);
    }
    for (i = look->n++; i > 0 && is_older(f, look->files[i - 1]); i--) {
        look->files[i] = look->files[i - 1];
    }
    look->files[i] = f;
}

static void
look_for_files(struct log_job *lj, long long now)
{
    static const struct log_paths_class class = {
        .dir = see_dir, .file = see_file,
    };
    struct look look = { .log = lj };

    log_watch_begin(&lj->watches);
    lj->look = false;
    lj->next_look = now + LOOK_MS;
    lj->safety = now + LOG_SAFETY_MS;
    log_paths_walk(lj->path, lj->own ? strlen(lj->path)
                                     : log_spec_fixed(&lj->spec),
                   &class, &look);
    for (size_t i = 0; i < lj->n_files; i++) {
        close_file(lj->files[i]);
    }
    lj->n_files = look.n;
    memcpy(lj->files, look.files, sizeof lj->files);
    for (size_t i = 0; i < lj->n_files; i++) {
        say_unwatched(lj, log_watch_file(lj->watch, &lj->watches,
                                         lj->files[i]->fd));
    }
    log_watch_end(lj->watch, &lj->watches);
    lj->read = true;
}

static void
say_exhausted(const struct log_job *lj)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

    VLOG_WARN_RL(&rl, "%s: reading of %s ended (an expression took more than "
                 "%d steps or %d KiB for a line)", lj->job, lj->path,
                 LOG_EXPRESSION_STEPS, LOG_EXPRESSION_KIB);
}

static void
read_files(struct log_job *lj, long long now, log_report_func *tell, void *aux)
{
    bool was_bad = lj->told_bad;
    struct progress progress;

    lj->read = lj->told_bad = false;
    lj->next_read = now + READ_MS;
    for (size_t i = 0; i < lj->n_files; i++) {
        struct log_file *f = lj->files[i];

        if (read_file(f)) {
            lj->read = true;
            lj->next_read = now + MORE_MS;
        }
        if (log_decoder_take(f->decoder, &progress)) {
            tell(lj->job, &progress, aux);
        }
        lj->told_bad |= f->bad;
        lj->exhausted |= log_decoder_is_exhausted(f->decoder);
    }
    if (lj->exhausted) {
        say_exhausted(lj);
    }
    if (lj->told_bad && !was_bad) {
        VLOG_WARN("%s: a file of %s is not \"%s\", ignored until it is "
                  "replaced", lj->job, lj->path,
                  log_format_names[lj->spec.format]);
    }
}

void
log_job_handle_events(struct log_job *lj)
{
    lj->read |= lj->watches.changed;
    lj->look |= lj->watches.moved;
    lj->watches.changed = lj->watches.moved = false;
}

long long
log_job_next(const struct log_job *lj)
{
    long long next = LLONG_MAX;

    if (lj->has_spec && !lj->exhausted) {
        next = lj->look ? lj->next_look : lj->safety;
        next = lj->read ? MIN(next, lj->next_read) : next;
    }
    return next;
}

void
log_job_run(struct log_job *lj, long long now, log_report_func *tell,
            void *aux)
{
    if (!lj->has_spec || lj->exhausted) {
        return;
    }
    if ((lj->look && now >= lj->next_look) || now >= lj->safety) {
        look_for_files(lj, now);
    }
    if (lj->read && now >= lj->next_read) {
        read_files(lj, now, tell, aux);
    }
}

struct json *
log_job_to_json(const struct log_job *lj)
{
    struct json *json = json_object_create();
    uint64_t records = 0, malformed = 0, skipped = 0, bad = 0;

    for (size_t i = 0; i < lj->n_files; i++) {
        const struct log_counts *c = log_decoder_counts(lj->files[i]->decoder);

        records += c->records;
        malformed += c->malformed;
        skipped += lj->files[i]->skipped;
        bad += lj->files[i]->bad;
    }
    json_object_put_string(json, "job", lj->job);
    json_object_put_string(json, "format",
                           log_format_names[lj->spec.format]);
    json_object_put_string(json, "path", lj->path);
    json_object_put_string(json, "from", lj->own ? "environment" : "rules");
    json_object_put_string(json, "state",
                           lj->exhausted ? "exhausted" : "reading");
    json_put_integer(json, "files", lj->n_files);
    json_put_integer(json, "bad", bad);
    json_put_integer(json, "refused", lj->n_refused);
    json_put_integer(json, "records", records);
    json_put_integer(json, "malformed", malformed);
    json_put_integer(json, "skipped_bytes", skipped);
    return json;
}
