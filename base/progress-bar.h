/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BASE_PROGRESS_BAR_H
#define BASE_PROGRESS_BAR_H 1

/* A line on the terminal about long work: how much of it is done, and about
 * how many seconds the rest takes.
 *
 *    progress_bar_begin(&bar, "stage", "coflow");
 *    for (i = 0; i < n; i++) {
 *        ...
 *        progress_bar_update(&bar, i + 1, n);
 *    }
 *    progress_bar_end(&bar);
 *
 * Nothing is drawn unless standard error is a terminal.  Not thread-safe. */

#include <stdbool.h>
#include <stddef.h>

struct progress_bar {
    const char *label, *noun; /* Borrowed: what is worked on, and what is
                               * counted, in the singular. */
    double begin;             /* clock_monotonic_s(). */
    double shown;             /* Seconds from 'begin' to the last output. */
    bool terminal;
};

/* Begins with the label alone; ends without a line. */
void progress_bar_begin(struct progress_bar *, const char *label,
                        const char *noun);
void progress_bar_end(struct progress_bar *);

/* 'n' of 'n_all' are done.  'bar' is a struct progress_bar, void as in the
 * simulator's callback. */
void progress_bar_update(void *bar, size_t n, size_t n_all);

#endif /* base/progress-bar.h */
