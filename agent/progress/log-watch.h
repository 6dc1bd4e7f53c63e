/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_WATCH_H
#define LOG_WATCH_H 1

/* Lets the kernel tell of files and directories that change.
 *
 *
 * Motivation
 * ==========
 *
 * The kernel has one watch for a file, however many ask for it, and forgets it
 * when the file goes.  Here are those who asked: each has a set of watches,
 * which is made anew after every look at what there is.
 *
 * A file that is written to all the time would wake us all the time, so the
 * kernel is asked only each LOG_DRAIN_MS.
 *
 *
 * Usage
 * =====
 *
 *    log_watch_begin(&set);
 *    ...log_watch_file(lw, &set, fd), log_watch_dir(lw, &set, fd)...
 *    log_watch_end(lw, &set);            // Drops what was not renewed.
 *
 *    log_watch_run(lw);                  // Sets 'changed' and 'moved'.
 *    log_watch_wait(lw);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A set is its user's, and must be cleared before it goes.  Main thread
 * only. */

#include <stdbool.h>

#include "hmapx.h"

#define LOG_DRAIN_MS 20

struct log_watch;

struct log_watch_set {
    struct hmapx watches;       /* Contains struct watch. */
    struct hmapx old;           /* Those of before log_watch_begin(). */
    bool changed;               /* Something has been written to a file. */
    bool moved;                 /* Something has come, gone or been renamed. */
};

struct log_watch *log_watch_create(void);
void log_watch_destroy(struct log_watch *);

void log_watch_set_init(struct log_watch_set *);
void log_watch_set_clear(struct log_watch *, struct log_watch_set *);
void log_watch_set_uninit(struct log_watch_set *);

/* Those that return something return 0 or a positive errno value. */
void log_watch_begin(struct log_watch_set *);
int log_watch_file(struct log_watch *, struct log_watch_set *, int fd);
int log_watch_dir(struct log_watch *, struct log_watch_set *, int fd);
void log_watch_end(struct log_watch *, struct log_watch_set *);

void log_watch_run(struct log_watch *);
void log_watch_wait(struct log_watch *);

#endif /* agent/progress/log-watch.h */
