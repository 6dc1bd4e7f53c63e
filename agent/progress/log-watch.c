/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/progress/log-watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "hash.h"
#include "openvswitch/hmap.h"
#include "openvswitch/poll-loop.h"
#include "timeval.h"
#include "util.h"

#define FILE_EVENTS (IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF)
#define DIR_EVENTS (IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM \
                    | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

/* A file or directory that the kernel watches, and the sets that need it. */
struct watch {
    struct hmap_node node;      /* In struct log_watch's 'watches', by
                                 * 'wd'. */
    int wd;
    struct hmapx sets;          /* Contains struct log_watch_set. */
};

struct log_watch {
    int fd;                     /* inotify descriptor, -1 if it could not be
                                 * opened. */
    int error;                  /* Error of the attempt to open it. */
    long long next_drain;
    struct hmap watches;
};

struct log_watch *
log_watch_create(void)
{
    struct log_watch *lw = xzalloc(sizeof *lw);

    hmap_init(&lw->watches);
    lw->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    lw->error = lw->fd < 0 ? errno : 0;
    return lw;
}

/* All sets must have been cleared. */
void
log_watch_destroy(struct log_watch *lw)
{
    if (lw) {
        hmap_destroy(&lw->watches);
        if (lw->fd >= 0) {
            close(lw->fd);
        }
        free(lw);
    }
}

static struct watch *
find_watch(const struct log_watch *lw, int wd)
{
    struct watch *w;

    HMAP_FOR_EACH_WITH_HASH (w, node, hash_int(wd, 0), &lw->watches) {
        if (w->wd == wd) {
            return w;
        }
    }
    return NULL;
}

static void
free_watch(struct log_watch *lw, struct watch *w)
{
    hmap_remove(&lw->watches, &w->node);
    hmapx_destroy(&w->sets);
    free(w);
}

/* Removes 'w' from 'set'. */
static void
unwatch(struct log_watch *lw, struct log_watch_set *set, struct watch *w)
{
    hmapx_find_and_delete(&w->sets, set);
    if (hmapx_is_empty(&w->sets)) {
        inotify_rm_watch(lw->fd, w->wd);
        free_watch(lw, w);
    }
}

void
log_watch_set_init(struct log_watch_set *set)
{
    hmapx_init(&set->watches);
    hmapx_init(&set->old);
    set->changed = set->moved = false;
}

void
log_watch_set_clear(struct log_watch *lw, struct log_watch_set *set)
{
    log_watch_begin(set);
    log_watch_end(lw, set);
}

void
log_watch_set_uninit(struct log_watch_set *set)
{
    hmapx_destroy(&set->watches);
    hmapx_destroy(&set->old);
}

void
log_watch_begin(struct log_watch_set *set)
{
    hmapx_swap(&set->old, &set->watches);
}

void
log_watch_end(struct log_watch *lw, struct log_watch_set *set)
{
    struct hmapx_node *node;

    HMAPX_FOR_EACH (node, &set->old) {
        if (!hmapx_contains(&set->watches, node->data)) {
            unwatch(lw, set, node->data);
        }
    }
    hmapx_clear(&set->old);
}

static int
watch(struct log_watch *lw, struct log_watch_set *set, int fd,
      uint32_t events)
{
    char path[64];
    struct watch *w;
    int wd;

    if (lw->error) {
        return lw->error;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    wd = inotify_add_watch(lw->fd, path, events);
    if (wd < 0) {
        return errno;
    }
    w = find_watch(lw, wd);
    if (!w) {
        w = xmalloc(sizeof *w);
        w->wd = wd;
        hmapx_init(&w->sets);
        hmap_insert(&lw->watches, &w->node, hash_int(wd, 0));
    }
    hmapx_add(&w->sets, set);
    hmapx_add(&set->watches, w);
    return 0;
}

int
log_watch_file(struct log_watch *lw, struct log_watch_set *set, int fd)
{
    return watch(lw, set, fd, FILE_EVENTS);
}

int
log_watch_dir(struct log_watch *lw, struct log_watch_set *set, int fd)
{
    return watch(lw, set, fd, DIR_EVENTS);
}

static void
wake(struct watch *w, uint32_t events)
{
    struct hmapx_node *node;

    HMAPX_FOR_EACH (node, &w->sets) {
        struct log_watch_set *set = node->data;

        set->changed = true;
        set->moved |= (events & ~IN_MODIFY) != 0;
        if (events & IN_IGNORED) {
            hmapx_find_and_delete(&set->watches, w);
        }
    }
}

static void
take_event(struct log_watch *lw, const struct inotify_event *event)
{
    struct watch *w = find_watch(lw, event->wd);

    if (event->mask & IN_Q_OVERFLOW) {
        HMAP_FOR_EACH (w, node, &lw->watches) {
            wake(w, DIR_EVENTS);
        }
    } else if (w) {
        wake(w, event->mask);
        if (event->mask & IN_IGNORED) {
            free_watch(lw, w);
        }
    }
}

void
log_watch_run(struct log_watch *lw)
{
    char buffer[16384] __attribute__((aligned(8)));
    long long now = time_msec();
    ssize_t n;

    if (lw->fd < 0 || now < lw->next_drain) {
        return;
    }
    n = read(lw->fd, buffer, sizeof buffer);
    for (ssize_t at = 0; at < n; ) {
        struct inotify_event *event = (struct inotify_event *) &buffer[at];

        take_event(lw, event);
        at += sizeof *event + event->len;
    }
    if (n > 0) {
        lw->next_drain = now + LOG_DRAIN_MS;
    }
}

void
log_watch_wait(struct log_watch *lw)
{
    if (lw->fd < 0 || hmap_is_empty(&lw->watches)) {
        return;
    }
    if (time_msec() < lw->next_drain) {
        poll_timer_wait_until(lw->next_drain);
    } else {
        poll_fd_wait(lw->fd, POLLIN);
    }
}
