/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/sync/net-monitor.h"

#include <math.h>
#include <string.h>

#define SURPRISE 2              /* Times what it was. */
#define KEEP 0.7                /* Of the mean, at another report. */

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
        } else {
            now = KEEP * before + (1 - KEEP) * now;
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

/* What links that nobody has used are taken to be; 0 if all are such. */
static double
mean_time(const struct net_monitor *monitor)
{
    double sum = 0;
    int count = 0;

    for (int i = 0; i < monitor->n; i++) {
        for (int m = 0; m < monitor->n; m++) {
            if (i != m && !isnan(monitor->link_s[i][m])) {
                sum += monitor->link_s[i][m];
                count++;
            }
        }
    }
    return count ? sum / count : 0;
}

void
net_monitor_decide(struct net_monitor *monitor, const bool present[],
                   int64_t now_us, struct netmax_policy *policy)
{
    double unknown = mean_time(monitor);
    netmax_matrix t;

    monitor->surprised = false;
    monitor->due_us = now_us + monitor->every_us;
    for (int i = 0; i < monitor->n; i++) {
        for (int m = 0; m < monitor->n; m++) {
            double s = monitor->link_s[i][m];

            /* Pulling goes on beside computing. */
            t[i][m] = fmax(isnan(s) ? unknown : s, monitor->compute_s[i]);
        }
    }
    if (!unknown
        || !netmax_policy_best(monitor->n, present, t, policy)) {
        netmax_policy_uniform(monitor->n, present, policy);
    }
}
