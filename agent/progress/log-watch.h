/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_WATCH_H
#define LOG_WATCH_H 1

/* Notification of changes of files and directories, by inotify.
 *
 *
 * Motivation
 * ==========
 *
 * The kernel has one watch per file, however many users it has, and removes it
 * with the file.  This module keeps the users: each has a set of watches,
 * which is rebuilt after every scan.
 *
 * A file that is written continuously would wake the agent all the time, so
 * events are read only every LOG_DRAIN_MS.
 *
 *
 * Usage
 * =====
 *
 *    log_watch_begin(&set);
 *    ...log_watch_file(lw, &set, fd), log_watch_dir(lw, &set, fd)...
 *    log_watch_end(lw, &set);            // Removes what was not renewed.
 *
 *    log_watch_run(lw);                  // Sets 'changed' and 'moved'.
 *    log_watch_wait(lw);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A set belongs to its user, who must clear it before freeing it.  Main thread
 * only. */

#include <stdbool.h>

#include "hmapx.h"

#define LOG_DRAIN_MS 20

struct log_watch;

struct log_watch_set {
    struct hmapx watches;       /* Contains struct watch. */
    struct hmapx old;           /* Watches from before log_watch_begin(). */
    bool changed;               /* A file has been written. */
    bool moved;                 /* A file has appeared, disappeared or been
                                 * renamed. */
};

struct log_watch *log_watch_create(void);
void log_watch_destroy(struct log_watch *);

void log_watch_set_init(struct log_watch_set *);
void log_watch_set_clear(struct log_watch *, struct log_watch_set *);
void log_watch_set_uninit(struct log_watch_set *);

/* Functions return 0 or a positive errno value. */
void log_watch_begin(struct log_watch_set *);
int log_watch_file(struct log_watch *, struct log_watch_set *, int fd);
int log_watch_dir(struct log_watch *, struct log_watch_set *, int fd);
void log_watch_end(struct log_watch *, struct log_watch_set *);

void log_watch_run(struct log_watch *);
void log_watch_wait(struct log_watch *);

#endif /* agent/progress/log-watch.h */
