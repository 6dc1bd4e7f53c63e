/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/sync/net-monitor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SURPRISE 2              /* Times what it was. */
#define ALIKE 1.7               /* Times the usual is the usual. */

void
net_monitor_init(struct net_monitor *monitor, int n, int64_t now_us,
                 int64_t every_us)
{
    memset(monitor, 0, sizeof *monitor);
    monitor->n = n;
    monitor->every_us = every_us;
    monitor->due_us = now_us + every_us;
    for (int i = 0; i < n; i++) {
        for (int m = 0; m < n; m++) {
            monitor->link_s[i][m] = NAN;
        }
    }
}

bool
net_monitor_surprising(double before, double now)
{
    return !(now < before * SURPRISE && now > before / SURPRISE);
}

void
net_monitor_report(struct net_monitor *monitor, int i, const float times[],
                   double compute_s)
{
    for (int m = 0; m < monitor->n; m++) {
        double before = monitor->link_s[i][m], now = times[m];

        if (m == i || !(now > 0) || !isfinite(now)) {
            continue;
        }
        if (net_monitor_surprising(before, now)) {
            monitor->surprised = monitor->surprised || !isnan(before);
        }
        monitor->link_s[i][m] = monitor->link_s[m][i] = now;
    }
    if (compute_s > 0 && isfinite(compute_s)) {
        monitor->compute_s[i] = compute_s;
    }
}

bool
net_monitor_due(const struct net_monitor *monitor, int64_t now_us)
{
    return monitor->surprised || now_us >= monitor->due_us;
}

static int
compare_seconds(const void *a_, const void *b_)
{
    double a = *(const double *) a_, b = *(const double *) b_;

    return a < b ? -1 : a > b;
}

/* The median of the links that have been used; 0 if none has. */
static double
usual_time(const struct net_monitor *monitor)
{
    double known[NETMAX_MAX_PEERS * NETMAX_MAX_PEERS / 2];
    int count = 0;

    for (int i = 0; i < monitor->n; i++) {
        for (int m = 0; m < i; m++) {
            if (!isnan(monitor->link_s[i][m])) {
                known[count++] = monitor->link_s[i][m];
            }
        }
    }
    qsort(known, count, sizeof *known, compare_seconds);
    return count ? known[count / 2] : 0;
}

void
net_monitor_decide(struct net_monitor *monitor, const bool present[],
                   int64_t now_us, struct netmax_policy *policy)
{
    double usual = usual_time(monitor);
    netmax_matrix t;

    monitor->surprised = false;
    monitor->due_us = now_us + monitor->every_us;
    for (int i = 0; i < monitor->n; i++) {
        for (int m = 0; m < monitor->n; m++) {
            double s = monitor->link_s[i][m];

            /* Differences that are noise would cost even probabilities, by
             * which models come together fastest.  Pulling goes on beside
             * computing. */
            s = s > usual * ALIKE || s < usual / ALIKE ? s : usual;
            t[i][m] = fmax(s, monitor->compute_s[i]);
        }
    }
    if (!usual
        || !netmax_policy_best(monitor->n, present, t, monitor->compute_s,
                               policy)) {
        netmax_policy_uniform(monitor->n, present, policy);
    }
}
