/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/gossip/link-times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/gossip/net-monitor.h"

void
link_times_init(struct link_times *lt, int n, int64_t now_us)
{
    memset(lt, 0, sizeof *lt);
    lt->n = n;
    for (int i = 0; i < n; i++) {
        lt->links[i].known_us = now_us;
    }
}

static int
compare_seconds(const void *a_, const void *b_)
{
    double a = *(const double *) a_, b = *(const double *) b_;

    return a < b ? -1 : a > b;
}

/* The lower of the two in the middle if their number is even. */
static double
median(const double seconds[], int n)
{
    double sorted[NETMAX_MAX_PEERS];

    memcpy(sorted, seconds, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_seconds);
    return n ? sorted[(n - 1) / 2] : 0;
}

bool
link_times_take(struct link_times *lt, int i, double seconds, bool certain,
                int64_t now_us)
{
    struct link_time *link = &lt->links[i];

    link->known_us = now_us;
    if (link->usual_s && net_monitor_surprising(link->usual_s, seconds)
        && (certain || seconds < link->usual_s)) {
        link->n_last = 0;
    }
    link->n_last += link->n_last < LINK_TIMES_KEEP;
    memmove(link->last + 1, link->last,
            (link->n_last - 1) * sizeof *link->last);
    link->last[0] = seconds;
    link->usual_s = median(link->last, link->n_last);
    link->doubtful = false;
    link->fresh = true;
    return link->told_s
           && net_monitor_surprising(link->told_s, link->usual_s);
}

void
link_times_doubt(struct link_times *lt, int i)
{
    lt->links[i].doubtful = true;
    lt->links[i].known_us = 0;
}

void
link_times_forget(struct link_times *lt, int i)
{
    memset(&lt->links[i], 0, sizeof lt->links[i]);
}

double
link_times_usual(const struct link_times *lt)
{
    double known[NETMAX_MAX_PEERS];
    int n = 0;

    for (int i = 0; i < lt->n; i++) {
        if (lt->links[i].usual_s) {
            known[n++] = lt->links[i].usual_s;
        }
    }
    return median(known, n);
}

void
link_times_news(struct link_times *lt, float news[])
{
    for (int i = 0; i < lt->n; i++) {
        struct link_time *link = &lt->links[i];

        news[i] = link->fresh ? link->usual_s : NAN;
        link->told_s = link->usual_s;
        link->fresh = false;
    }
}
