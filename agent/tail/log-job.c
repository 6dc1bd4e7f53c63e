/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/tail/log-job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/tail/tail-protocol.h"
#include "util.h"

/* Minimum time between reads of a file, and between scans of directories. */
#define READ_MS 50
#define MORE_MS 5               /* Minimum time while there is more to read. */
#define LOOK_MS 100
#define MAX_READ (64 * 1024)    /* Bytes per call of read_file(). */
#define MAX_ENTRIES 4096        /* Directory entries per scan. */
#define MAX_WATCHES 1024

/* Between reads of events: a file that is written continuously would wake the
 * process all the time. */
#define DRAIN_MS 20
#define EVENTS                                                            \
    (IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF \
     | IN_MOVE_SELF | IN_ONLYDIR)

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
log_job_init(struct log_job *lj, const char *job, const struct log_spec *spec)
{
    char *cojob = xmemdup0(job, strcspn(job, "/"));

    *lj = (struct log_job){
        .job = xstrdup(job),
        .spec = spec,
        .look = true,
        .watch_fd = -1,
        .path = log_spec_path(spec, cojob, job + strlen(cojob) + 1),
    };
    free(cojob);
}

void
log_job_uninit(struct log_job *lj)
{
    for (size_t i = 0; i < lj->n_files; i++) {
        close_file(lj->files[i]);
    }
    if (lj->watch_fd >= 0) {
        close(lj->watch_fd);
    }
    free(lj->path);
    free(lj->job);
}

/* Begins a scan: its watches replace those before. */
static void
begin_watches(struct log_job *lj)
{
    if (lj->watch_fd >= 0) {
        close(lj->watch_fd);
    }
    lj->watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    lj->n_watches = 0;
    lj->watch_error = lj->watch_fd < 0 ? errno : 0;
}

/* Watches a directory and, if 'files', writes to its files.  'fd' may be for
 * the path only (O_PATH).  Changes the working directory: /proc may be a
 * container's, so a directory cannot be named by its descriptor. */
static void
watch_dir(struct log_job *lj, int fd, bool files)
{
    if (lj->n_watches++ >= MAX_WATCHES) {
        errno = ENOSPC;
    } else if (!fchdir(fd)
               && inotify_add_watch(lj->watch_fd, ".",
                                    EVENTS | (files ? IN_MODIFY : 0))
                      >= 0) {
        return;
    }
    lj->watch_error = lj->watch_error ? lj->watch_error : errno;
}

/* Reads the events of the watches. */
static void
drain_watches(struct log_job *lj, long long now)
{
    char buffer[16384] __attribute__((aligned(8)));
    ssize_t n;

    if (lj->watch_fd < 0 || now < lj->next_drain) {
        return;
    }
    n = read(lj->watch_fd, buffer, sizeof buffer);
    for (ssize_t at = 0; at < n;) {
        struct inotify_event *event = (struct inotify_event *) &buffer[at];

        lj->read = true;
        lj->look |= (event->mask & ~IN_MODIFY) != 0;
        at += sizeof *event + event->len;
    }
    if (n > 0) {
        lj->next_drain = now + DRAIN_MS;
    }
}

/* A scan for files that a path with wildcards names.
 *
 * The process has the rights of the job, so the kernel decides what it may
 * read, also behind symbolic links.  Only regular files are opened: opening a
 * pipe or a device can wait or change something.  The last part of a path is
 * not followed if it is a link: its target is in a directory that is not
 * watched.  A scan reads a bounded number of directory entries, and watches
 * the directories in which a matching file or directory could appear. */
struct look {
    struct log_job *log;
    int budget; /* Directory entries that may still be
                 * read. */
    size_t n;
    struct log_file *files[LOG_MAX_FILES]; /* By time of modification,
                                            * the latest last. */
};

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

/* Takes 'fd', a regular file. */
static void
see_file(struct look *look, int fd, const struct stat *s)
{
    struct log_job *lj = look->log;
    struct log_file *f;
    size_t i;

    f = remove_known(lj, s);
    if (f) {
        close(fd);
    } else {
        f = open_file(fd, s, lj->spec);
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

static void walk(struct look *, int dirfd, const char *rest);

static void
count_refusal(struct look *look)
{
    if (errno == EACCES || errno == EPERM) {
        look->log->n_refused++;
    }
}

static void
take_file(struct look *look, int dirfd, const char *name)
{
    struct stat s;
    int fd;

    /* Devices must not even be opened. */
    if (fstatat(dirfd, name, &s, AT_SYMLINK_NOFOLLOW) || !S_ISREG(s.st_mode)) {
        return;
    }
    fd = openat(dirfd, name,
                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        count_refusal(look);
    } else if (!fstat(fd, &s) && S_ISREG(s.st_mode)) {
        see_file(look, fd, &s);
    } else {
        close(fd);
    }
}

/* Opens 'name' in 'dirfd', before the remaining path 'rest'.  Returns false if
 * that fails. */
static bool
enter(struct look *look, int dirfd, const char *name, const char *rest)
{
    /* Passing through a directory needs no right to read it. */
    int fd = openat(dirfd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        count_refusal(look);
        return false;
    }
    walk(look, fd, rest);
    close(fd);
    return true;
}

static void
match(struct look *look, int dirfd, const char *pattern, const char *rest)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir) {
        if (fd >= 0) {
            close(fd);
        } else {
            count_refusal(look);
        }
        return;
    }
    while (look->budget > 0 && (entry = readdir(dir))) {
        const char *name = entry->d_name;

        look->budget--;
        if (!strcmp(name, ".") || !strcmp(name, "..")
            || fnmatch(pattern, name, FNM_PERIOD)) {
            continue;
        }
        if (rest) {
            enter(look, dirfd, name, rest);
        } else {
            take_file(look, dirfd, name);
        }
    }
    closedir(dir);
}

/* Walks the directory 'dirfd'; 'rest' is the part of the path below it. */
static void
walk(struct look *look, int dirfd, const char *rest)
{
    char name[NAME_MAX + 1];
    size_t n;

    rest += strspn(rest, "/");
    n = strcspn(rest, "/");
    if (!n || n > NAME_MAX) {
        return;
    }
    memcpy(name, rest, n);
    name[n] = '\0';
    rest = rest[n] ? rest + n + 1 : NULL;
    if (strpbrk(name, "*?[")) {
        watch_dir(look->log, dirfd, !rest);
        match(look, dirfd, name, rest);
    } else if (!rest) {
        watch_dir(look->log, dirfd, true);
        take_file(look, dirfd, name);
    } else if (!enter(look, dirfd, name, rest)) {
        watch_dir(look->log, dirfd, false);
    }
}

static void
look_for_files(struct log_job *lj, long long now)
{
    struct look look = { .log = lj, .budget = MAX_ENTRIES };
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    lj->look = false;
    lj->next_look = now + LOOK_MS;
    lj->safety = now + LOG_SAFETY_MS;
    lj->n_refused = 0;
    begin_watches(lj);
    if (root >= 0) {
        walk(&look, root, lj->path);
        close(root);
    }
    for (size_t i = 0; i < lj->n_files; i++) {
        close_file(lj->files[i]);
    }
    lj->n_files = look.n;
    memcpy(lj->files, look.files, sizeof lj->files);
    lj->read = true;
}

/* Reads from each file.  Returns false if an expression has reached a
 * limit. */
static bool
read_files(struct log_job *lj, long long now, log_progress_func *report,
           void *aux)
{
    struct progress progress;
    bool good = true;

    lj->read = false;
    lj->next_read = now + READ_MS;
    for (size_t i = 0; i < lj->n_files && good; i++) {
        struct log_file *f = lj->files[i];

        if (read_file(f)) {
            lj->read = true;
            lj->next_read = now + MORE_MS;
        }
        if (log_decoder_take(f->decoder, &progress)) {
            report(&progress, aux);
        }
        good = !f->decoder->exhausted;
    }
    return good;
}

long long
log_job_next(const struct log_job *lj)
{
    long long next = lj->look ? lj->next_look : lj->safety;

    return lj->read ? MIN(next, lj->next_read) : next;
}

const char *
log_job_run(struct log_job *lj, long long now, log_progress_func *report,
            void *aux)
{
    drain_watches(lj, now);
    if ((lj->look && now >= lj->next_look) || now >= lj->safety) {
        look_for_files(lj, now);
    }
    return !lj->read || now < lj->next_read
           || read_files(lj, now, report, aux) ? NULL
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
    } else if (lj->watch_error) {
        snprintf(r->words, sizeof r->words,
                 "cannot watch directories of "
                 "%.100s (%s), looking at them each %d s",
                 lj->path, ovs_strerror(lj->watch_error),
                 LOG_SAFETY_MS / 1000);
    }
}

void
log_job_report(const struct log_job *lj, struct tail_report *r)
{
    r->n_files = lj->n_files;
    r->refused = lj->n_refused;
    for (size_t i = 0; i < lj->n_files; i++) {
        const struct log_counts *c = &lj->files[i]->decoder->counts;

        r->records += c->records;
        r->malformed += c->malformed;
        r->skipped_bytes += lj->files[i]->skipped;
        r->bad += lj->files[i]->bad;
    }
    write_words(lj, r);
}
