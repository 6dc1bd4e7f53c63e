/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/gossip/net-monitor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SURPRISE 2              /* Times what it was. */
#define ALIKE 1.7               /* Times the usual is the usual. */
#define OLD_US 5000000          /* Links are looked at each second. */

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
            monitor->link_s[i][m] = monitor->foreseen_s[i][m] = NAN;
        }
    }
}

bool
net_monitor_surprising(double before, double now)
{
    return !(now < before * SURPRISE && now > before / SURPRISE);
}

static void
set_link(struct net_monitor *monitor, int i, int m, double seconds)
{
    double before = monitor->link_s[i][m];

    monitor->surprised = monitor->surprised
                         || (!isnan(before)
                             && net_monitor_surprising(before, seconds));
    monitor->link_s[i][m] = monitor->link_s[m][i] = seconds;
}

void
net_monitor_report(struct net_monitor *monitor, int i, const float times[],
                   double compute_s, int64_t now_us)
{
    for (int m = 0; m < monitor->n; m++) {
        if (m != i && times[m] > 0 && isfinite(times[m])) {
            set_link(monitor, i, m, times[m]);
            monitor->known_us[i][m] = monitor->known_us[m][i] = now_us;
        }
    }
    if (compute_s > 0 && isfinite(compute_s)) {
        monitor->compute_s[i] = compute_s;
    }
}

/* A link is as slow as its slower direction. */
static double
foreseen(const struct net_monitor *monitor, int i, int m)
{
    return fmax(monitor->foreseen_s[i][m], monitor->foreseen_s[m][i]);
}

void
net_monitor_foresee(struct net_monitor *monitor, int i, const float times[],
                    int64_t now_us)
{
    for (int m = 0; m < monitor->n; m++) {
        double *figure = &monitor->foreseen_s[i][m];
        double before = foreseen(monitor, i, m), now;

        /* What creeps is compared with what it was, not with its last step. */
        if (m == i || !net_monitor_surprising(*figure, times[m])) {
            continue;
        }
        *figure = times[m] > 0 && isfinite(times[m]) ? times[m] : NAN;
        now = foreseen(monitor, i, m);
        if (!isnan(before) && !isnan(now) && !isnan(monitor->link_s[i][m])
            && net_monitor_surprising(before, now)) {
            set_link(monitor, i, m, monitor->link_s[i][m] * now / before);
            monitor->known_us[i][m] = monitor->known_us[m][i] = now_us;
        }
    }
}

double
net_monitor_link(const struct net_monitor *monitor, int i, int m,
                 int64_t now_us)
{
    double s = monitor->link_s[i][m], other = foreseen(monitor, i, m);
    bool old = now_us - monitor->known_us[i][m] > OLD_US;

    return isnan(s) || (old && !isnan(other)) ? other : s;
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

/* The median of the links of which something is known; 0 if nothing is. */
static double
usual_time(const struct net_monitor *monitor, int64_t now_us)
{
    double known[NETMAX_MAX_PEERS * NETMAX_MAX_PEERS / 2];
    int count = 0;

    for (int i = 0; i < monitor->n; i++) {
        for (int m = 0; m < i; m++) {
            double s = net_monitor_link(monitor, i, m, now_us);

            if (!isnan(s)) {
                known[count++] = s;
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
    double usual = usual_time(monitor, now_us);
    netmax_matrix t;

    monitor->surprised = false;
    monitor->due_us = now_us + monitor->every_us;
    for (int i = 0; i < monitor->n; i++) {
        for (int m = 0; m < monitor->n; m++) {
            double s = net_monitor_link(monitor, i, m, now_us);

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
