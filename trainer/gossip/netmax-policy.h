/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NETMAX_POLICY_H
#define NETMAX_POLICY_H 1

/* Whom peers ask for their weights, and how often.
 *
 *
 * Motivation
 * ==========
 *
 * Peers that train without a server step on their own samples and move towards
 * what another one has.  Asking over a slow link costs time, asking the same
 * few peers lets the others drift away.  NetMax (Zhou et al., 2021) asks peer
 * m with probability p_im and moves by
 *
 *    c_im = ar / p_im            ar: learning rate x penalty of disagreement
 *
 * so that the models' disagreement shrinks by lambda2(E[W'W]) a step, however
 * the probabilities are.  For each 'ar' and mean time 'tbar' of a step of
 * anybody the best probabilities follow from
 *
 *    min sum_i p_ii   s.t.  sum_m p_im t_im = M tbar,  p_im >= 2 ar,
 *                           sum_m p_im = 1
 *
 * and among those the least tbar / -ln(lambda2) wins.
 *
 * The program falls apart into its rows, and a row has a closed form: its
 * least probabilities l = 2 ar leave the probability R and the time S to be
 * given away.  If S is less than R of the fastest peer takes, that one gets
 * S / t_min and the rest is for asking nobody.  Otherwise every division of R
 * whose mean time is S / R is optimal, and the most even one is taken.
 *
 * A step that asks nobody takes as long as its gradient.  That is the same
 * program for times without it, so that asking nobody is not thought to be
 * free.
 *
 * A link that is very slow makes 'ar' small for all.  So policies are also
 * made for the network without its slowest links, as long as it hangs
 * together, and compared by the same measure.
 *
 *
 * Usage
 * =====
 *
 *    netmax_policy_uniform(n, present, &policy);       // Nothing known yet.
 *    ok = netmax_policy_best(n, present, times, alone, &policy);
 *    ...policy.p[i][m], policy.ar / policy.p[i][m]...
 *
 * Ownership: plain functions on plain data. */

#include <stdbool.h>

#define NETMAX_MAX_PEERS 32

typedef double netmax_matrix[NETMAX_MAX_PEERS][NETMAX_MAX_PEERS];

/* Which links are used; symmetric, nobody has one to itself. */
typedef bool netmax_links[NETMAX_MAX_PEERS][NETMAX_MAX_PEERS];

struct netmax_policy {
    int n;
    double ar;
    double tbar;                /* Seconds; 0 if times were not known. */
    double lambda2;             /* 1: disagreement does not shrink. */
    netmax_matrix p;            /* p[i][i]: of asking nobody. */
};

/* All links of peers that are there alike, with which the two ends of an
 * exchange meet in the middle. */
void netmax_policy_uniform(int n, const bool present[],
                           struct netmax_policy *);

/* 'times' are positive seconds of a step of i that asks m, 'alone', at most as
 * many, of one that asks nobody.  False, and '*policy' is as it was, if no
 * policy makes all agree. */
bool netmax_policy_best(int n, const bool present[],
                        const netmax_matrix times, const double alone[],
                        struct netmax_policy *);

/* One row: 'n' peers of which 'used' may be asked in 't' seconds, 'least'
 * probability for each, 'total' seconds a step on average.
 * Stores the probabilities in 'p' and returns that of asking nobody, or -1 if
 * there is no such row. */
double netmax_policy_row(int n, const bool used[], const double t[],
                         double least, double total, double p[]);

/* E[W'W] of a policy for those 'present', others' rows being those of the
 * unit matrix; and the largest eigenvalue of that of those present, but for
 * the one of agreement. */
void netmax_policy_mixing(const struct netmax_policy *, const bool present[],
                          netmax_matrix y);
double netmax_policy_lambda2(int n, const bool present[],
                             const netmax_matrix y);

#endif /* trainer/gossip/netmax-policy.h */
