/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_WATCH_H
#define LOG_WATCH_H 1

/* Notification of changes in directories, by inotify.
 *
 * A watch of a directory can also report writes to its files.  A file that is
 * written continuously would wake the process all the time, so events are read
 * only every LOG_DRAIN_MS.
 *
 *    log_watch_begin(&watch);
 *    ...log_watch_dir(&watch, fd, files)...
 *    log_watch_end(&watch);              // Removes what was not renewed.
 *
 *    log_watch_run(&watch, now);         // Sets 'changed' and 'moved'.
 *
 * Changes the working directory: /proc may be that of a container, so a
 * directory cannot be named by its descriptor.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>

#define LOG_DRAIN_MS 20
#define LOG_MAX_WATCHES 1024

struct log_watch {
    int fd;                     /* inotify descriptor, -1 if it could not be
                                 * opened. */
    int error;                  /* Error of the first watch that failed since
                                 * log_watch_begin(), 0 if none did. */
    size_t n, n_old;            /* Numbers of watches, and of those from
                                 * before log_watch_begin(). */
    int watches[LOG_MAX_WATCHES];
    int old[LOG_MAX_WATCHES];
    long long next_drain;       /* Earliest time of the next read of events,
                                 * ms. */
    bool changed;               /* A file has been written. */
    bool moved;                 /* A file has appeared, disappeared or been
                                 * renamed. */
};

void log_watch_init(struct log_watch *);
void log_watch_uninit(struct log_watch *);

void log_watch_begin(struct log_watch *);
/* Watches a directory and, if 'files', writes to its files.  'fd' may be for
 * the path only (O_PATH). */
void log_watch_dir(struct log_watch *, int fd, bool files);
void log_watch_end(struct log_watch *);

void log_watch_run(struct log_watch *, long long now);

#endif /* agent/tail/log-watch.h */
