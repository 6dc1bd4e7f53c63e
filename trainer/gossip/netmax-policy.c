/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/gossip/netmax-policy.h"

#include <math.h>
#include <string.h>

#define N_RHO 14                /* Minimum probabilities to try. */
#define RHO_RATIO 0.6           /* Each of them is this part of the last. */
#define N_TBAR 12               /* Mean times to try for each. */
#define MAX_CUTS 4              /* Links that may be left out. */
#define N_PUBLISHED 10          /* Minimum probabilities to try, as
                                 * published. */
#define MIN_GAP 1e-6            /* Of 1 - lambda2. */
#define SWEEPS 30               /* Jacobi converges in less than 10. */
#define TINY 1e-12              /* Rounding, relative. */

static int
count_true(const bool is[], int n)
{
    int count = 0;

    for (int i = 0; i < n; i++) {
        count += is[i];
    }
    return count;
}

/* Divides 'rest' among the used peers as evenly as possible with mean time
 * 'mean', which is between their least and greatest times: a linear function
 * of the times, without the peers for which it is negative. */
static void
spread(int n, const bool used[], const double t[], double rest, double mean,
       double p[])
{
    double q[NETMAX_MAX_PEERS];
    bool in[NETMAX_MAX_PEERS];

    memcpy(in, used, n * sizeof *in);
    for (;;) {
        double sum = 0, squares = 0, slope, least = 0;
        int count = count_true(in, n), worst = -1;

        for (int m = 0; m < n; m++) {
            sum += in[m] ? t[m] : 0;
        }
        for (int m = 0; m < n; m++) {
            squares += in[m] ? pow(t[m] - sum / count, 2) : 0;
        }
        slope = squares > TINY * sum * sum
                ? rest * (sum / count - mean) / squares : 0;
        for (int m = 0; m < n; m++) {
            q[m] = in[m] ? rest / count - slope * (t[m] - sum / count) : 0;
            if (q[m] < least - TINY) {
                least = q[m];
                worst = m;
            }
        }
        if (worst < 0 || count < 2) {
            for (int m = 0; m < n; m++) {
                p[m] += fmax(q[m], 0);
            }
            return;
        }
        in[worst] = false;
    }
}

double
netmax_policy_row(int n, const bool used[], const double t[], double least,
                  double total, double p[])
{
    double rest = 1, time = total, shortest = INFINITY, longest = 0;
    int fastest = -1;

    for (int m = 0; m < n; m++) {
        p[m] = used[m] ? least : 0;
        rest -= p[m];
        time -= p[m] * t[m];
        if (used[m] && t[m] < shortest) {
            shortest = t[m];
            fastest = m;
        }
        longest = used[m] && t[m] > longest ? t[m] : longest;
    }
    if (fastest < 0 || rest < -TINY || time < -TINY * total
        || time > rest * longest + TINY * total) {
        return -1;
    }
    rest = fmax(rest, 0);
    time = fmax(time, 0);
    if (time < rest * shortest) {
        p[fastest] += time / shortest;
        return rest - time / shortest;
    }
    if (rest > 0) {
        spread(n, used, t, rest, fmin(time / rest, longest), p);
    }
    return 0;
}

void
netmax_policy_mixing(const struct netmax_policy *policy, const bool present[],
                     netmax_matrix y)
{
    int n = policy->n, count = count_true(present, n);
    double ar = policy->ar;

    for (int i = 0; i < n; i++) {
        y[i][i] = 1;
        for (int m = 0; m < n; m++) {
            double here = policy->p[i][m], there = policy->p[m][i];

            if (m == i) {
                continue;
            }
            /* All steps take equally long: each is any peer's. */
            y[i][m] = here > 0 && there > 0
                      ? (2 * ar - ar * ar * (1 / here + 1 / there)) / count
                      : 0;
            y[i][i] -= y[i][m];
        }
    }
}

/* Makes a[p][q] of the symmetric 'a' zero. */
static void
rotate(netmax_matrix a, int n, int p, int q)
{
    double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
    double t = copysign(1, theta) / (fabs(theta) + sqrt(theta * theta + 1));
    double c = 1 / sqrt(t * t + 1), s = t * c;

    for (int k = 0; k < n; k++) {
        double x = a[k][p], z = a[k][q];

        a[k][p] = c * x - s * z;
        a[k][q] = s * x + c * z;
    }
    for (int k = 0; k < n; k++) {
        double x = a[p][k], z = a[q][k];

        a[p][k] = c * x - s * z;
        a[q][k] = s * x + c * z;
    }
}

double
netmax_policy_lambda2(int n, const bool present[], const netmax_matrix y)
{
    double second = -INFINITY;
    int k = count_true(present, n);
    netmax_matrix a;

    /* Moves the eigenvalue 1, the one of agreement, to -1. */
    for (int i = 0, row = 0; i < n; i++) {
        for (int m = 0, column = 0; present[i] && m < n; m++) {
            if (present[m]) {
                a[row][column++] = y[i][m] - 2.0 / k;
            }
        }
        row += present[i];
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double off = 0;

        for (int p = 0; p < k; p++) {
            for (int q = p + 1; q < k; q++) {
                off += a[p][q] * a[p][q];
                if (a[p][q]) {
                    rotate(a, k, p, q);
                }
            }
        }
        if (off < 1e-26) {
            break;
        }
    }
    for (int i = 0; i < k; i++) {
        second = fmax(second, a[i][i]);
    }
    return k > 1 ? second : 0;
}

static void
set_lambda2(struct netmax_policy *policy, const bool present[])
{
    netmax_matrix y;

    netmax_policy_mixing(policy, present, y);
    policy->lambda2 = netmax_policy_lambda2(policy->n, present, y);
}

void
netmax_policy_uniform(int n, const bool present[],
                      struct netmax_policy *policy)
{
    int count = count_true(present, n);

    memset(policy, 0, sizeof *policy);
    policy->n = n;
    for (int i = 0; i < n; i++) {
        for (int m = 0; m < n; m++) {
            policy->p[i][m] = count < 2 || !present[i] ? i == m
                              : i != m && present[m] ? 1.0 / (count - 1) : 0;
        }
    }
    policy->ar = count < 2 ? 0 : 0.5 / (count - 1);
    set_lambda2(policy, present);
}

/* The present peers with 'links', and the best policy so far. */
struct attempt {
    int n, count;
    const bool *present;
    const double (*times)[NETMAX_MAX_PEERS];
    const double *alone;
    netmax_matrix more;         /* 'times' less 'alone'. */
    netmax_links links;
    struct netmax_policy best;
    double score;               /* Of 'best'; INFINITY: no policy so far. */
};

/* Tries minimum probability 'least' and steps of 'total' seconds. */
static void
try_policy(struct attempt *a, double least, double total)
{
    struct netmax_policy policy = {
        .n = a->n, .ar = least / 2, .tbar = total / a->count,
    };
    double score;

    for (int i = 0; i < a->n; i++) {
        double alone = 1;

        if (a->present[i]) {
            alone = netmax_policy_row(a->n, a->links[i], a->more[i], least,
                                      total - a->alone[i], policy.p[i]);
        }
        if (alone < 0) {
            return;
        }
        policy.p[i][i] = alone;
    }
    set_lambda2(&policy, a->present);
    if (policy.lambda2 > 1 - MIN_GAP) {
        return;
    }
    score = policy.tbar / -log(fmax(policy.lambda2, 1e-9));
    if (score < a->score) {
        a->score = score;
        a->best = policy;
    }
}

/* Tries times of the range in which all rows have a solution. */
static void
try_times(struct attempt *a, double least)
{
    double low = 0, high = INFINITY;

    for (int i = 0; i < a->n; i++) {
        double sum = 0, longest = 0;

        for (int m = 0; m < a->n; m++) {
            if (a->links[i][m]) {
                sum += a->more[i][m];
                longest = fmax(longest, a->more[i][m]);
            }
        }
        if (a->present[i]) {
            double begin = a->alone[i] + least * sum;
            int n_links = count_true(a->links[i], a->n);

            low = fmax(low, begin);
            high = fmin(high, begin + (1 - least * n_links) * longest);
        }
    }
    for (int k = 0; k < N_TBAR && low <= high; k++) {
        try_policy(a, least, low + (high - low) * k / (N_TBAR - 1));
    }
}

static void
try_links(struct attempt *a)
{
    double least = 1;

    for (int i = 0; i < a->n; i++) {
        if (a->present[i]) {
            int n_links = count_true(a->links[i], a->n);

            if (!n_links) {
                return;
            }
            least = fmin(least, 1.0 / n_links);
        }
    }
    /* The greatest leaves no choice. */
    least *= 0.98;
    for (int k = 0; k < N_RHO; k++) {
        try_times(a, least);
        least *= RHO_RATIO;
    }
}

/* Leaves out the slowest link.  Returns false if there is no link. */
static bool
cut_slowest(struct attempt *a)
{
    double longest = 0;
    int from = -1, to = -1;

    for (int i = 0; i < a->n; i++) {
        for (int m = 0; m < i; m++) {
            double t = fmax(a->times[i][m], a->times[m][i]);

            if (a->links[i][m] && t > longest) {
                longest = t;
                from = i;
                to = m;
            }
        }
    }
    if (from < 0) {
        return false;
    }
    a->links[from][to] = a->links[to][from] = false;
    return true;
}

/* Stores the network of the present peers, with all links. */
static void
init_attempt(struct attempt *a, int n, const bool present[],
             const netmax_matrix times, const double alone[])
{
    *a = (struct attempt) {
        .n = n, .count = count_true(present, n), .present = present,
        .times = times, .alone = alone, .score = INFINITY,
    };
    for (int i = 0; i < n; i++) {
        for (int m = 0; m < n; m++) {
            a->links[i][m] = i != m && present[i] && present[m];
            a->more[i][m] = fmax(times[i][m] - alone[i], 0);
        }
    }
}

static bool
take_best(const struct attempt *a, struct netmax_policy *policy)
{
    if (isfinite(a->score)) {
        *policy = a->best;
    }
    return isfinite(a->score);
}

bool
netmax_policy_best(int n, const bool present[], const netmax_matrix times,
                   const double alone[], struct netmax_policy *policy)
{
    struct attempt a;

    init_attempt(&a, n, present, times, alone);
    for (int k = 0; k <= MAX_CUTS; k++) {
        try_links(&a);
        if (!cut_slowest(&a)) {
            break;
        }
    }
    return take_best(&a, policy);
}

/* Returns the greatest minimum probability that has a solution. */
static double
greatest_least(const struct attempt *a)
{
    double longest_row = 0, least_maximum = INFINITY;

    for (int i = 0; i < a->n; i++) {
        double sum = 0, longest = 0;

        for (int m = 0; m < a->n; m++) {
            sum += a->links[i][m] ? a->more[i][m] : 0;
            longest = fmax(longest, a->links[i][m] ? a->more[i][m] : 0);
        }
        longest_row = fmax(longest_row, sum);
        least_maximum = a->present[i] ? fmin(least_maximum, longest)
                                      : least_maximum;
    }
    return fmin(1.0 / (a->count - 1), least_maximum / longest_row);
}

bool
netmax_policy_published(int n, const bool present[],
                        const netmax_matrix times,
                        struct netmax_policy *policy)
{
    static const double nothing[NETMAX_MAX_PEERS];
    struct attempt a;

    init_attempt(&a, n, present, times, nothing);
    for (int k = 1; k <= N_PUBLISHED && a.count > 1; k++) {
        try_times(&a, greatest_least(&a) * k / N_PUBLISHED);
    }
    return take_best(&a, policy);
}
