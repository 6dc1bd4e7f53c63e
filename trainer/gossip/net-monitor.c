/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/gossip/net-monitor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compare.h"

#define CHANGE 2                /* Factor that counts as a change. */
#define NEAR 1.7                /* Factor that counts as the median. */
#define OLD_US 5000000          /* Links are probed each second. */

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
            monitor->link_s[i][m] = monitor->estimate_s[i][m] = NAN;
        }
    }
}

bool
net_monitor_differs(double before, double now)
{
    return !(now < before * CHANGE && now > before / CHANGE);
}

static void
set_link(struct net_monitor *monitor, int i, int m, double seconds,
         int64_t now_us)
{
    double before = monitor->link_s[i][m];

    if (monitor->published) {
        monitor->link_s[i][m] = seconds;
        return;
    }
    monitor->changed = monitor->changed
                         || (!isnan(before)
                             && net_monitor_differs(before, seconds));
    monitor->link_s[i][m] = monitor->link_s[m][i] = seconds;
    monitor->measured_us[i][m] = monitor->measured_us[m][i] = now_us;
}

void
net_monitor_report(struct net_monitor *monitor, int i, const float times[],
                   double compute_s, int64_t now_us)
{
    for (int m = 0; m < monitor->n; m++) {
        if (m != i && times[m] > 0 && isfinite(times[m])) {
            set_link(monitor, i, m, times[m], now_us);
        }
    }
    if (compute_s > 0 && isfinite(compute_s)) {
        monitor->compute_s[i] = compute_s;
    }
}

/* A link is as slow as its slower direction. */
static double
estimated(const struct net_monitor *monitor, int i, int m)
{
    return fmax(monitor->estimate_s[i][m], monitor->estimate_s[m][i]);
}

void
net_monitor_estimate(struct net_monitor *monitor, int i, const float times[],
                     int64_t now_us)
{
    for (int m = 0; m < monitor->n; m++) {
        double *figure = &monitor->estimate_s[i][m];
        double before = estimated(monitor, i, m), now;

        /* Small steps add up: compares with the last change. */
        if (m == i || !net_monitor_differs(*figure, times[m])) {
            continue;
        }
        *figure = times[m] > 0 && isfinite(times[m]) ? times[m] : NAN;
        now = estimated(monitor, i, m);
        if (!isnan(before) && !isnan(now) && !isnan(monitor->link_s[i][m])
            && net_monitor_differs(before, now)) {
            set_link(monitor, i, m, monitor->link_s[i][m] * now / before,
                     now_us);
        }
    }
}

double
net_monitor_link(const struct net_monitor *monitor, int i, int m,
                 int64_t now_us)
{
    double s = monitor->link_s[i][m], other = estimated(monitor, i, m);
    bool old = now_us - monitor->measured_us[i][m] > OLD_US;

    return isnan(s) || (old && !isnan(other)) ? other : s;
}

bool
net_monitor_due(const struct net_monitor *monitor, int64_t now_us)
{
    return monitor->changed || now_us >= monitor->due_us;
}

/* Returns the median of the known links, or 0. */
static double
usual_time(const struct net_monitor *monitor, int64_t now_us)
{
    double known[SYNC_MAX_PEERS * SYNC_MAX_PEERS / 2];
    int count = 0;

    for (int i = 0; i < monitor->n; i++) {
        for (int m = 0; m < i; m++) {
            double s = net_monitor_link(monitor, i, m, now_us);

            if (!isnan(s)) {
                known[count++] = s;
            }
        }
    }
    qsort(known, count, sizeof *known, compare_doubles);
    return count ? known[count / 2] : 0;
}

/* Returns the mean of the measured links among present peers, or 0. */
static double
mean_time(const struct net_monitor *monitor, const bool present[])
{
    double sum = 0;
    int count = 0;

    for (int i = 0; i < monitor->n; i++) {
        for (int m = 0; m < monitor->n; m++) {
            if (present[i] && present[m] && !isnan(monitor->link_s[i][m])) {
                sum += monitor->link_s[i][m];
                count++;
            }
        }
    }
    return count ? sum / count : 0;
}

static bool
decide_as_published(const struct net_monitor *monitor, const bool present[],
                    struct netmax_policy *policy)
{
    double mean = mean_time(monitor, present);
    netmax_matrix t;

    for (int i = 0; i < monitor->n; i++) {
        for (int m = 0; m < monitor->n; m++) {
            double s = monitor->link_s[i][m];

            t[i][m] = isnan(s) ? mean : s;
        }
    }
    return mean > 0 && netmax_policy_published(monitor->n, present, t, policy);
}

static bool
decide(const struct net_monitor *monitor, const bool present[],
       int64_t now_us, struct netmax_policy *policy)
{
    double usual = usual_time(monitor, now_us);
    netmax_matrix t;

    for (int i = 0; i < monitor->n; i++) {
        for (int m = 0; m < monitor->n; m++) {
            double s = net_monitor_link(monitor, i, m, now_us);

            /* Noise would make probabilities uneven, and models converge
             * fastest with even ones.  Pulls overlap with computing. */
            s = s > usual * NEAR || s < usual / NEAR ? s : usual;
            t[i][m] = fmax(s, monitor->compute_s[i]);
        }
    }
    return usual && netmax_policy_best(monitor->n, present, t,
                                       monitor->compute_s, policy);
}

void
net_monitor_decide(struct net_monitor *monitor, const bool present[],
                   int64_t now_us, struct netmax_policy *policy)
{
    monitor->changed = false;
    monitor->due_us = now_us + monitor->every_us;
    if (!(monitor->published ? decide_as_published(monitor, present, policy)
                             : decide(monitor, present, now_us, policy))) {
        netmax_policy_uniform(monitor->n, present, policy);
    }
}
