/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRAIN_PROGRESS_H
#define TRAIN_PROGRESS_H 1

/* What "train" shows of a running job.
 *
 *    progress_init(&p, now, first, total);
 *    progress_count(&p, now, iteration, total);        // Now and then.
 *    text = progress_bar(&p, width);                   // For a terminal.
 *    text = progress_line(&p);                         // For a log.
 *
 * Rates are those of the last 5 to 10 seconds.  Plain data; returned strings
 * belong to the caller. */

#include <stdbool.h>
#include <stdint.h>

/* Iterations at a time. */
struct progress_mark {
    double time;                /* Seconds. */
    int64_t iteration;          /* Of worker 0. */
    int64_t total;              /* Sum over all workers. */
};

/* Numbers that are unknown are NAN. */
struct progress {
    int64_t iteration, target;  /* Of worker 0. */
    double share;               /* Samples of a worker in an iteration. */
    double loss, accuracy;      /* Of the validation samples. */
    double iterations_s;        /* Iterations per second. */
    double samples_s;           /* Samples of all workers per second. */
    double eta_s;               /* Seconds until the target. */
    double first_loss, lowest_loss;
    int64_t lowest_at; /* Iteration of the lowest loss. */
    int64_t rose_at;   /* At which progress_rises(); 0 if never. */
    struct progress_mark marks[2];      /* The older one is first. */
};

/* The job begins at time 'now', with worker 0 at iteration 'first' and 'total'
 * iterations of all workers.  The caller has set 'target', 'share', 'loss' and
 * 'accuracy', and the rates to NAN. */
void progress_init(struct progress *, double now, int64_t first,
                   int64_t total);

/* Sets the iteration and computes the rates. */
void progress_count(struct progress *, double now, int64_t iteration,
                    int64_t total);

/* Takes a new loss or NAN.  Returns true, once, if training diverges: the loss
 * is above the first one and twice the lowest, or not a number any more. */
bool progress_rises(struct progress *, int64_t iteration, double loss);

/* Returns the numbers, separated by commas. */
char *progress_line(const struct progress *);

/* Returns at most 'width' characters with a bar, if there is space for it. */
char *progress_bar(const struct progress *, int width);

#endif /* trainer/train/progress.h */
