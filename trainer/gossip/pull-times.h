/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PULL_TIMES_H
#define PULL_TIMES_H 1

/* Measured time to pull the weights of each other peer.
 *
 * A slow pull has two possible causes: a slow link, which must be noticed
 * quickly, or a peer that was descheduled once, which must be ignored, because
 * a link that is avoided without need costs as much as a slow one that is
 * used.  The time of a link is therefore the median of its last three pulls.
 * A pull that was aborted marks the link as suspect; a suspect link is not
 * used until a probe has measured it reliably.  A link that has become fast is
 * used again at once.
 *
 *    pull_times_init(&times, n, now_us);
 *    pull_times_suspect(&times, from);
 *    if (pull_times_add(&times, from, seconds, reliable, now_us)) {
 *        ...report at once...
 *    }
 *
 * pull_times_average() is the published manner instead, for comparisons: the
 * time of a link is the moving average of the iterations with a pull from it.
 *
 * Ownership: plain data of the caller; no locks. */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/gossip/netmax-policy.h"

#define PULL_TIMES_KEEP 3

/* Weight of the average so far.  The public text gives no value. */
#define PULL_TIMES_BETA 0.5

struct pull_time {
    double last[PULL_TIMES_KEEP];       /* Seconds, the newest first. */
    int n_last;
    double median_s;            /* Median of 'last', or the moving average; 0:
                                 * no measurement. */
    double reported_s;          /* Last value reported; 0: none. */
    bool fresh;                 /* Measured since the last report. */
    bool suspect;               /* A pull was aborted since then. */
    int64_t measured_us;        /* Time of the last measurement. */
};

struct pull_times {
    int n;
    struct pull_time links[SYNC_MAX_PEERS];
};

void pull_times_init(struct pull_times *, int n, int64_t now_us);

/* A pull from 'i' took 'seconds'; unless 'reliable', the peer may have been
 * descheduled.  Returns true if the link differs from what was reported. */
bool pull_times_add(struct pull_times *, int i, double seconds, bool reliable,
                    int64_t now_us);

/* Adds an iteration with a pull from 'i' to the average. */
void pull_times_average(struct pull_times *, int i, double seconds);
void pull_times_suspect(struct pull_times *, int i);
void pull_times_forget(struct pull_times *, int i);

/* Returns the median of all measured links, or 0. */
double pull_times_median(const struct pull_times *);

/* Stores the links measured since the last report in 'report', NAN for all
 * others. */
void pull_times_report(struct pull_times *, float report[]);

#endif /* trainer/gossip/pull-times.h */
