/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/tail/log-watch.h"

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define EVENTS (IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM \
                | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

void
log_watch_init(struct log_watch *lw)
{
    memset(lw, 0, sizeof *lw);
    lw->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

void
log_watch_uninit(struct log_watch *lw)
{
    if (lw->fd >= 0) {
        close(lw->fd);
    }
}

void
log_watch_begin(struct log_watch *lw)
{
    memcpy(lw->old, lw->watches, lw->n * sizeof *lw->old);
    lw->n_old = lw->n;
    lw->n = 0;
    lw->error = 0;
}

static bool
contains(const int *watches, size_t n, int watch)
{
    for (size_t i = 0; i < n; i++) {
        if (watches[i] == watch) {
            return true;
        }
    }
    return false;
}

void
log_watch_dir(struct log_watch *lw, int fd, bool files)
{
    int watch = -1;

    if (lw->n >= LOG_MAX_WATCHES) {
        errno = ENOSPC;
    } else if (!fchdir(fd)) {
        watch =
            inotify_add_watch(lw->fd, ".", EVENTS | (files ? IN_MODIFY : 0));
    }
    if (watch < 0) {
        lw->error = lw->error ? lw->error : errno;
    } else if (!contains(lw->watches, lw->n, watch)) {
        lw->watches[lw->n++] = watch;
    }
}

void
log_watch_end(struct log_watch *lw)
{
    for (size_t i = 0; i < lw->n_old; i++) {
        if (!contains(lw->watches, lw->n, lw->old[i])) {
            inotify_rm_watch(lw->fd, lw->old[i]);
        }
    }
}

void
log_watch_run(struct log_watch *lw, long long now)
{
    char buffer[16384] __attribute__((aligned(8)));
    ssize_t n;

    if (lw->fd < 0 || now < lw->next_drain) {
        return;
    }
    n = read(lw->fd, buffer, sizeof buffer);
    for (ssize_t at = 0; at < n; ) {
        struct inotify_event *event = (struct inotify_event *) &buffer[at];

        lw->changed = true;
        lw->moved |= (event->mask & ~IN_MODIFY) != 0;
        at += sizeof *event + event->len;
    }
    if (n > 0) {
        lw->next_drain = now + LOG_DRAIN_MS;
    }
}
