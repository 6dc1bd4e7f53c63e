/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LINK_TIMES_H
#define LINK_TIMES_H 1

/* How long it takes a peer to get the weights of each other.
 *
 *
 * Motivation
 * ==========
 *
 * A pull may take long because its link is slow, or because for once somebody
 * had no processor.  The first must be known soon, the second must change
 * nothing: a link that is left out for nothing costs as much as one that is
 * kept.  So a link's time is the median of its last three, and a pull that was
 * given up makes its link doubtful: nobody is asked over it until a look at it
 * of which the time is certain.  What is fast again is fast at once.
 *
 *
 * Usage
 * =====
 *
 *    link_times_init(&lt, n, now_us);
 *    link_times_doubt(&lt, with);
 *    if (link_times_take(&lt, with, seconds, certain, now_us)) {
 *        ...tell others at once...
 *    }
 *
 * Ownership: plain data of the caller; no locks. */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/gossip/netmax-policy.h"

#define LINK_TIMES_KEEP 3

struct link_time {
    double last[LINK_TIMES_KEEP];       /* Seconds, the newest first. */
    int n_last;
    double usual_s;             /* Their median; 0: none. */
    double told_s;              /* What others were told; 0: nothing. */
    bool fresh;                 /* Measured since then. */
    bool doubtful;
    int64_t known_us;           /* When it was measured last. */
};

struct link_times {
    int n;
    struct link_time links[NETMAX_MAX_PEERS];
};

void link_times_init(struct link_times *, int n, int64_t now_us);

/* A pull with 'i' took 'seconds', or, unless 'certain', is said to.  Returns
 * whether the link is another than others were told. */
bool link_times_take(struct link_times *, int i, double seconds, bool certain,
                     int64_t now_us);
void link_times_doubt(struct link_times *, int i);
void link_times_forget(struct link_times *, int i);

/* The median of all links that are known, or 0. */
double link_times_usual(const struct link_times *);

/* Stores what was measured since the last time in 'news', NAN where nothing
 * was. */
void link_times_news(struct link_times *, float news[]);

#endif /* trainer/gossip/link-times.h */
