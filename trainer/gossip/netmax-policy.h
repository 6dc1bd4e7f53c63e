/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NETMAX_POLICY_H
#define NETMAX_POLICY_H 1

/* Probabilities with which the peers of netmax pull from each other.
 *
 * A peer steps on its own samples and moves towards the model of another one.
 * A pull over a slow link costs time; pulling from the same few peers lets the
 * others drift apart.  NetMax (Zhou et al., 2021) pulls from peer m with
 * probability p_im and moves by
 *
 *    c_im = ar / p_im            ar: learning rate x penalty of disagreement
 *
 * so that the disagreement of the models shrinks by lambda2(E[W'W]) in a step,
 * for any probabilities.  For each 'ar' and mean time 'tbar' of a step the
 * best probabilities follow from
 *
 *    min sum_i p_ii   s.t.  sum_m p_im t_im = M tbar,  p_im >= 2 ar,
 *                           sum_m p_im = 1
 *
 * and of all those the least tbar / -ln(lambda2) is used.  lambda2 is at least
 * the mean of the eigenvalues, which the trace gives, so that an eigenvalue is
 * computed for a few of 1,800 policies only: a policy for 128 peers takes 10
 * to 50 ms.  Rows must have the same mean time, which leaves no solution with
 * even probabilities where some peers have more slow links than others; even
 * ones are tried too, with the mean of the rows' times as 'tbar'.
 *
 * The rows of the program are independent, and each has a closed form.  With
 * the minimum probabilities l = 2 ar, the probability R and the time S remain.
 * If S is less than R pulls from the fastest peer take, that peer gets
 * S / t_min, and the rest is for steps without a pull.  Otherwise every
 * division of R with mean time S / R is optimal; the most even one is used.
 *
 * A step without a pull takes the time of its gradient.  The program is solved
 * for times without that part, so that such a step is not taken to be free.
 *
 * A very slow link makes 'ar' small for all peers.  Policies are therefore
 * also made for the network without its slowest links, as long as it is
 * connected, and compared by the same measure.
 *
 * netmax_policy_published() is what the paper calls policy generation, for
 * comparisons.  It differs from netmax_policy_best():
 *
 *  - A step without a pull counts as no time, in the program as it is above.
 *  - All links are used: the slowest one limits 'ar' for all.
 *  - 'ar' and 'tbar' are tried at equal distances, in an outer and an inner
 *    loop.
 *
 * The public text gives no number of values to try; here they are 10, up to
 * the greatest 'ar' that has a solution, and 12.  Where the linear program has
 * several solutions, an LP solver returns any; here it is the most even one,
 * as above.
 *
 *    netmax_policy_uniform(n, present, &policy);       // Without times.
 *    ok = netmax_policy_best(n, present, times, alone, &policy);
 *    ...policy.p[i][m], policy.ar / policy.p[i][m]...
 *
 * Ownership: functions on plain data. */

#include <stdbool.h>

#include "trainer/schemes/sync.h"

typedef double netmax_matrix[SYNC_MAX_PEERS][SYNC_MAX_PEERS];

/* Links that are used: symmetric, with no link of a peer to itself. */
typedef bool netmax_links[SYNC_MAX_PEERS][SYNC_MAX_PEERS];

struct netmax_policy {
    int n;
    double ar;
    double tbar;                /* Seconds; 0 without times. */
    double lambda2;             /* 1: disagreement does not shrink. */
    netmax_matrix p;            /* p[i][i]: of a step without a pull. */
};

/* Makes the policy in which each present peer pulls from all others with the
 * same probability, and moves half of the way. */
void netmax_policy_uniform(int n, const bool present[],
                           struct netmax_policy *);

/* Makes the best policy.  'times[i][m]' are the seconds, more than 0, of a
 * step of i with a pull from m, and 'alone[i]', at most as many, of one
 * without.  Returns false, and leaves '*policy', if the models converge under
 * no policy. */
bool netmax_policy_best(int n, const bool present[], const netmax_matrix times,
                        const double alone[], struct netmax_policy *);

/* Likewise, by the published optimisation: 'times[i][m]' are the seconds of an
 * iteration of i with a pull from m. */
bool netmax_policy_published(int n, const bool present[],
                             const netmax_matrix times,
                             struct netmax_policy *);

/* Solves one row: a pull from peer m takes t[m] seconds and is allowed if
 * 'used[m]', each has at least probability 'least', and a step takes 'total'
 * seconds on average.  Stores the probabilities in 'p', and returns the one of
 * a step without a pull, or -1 if there is no solution. */
double netmax_policy_row(int n, const bool used[], const double t[],
                         double least, double total, double p[]);

/* mixing: stores E[W'W] of a policy; peers that are not present have the rows
 * of the unit matrix.  lambda2: returns its largest eigenvalue among the
 * present peers, except the one of agreement. */
void netmax_policy_mixing(const struct netmax_policy *, const bool present[],
                          netmax_matrix y);
double netmax_policy_lambda2(int n, const bool present[],
                             const netmax_matrix y);

#endif /* trainer/gossip/netmax-policy.h */
