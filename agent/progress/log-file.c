/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/progress/log-file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util.h"

#define MAX_READ (64 * 1024)    /* Bytes per call of log_file_read(). */

struct log_file *
log_file_create(int fd, const struct stat *s, const struct log_spec *spec)
{
    struct log_file *f = xzalloc(sizeof *f);

    f->fd = fd;
    f->dev = s->st_dev;
    f->ino = s->st_ino;
    f->mtime = s->st_mtim;
    f->decoder = log_decoder_create(spec);
    return f;
}

void
log_file_destroy(struct log_file *f)
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
    f->begun = true;
}

bool
log_file_read(struct log_file *f)
{
    struct stat s;
    char *data;
    ssize_t n;

    if (f->bad || fstat(f->fd, &s)) {
        return false;
    }
    f->mtime = s.st_mtim;
    if (!f->begun || s.st_size < f->at) {
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

bool
log_file_take(struct log_file *f, struct progress *progress)
{
    return log_decoder_take(f->decoder, progress);
}
