/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PAUSES_H
#define PAUSES_H 1

/* Bytes in time -> bytes of an iteration.
 *
 *
 * Motivation
 * ==========
 *
 * A training job that waits for others takes now one second for an iteration
 * and now three; a bucket of gradients leaves early or late; and when others
 * fill the link no silence is where it should be.  But the same bytes move in
 * each iteration, and after the same bytes the job computes and is silent.
 * So what is periodic is not time but the place of silences among the bytes.
 *
 *    bytes   0         1.3 MB        2.6 MB        3.9 MB
 *            |  .    .    |   .    .    |  .     .   |        . short pauses
 *            long         long          long         long
 *
 * Of the pauses so far, each with its place and its length, that number of
 * bytes is the period after which pauses are followed by pauses of the same
 * length.  Long pauses count by the square of their length: those of a starved
 * job are many and short.  Between the buckets of one iteration there are
 * pauses too, but at the distance of a bucket their lengths differ; if a
 * period has several pauses of nearly the same length, it is several
 * iterations (of a job whose steps are not alike).
 *
 *
 * Usage
 * =====
 *
 *    struct pauses p;
 *
 *    pauses_init(&p);
 *    pauses_add_bins(&p, bytes);             // Each hundredth of a second.
 *    pauses_look(&p);                    // Now and then.
 *    if (p.period > 0) {
 *        n = pauses_count(&p);
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain memory, 2 kB.  One thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAUSES_MAX 128

struct pause {
    uint64_t at;                /* Bytes before it. */
    uint32_t length;            /* Bins, 2 or more. */
};

struct pauses {
    uint64_t bytes;             /* So far. */
    double busy;                /* Mean of the bins that are not silent. */
    uint32_t silent;            /* Bins of the pause that goes on. */
    uint64_t silent_at;         /* Bytes before it. */

    struct pause pauses[PAUSES_MAX];    /* By place.  When there is no room
                                         * the shortest goes, but not one of
                                         * the latest. */
    size_t n;
    unsigned int n_new;         /* Since the last look. */

    double period;              /* Bytes, 0 while nothing is known. */
    double score;               /* How alike what follows a period is, by the
                                 * last look, 0 to 1... */
    double proved;              /* ...and at most, since it is believed. */
    int parts;                  /* Iterations in a period. */
    double phase;               /* Bytes before the first iteration... */
    uint64_t base_at;           /* ...or, after the iterations became others,
                                 * from where they are counted... */
    double base_count;          /* ...and how many there were before. */
};

void pauses_init(struct pauses *);
void pauses_add_bins(struct pauses *, uint64_t bytes);
void pauses_look(struct pauses *);

/* Iterations so far, with a fraction; 0 while nothing is known. */
double pauses_count(const struct pauses *);

#endif /* agent/progress/pauses.h */
