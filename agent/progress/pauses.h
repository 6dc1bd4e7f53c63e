/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PAUSES_H
#define PAUSES_H 1

/* Finds the bytes of an iteration in the traffic of a job.
 *
 * The duration of an iteration varies with the share of the link, and so does
 * the time of each part of it.  But each iteration moves the same bytes and is
 * followed by a pause for computing.  So the position of pauses among the
 * bytes is periodic, not their time.
 *
 *    bytes   0         1.3 MB        2.6 MB        3.9 MB
 *            |  .    .    |   .    .    |  .     .   |        . short pauses
 *            long         long          long         long
 *
 * The period is the number of bytes after which pauses are followed by pauses
 * of the same length.  Pauses count by the square of their length, because a
 * starved job has many short ones.  There are also pauses between the buckets
 * of one iteration, but at the distance of a bucket their lengths differ.  A
 * period with several pauses of nearly the same length consists of several
 * iterations.
 *
 * Measured: the traffic of a recorded data-parallel PyTorch job among six
 * others on the same links is counted to the iteration, and to within 2 % when
 * the job had the last rank.
 *
 *    struct pauses p;
 *
 *    pauses_init(&p);
 *    pauses_add_bins(&p, bytes);         // Each hundredth of a second.
 *    pauses_look(&p);                    // From time to time.
 *    if (p.period > 0) {
 *        n = pauses_count(&p);
 *    }
 *
 * Plain memory, 2 kB.  One thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAUSES_MAX 128

struct pause {
    uint64_t at;                /* Position: bytes before it. */
    uint32_t length;            /* Length in bins, 2 or more. */
};

struct pauses {
    uint64_t bytes;             /* All bytes of the job. */
    double busy;                /* Mean of the bins that are not silent,
                                 * bytes. */
    uint32_t silent;            /* Length of the current pause, bins. */
    uint64_t silent_at;         /* Position of the current pause. */

    struct pause pauses[PAUSES_MAX];    /* By position.  If the array is
                                         * full, the shortest pause is
                                         * dropped, but none of the latest. */
    size_t n;
    unsigned int n_new;         /* New pauses since the last search. */

    double period;              /* Bytes of a period, 0 if unknown. */
    double score;               /* Similarity of what follows a period, by
                                 * the last search, 0 to 1. */
    double proved;              /* Highest score since the period was
                                 * accepted. */
    int parts;                  /* Iterations per period. */
    double phase;               /* Bytes before the first iteration. */
    uint64_t base_at;           /* If the iterations have changed: position
                                 * from which they are counted. */
    double base_count;          /* Number of iterations before that
                                 * position. */
};

void pauses_init(struct pauses *);
void pauses_add_bins(struct pauses *, uint64_t bytes);
void pauses_look(struct pauses *);

/* Returns the number of iterations, with a fraction; 0 if unknown. */
double pauses_count(const struct pauses *);

#endif /* agent/progress/pauses.h */
