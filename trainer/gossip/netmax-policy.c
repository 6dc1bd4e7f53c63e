/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/gossip/netmax-policy.h"

#include <math.h>
#include <string.h>

#define N_RHO 30                /* Minimum probabilities to try. */
#define RHO_RATIO 0.8           /* Each of them is this part of the last. */
#define N_TBAR 12               /* Mean times to try for each. */
#define MAX_CUTS 4              /* Links that may be left out. */
#define N_PUBLISHED 10          /* Minimum probabilities to try, as
                                 * published. */
#define MIN_GAP 1e-6            /* Of 1 - lambda2. */
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
 * of the times, without the peers for which it is negative.  Those stay
 * negative if others of them are left out first, so that all are left out at
 * once. */
static void
spread(int n, const bool used[], const double t[], double rest, double mean,
       double p[])
{
    double q[SYNC_MAX_PEERS];
    bool in[SYNC_MAX_PEERS];

    memcpy(in, used, n * sizeof *in);
    for (;;) {
        double sum = 0, squares = 0, slope;
        int count = count_true(in, n);
        bool is_done = true;

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
            if (q[m] < -TINY) {
                in[m] = false;
                is_done = false;
            }
        }
        if (is_done) {
            for (int m = 0; m < n; m++) {
                p[m] += fmax(q[m], 0);
            }
            return;
        }
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

/* LAPACK, which OpenBLAS includes: stores the eigenvalues of the symmetric
 * matrix 'a' in 'values', the least first.  The last two arguments are the
 * lengths of the first two. */
void dsyev_(const char *job, const char *triangle, const int *n, double *a,
            const int *row_length, double *values, double *work,
            const int *work_size, int *error, size_t, size_t);

double
netmax_policy_lambda2(int n, const bool present[], const netmax_matrix y)
{
    const int row_length = SYNC_MAX_PEERS, work_size = 34 * SYNC_MAX_PEERS;
    double values[SYNC_MAX_PEERS], work[34 * SYNC_MAX_PEERS];
    int k = count_true(present, n), error;
    netmax_matrix a;

    if (k < 2) {
        return 0;
    }
    /* Moves the eigenvalue 1, the one of agreement, to -1. */
    for (int i = 0, row = 0; i < n; i++) {
        for (int m = 0, column = 0; present[i] && m < n; m++) {
            if (present[m]) {
                a[row][column++] = y[i][m] - 2.0 / k;
            }
        }
        row += present[i];
    }
    dsyev_("N", "U", &k, a[0], &row_length, values, work, &work_size, &error,
           1, 1);
    return error ? 1 : values[k - 1];
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
    const double (*times)[SYNC_MAX_PEERS];
    const double *alone;
    netmax_matrix more;         /* 'times' less 'alone'. */
    netmax_links links;
    struct netmax_policy best;
    double score;               /* Of 'best'; INFINITY: no policy so far. */
};

/* The measure of policies: seconds in which the disagreement shrinks by a
 * factor of e. */
static double
score_of(double tbar, double lambda2)
{
    return lambda2 > 1 - MIN_GAP ? INFINITY : tbar / -log(fmax(lambda2, 1e-9));
}

/* Returns the mean of the eigenvalues of E[W'W], without the one of agreement,
 * for the sum of 1 / p over all links: lambda2 is not less. */
static double
mean_eigenvalue(const struct attempt *a, double ar, int n_links,
                double inverses)
{
    return 1 - 2 * (ar * n_links - ar * ar * inverses)
               / (a->count * (a->count - 1.0));
}

/* Tries minimum probability 'least' and steps of 'total' seconds, on 'n_links'
 * links.  Most policies are rejected by the bound, without the eigenvalue. */
static void
try_policy(struct attempt *a, double least, double total, int n_links)
{
    struct netmax_policy policy = {
        .n = a->n, .ar = least / 2, .tbar = total / a->count,
    };
    double inverses = 0, score;

    for (int i = 0; i < a->n; i++) {
        double alone = 1;

        if (a->present[i]) {
            alone = netmax_policy_row(a->n, a->links[i], a->more[i], least,
                                      total - a->alone[i], policy.p[i]);
        }
        if (alone < 0) {
            return;
        }
        for (int m = 0; m < a->n; m++) {
            inverses += a->links[i][m] ? 1 / policy.p[i][m] : 0;
        }
        policy.p[i][i] = alone;
    }
    if (score_of(policy.tbar, mean_eigenvalue(a, policy.ar, n_links, inverses))
        >= a->score) {
        return;
    }
    set_lambda2(&policy, a->present);
    score = score_of(policy.tbar, policy.lambda2);
    if (score < a->score) {
        a->score = score;
        a->best = policy;
    }
}

/* Begins with even probabilities of all links. */
static void
try_even(struct attempt *a)
{
    struct netmax_policy *policy = &a->best;

    netmax_policy_uniform(a->n, a->present, policy);
    for (int i = 0; i < a->n; i++) {
        for (int m = 0; m < a->n && a->present[i]; m++) {
            policy->tbar += policy->p[i][m] * a->times[i][m];
        }
    }
    policy->tbar /= a->count * a->count;
    a->score = score_of(policy->tbar, policy->lambda2);
}

/* Tries times of the range in which all rows have a solution.  The sum of
 * 1 / p over d links of a peer is at least d squared, which bounds the
 * eigenvalue for all times. */
static void
try_times(struct attempt *a, double least)
{
    double low = 0, high = INFINITY, inverses = 0, bound;
    int n_links = 0;

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
            int degree = count_true(a->links[i], a->n);

            low = fmax(low, begin);
            high = fmin(high, begin + (1 - least * degree) * longest);
            n_links += degree;
            inverses += degree * degree;
        }
    }
    bound = mean_eigenvalue(a, least / 2, n_links, inverses);
    for (int k = 0; k < N_TBAR && low <= high; k++) {
        double total = low + (high - low) * k / (N_TBAR - 1);

        if (score_of(total / a->count, bound) < a->score) {
            try_policy(a, least, total, n_links);
        }
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
    if (a.count > 1) {
        try_even(&a);
    }
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
netmax_policy_published(int n, const bool present[], const netmax_matrix times,
                        struct netmax_policy *policy)
{
    static const double nothing[SYNC_MAX_PEERS];
    struct attempt a;

    init_attempt(&a, n, present, times, nothing);
    for (int k = 1; k <= N_PUBLISHED && a.count > 1; k++) {
        try_times(&a, greatest_least(&a) * k / N_PUBLISHED);
    }
    return take_best(&a, policy);
}
