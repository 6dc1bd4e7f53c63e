/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/gossip/pull-times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compare.h"
#include "trainer/gossip/net-monitor.h"

void
pull_times_init(struct pull_times *lt, int n, int64_t now_us)
{
    memset(lt, 0, sizeof *lt);
    lt->n = n;
    for (int i = 0; i < n; i++) {
        lt->links[i].measured_us = now_us;
    }
}

/* Returns the lower one of two medians. */
static double
median(const double seconds[], int n)
{
    double sorted[SYNC_MAX_PEERS];

    memcpy(sorted, seconds, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_doubles);
    return n ? sorted[(n - 1) / 2] : 0;
}

bool
pull_times_add(struct pull_times *lt, int i, double seconds, bool reliable,
               int64_t now_us)
{
    struct pull_time *link = &lt->links[i];

    link->measured_us = now_us;
    if (link->median_s && net_monitor_differs(link->median_s, seconds)
        && (reliable || seconds < link->median_s)) {
        link->n_last = 0;
    }
    link->n_last += link->n_last < PULL_TIMES_KEEP;
    memmove(link->last + 1, link->last,
            (link->n_last - 1) * sizeof *link->last);
    link->last[0] = seconds;
    link->median_s = median(link->last, link->n_last);
    link->suspect = false;
    link->fresh = true;
    return link->reported_s
           && net_monitor_differs(link->reported_s, link->median_s);
}

void
pull_times_average(struct pull_times *lt, int i, double seconds)
{
    struct pull_time *link = &lt->links[i];

    link->median_s = link->median_s ? PULL_TIMES_BETA * link->median_s
                                          + (1 - PULL_TIMES_BETA) * seconds
                                    : seconds;
    link->fresh = true;
}

void
pull_times_suspect(struct pull_times *lt, int i)
{
    lt->links[i].suspect = true;
    lt->links[i].measured_us = 0;
}

void
pull_times_forget(struct pull_times *lt, int i)
{
    memset(&lt->links[i], 0, sizeof lt->links[i]);
}

double
pull_times_median(const struct pull_times *lt)
{
    double known[SYNC_MAX_PEERS];
    int n = 0;

    for (int i = 0; i < lt->n; i++) {
        if (lt->links[i].median_s) {
            known[n++] = lt->links[i].median_s;
        }
    }
    return median(known, n);
}

void
pull_times_report(struct pull_times *lt, float report[])
{
    for (int i = 0; i < lt->n; i++) {
        struct pull_time *link = &lt->links[i];

        report[i] = link->fresh ? link->median_s : NAN;
        link->reported_s = link->median_s;
        link->fresh = false;
    }
}
