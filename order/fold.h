/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FOLD_H
#define FOLD_H 1

/* Folds a long order into few levels.
 *
 * What shares no port with anything before it has depth 0; otherwise its depth
 * is one more than the largest of those before it with which it shares one.
 * Depths would do as levels if there were enough of them.  With fewer, the
 * first deserve levels that they share with few, but the many behind them must
 * not all share the last one: who is next to be served matters too, and a port
 * is rarely left by those before in the order in which they were ranked.  So
 * levels grow with the square root of the depth, and end where the deepest
 * does: of N levels, level i has the depths from (i / N)^2 of all of them on.
 *
 * Measured on generated searches (mean stage completion time against fair, 12
 * scenarios): 0.789, 0.759, 0.748, 0.739 and 0.737 with 2, 3, 4, 6 and 8
 * levels, 0.734 with no limit.  With one of the levels for the first alone, 2,
 * 3 and 4 take 0.993, 0.786 and 0.755; with one level for each of the first
 * and the last for all others, 6 and 4 lose 8.8 % and 12 %. */

struct fold {
    int *next;                  /* Of each port: one more than the largest
                                 * depth on it so far. */
    int deepest;                /* The largest depth so far. */
};

void fold_init(struct fold *, int *next, int n_ports);

/* Returns the depth of what comes next in the order and needs 'n' 'ports',
 * each 'stride' bytes after the one before. */
int fold_depth(struct fold *, const int *ports, int n, int stride);

/* Returns the level of a depth when all depths are known, 0 to
 * 'n_levels' - 1. */
int fold_level(const struct fold *, int depth, int n_levels);

#endif /* order/fold.h */
