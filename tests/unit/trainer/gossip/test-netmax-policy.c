/* SPDX-License-Identifier: Apache-2.0 */

/* The closed form of a row against the linear program that it solves, and what
 * the policy makes of networks. */

#include <glpk.h>
#include <math.h>
#include <string.h>

#include "tests/unit/unit-test.h"
#include "trainer/data/seeded.h"
#include "trainer/gossip/netmax-policy.h"

#define N 8
#define N_INSTANCES 300
#define SLACK 1e-7              /* GLPK's tolerance. */

static const bool all[SYNC_MAX_PEERS] = {
    true, true, true, true, true, true, true, true,
};

static const double nothing[SYNC_MAX_PEERS];

static void
assert_near(double a, double b, double slack)
{
    if (!(fabs(a - b) <= slack)) {
        fail_msg("%.17g is not %.17g", a, b);
    }
}

/* min p_0 s.t. sum p_m t_m = total, p_m >= least, sum p = 1, where column 1 is
 * a step without a request.  -1 if there is no solution. */
static double
solve_lp(const double t[], double least, double total)
{
    glp_prob *lp = glp_create_prob();
    int columns[N + 2];
    double ones[N + 2], times[N + 2];
    glp_smcp parameters;
    double value;

    glp_set_obj_dir(lp, GLP_MIN);
    glp_add_cols(lp, N + 1);
    for (int c = 1; c <= N + 1; c++) {
        columns[c] = c;
        ones[c] = 1;
        times[c] = c == 1 ? 0 : t[c - 2];
        glp_set_col_bnds(lp, c, GLP_LO, c == 1 ? 0 : least, 0);
    }
    glp_set_obj_coef(lp, 1, 1);
    glp_add_rows(lp, 2);
    glp_set_mat_row(lp, 1, N + 1, columns, ones);
    glp_set_row_bnds(lp, 1, GLP_FX, 1, 1);
    glp_set_mat_row(lp, 2, N + 1, columns, times);
    glp_set_row_bnds(lp, 2, GLP_FX, total, total);
    glp_init_smcp(&parameters);
    parameters.msg_lev = GLP_MSG_OFF;
    parameters.presolve = GLP_ON;
    value = glp_simplex(lp, &parameters) || glp_get_status(lp) != GLP_OPT
            ? -1 : glp_get_obj_val(lp);
    glp_delete_prob(lp);
    return value;
}

UNIT_TEST(a_row_is_as_good_as_the_lp)
{
    int n_solved = 0, n_alone = 0, n_none = 0;
    struct seeded random;

    seeded_init(&random, 7, 0);
    for (int k = 0; k < N_INSTANCES; k++) {
        double t[N], p[N], least = seeded_uniform(&random) / N, alone;
        double total = exp(3 * seeded_uniform(&random) - 1), sum, time;

        for (int m = 0; m < N; m++) {
            t[m] = exp(4 * seeded_uniform(&random) - 1);
        }
        alone = netmax_policy_row(N, all, t, least, total, p);
        assert_near(alone, solve_lp(t, least, total), SLACK);
        if (alone < 0) {
            n_none++;
            continue;
        }
        sum = alone;
        time = 0;
        for (int m = 0; m < N; m++) {
            assert_true(p[m] >= least - SLACK);
            sum += p[m];
            time += p[m] * t[m];
        }
        assert_near(sum, 1, SLACK);
        assert_near(time, total, SLACK * total);
        n_solved++;
        n_alone += alone > SLACK;
    }
    /* All three cases are among the instances. */
    assert_true(n_none > 10 && n_alone > 10 && n_solved - n_alone > 10);
}

static void
fill_times(netmax_matrix t, double value)
{
    for (int i = 0; i < N; i++) {
        for (int m = 0; m < N; m++) {
            t[i][m] = value;
        }
    }
}

UNIT_TEST(mixing_is_symmetric_and_doubly_stochastic)
{
    struct netmax_policy policy;
    netmax_matrix t, y;
    struct seeded random;

    seeded_init(&random, 3, 0);
    for (int k = 0; k < 20; k++) {
        for (int i = 0; i < N; i++) {
            for (int m = 0; m <= i; m++) {
                t[i][m] = t[m][i] = 1 + 5 * seeded_uniform(&random);
            }
        }
        assert_true(netmax_policy_best(N, all, t, nothing, &policy));
        netmax_policy_mixing(&policy, all, y);
        for (int i = 0; i < N; i++) {
            double sum = 0;

            for (int m = 0; m < N; m++) {
                assert_near(y[i][m], y[m][i], 1e-15);
                assert_true(y[i][m] >= -1e-15);
                sum += y[i][m];
            }
            assert_near(sum, 1, 1e-12);
        }
        assert_true(policy.lambda2 < 1 && policy.lambda2 > 0);
    }
}

/* The circulant matrix of a ring has known eigenvalues. */
UNIT_TEST(lambda2_is_that_of_a_ring)
{
    netmax_matrix y;

    memset(y, 0, sizeof y);
    for (int i = 0; i < N; i++) {
        y[i][i] = 0.5;
        y[i][(i + 1) % N] = y[(i + 1) % N][i] = 0.25;
    }
    assert_near(netmax_policy_lambda2(N, all, y), 0.5 + 0.5 * cos(M_PI / 4),
                1e-12);
}

UNIT_TEST(equal_links_have_equal_probabilities)
{
    struct netmax_policy policy;
    netmax_matrix t;

    fill_times(t, 0.05);
    assert_true(netmax_policy_best(N, all, t, nothing, &policy));
    for (int i = 0; i < N; i++) {
        for (int m = 0; m < N; m++) {
            assert_near(policy.p[i][m], i == m ? 0 : 1.0 / 7, 0.02);
        }
    }
    /* The two ends meet nearly in the middle. */
    assert_true(policy.ar / policy.p[0][1] > 0.4);
}

UNIT_TEST(a_slow_link_is_rarely_used_and_delays_no_peer)
{
    static const double factors[] = { 10, 30, 100 };

    for (int k = 0; k < 3; k++) {
        struct netmax_policy policy;
        netmax_matrix t;
        double step = 0;

        fill_times(t, 1);
        t[2][5] = t[5][2] = factors[k];
        assert_true(netmax_policy_best(N, all, t, nothing, &policy));
        for (int m = 0; m < N; m++) {
            step += m == 2 ? 0 : policy.p[2][m] * t[2][m];
        }
        assert_true(policy.p[2][5] < 0.1 && policy.p[5][2] < 0.1);
        assert_true(step < 1.3);
        assert_true(policy.lambda2 < 0.98);
    }
}

/* Three hosts with fast links inside: rows with the same mean time would rule
 * even probabilities out. */
UNIT_TEST(hosts_with_slow_links_have_no_worse_policy_than_an_even_one)
{
    static const int host_of[N] = { 0, 0, 0, 1, 1, 1, 2, 2 };
    static const double between[] = { 0.042, 0.105, 0.4 };
    double alone[SYNC_MAX_PEERS];

    for (int k = 0; k < 3; k++) {
        struct netmax_policy policy, even;
        double tbar = 0;
        netmax_matrix t;

        netmax_policy_uniform(N, all, &even);
        for (int i = 0; i < N; i++) {
            alone[i] = 0.038;
            for (int m = 0; m < N; m++) {
                t[i][m] = host_of[i] == host_of[m] ? 0.038 : between[k];
                tbar += even.p[i][m] * t[i][m] / N / N;
            }
        }
        assert_true(netmax_policy_best(N, all, t, alone, &policy));
        assert_true(policy.tbar / -log(policy.lambda2)
                    <= tbar / -log(even.lambda2) * (1 + 1e-9));
    }
}

/* However seldom slow links are asked, no step is shorter than its gradient;
 * and where all links take as long as that, all are asked. */
UNIT_TEST(a_step_without_a_pull_takes_time)
{
    double alone[SYNC_MAX_PEERS];
    struct netmax_policy policy;
    netmax_matrix t;

    fill_times(t, 1);
    for (int m = 0; m < N; m++) {
        alone[m] = 1;
    }
    assert_true(netmax_policy_best(N, all, t, alone, &policy));
    for (int i = 0; i < N; i++) {
        assert_near(policy.p[i][i], 0, 1e-9);
    }
    for (int m = 0; m < N; m++) {
        t[1][m] = t[m][1] = 10;
        alone[m] = 0.9;
    }
    assert_true(netmax_policy_best(N, all, t, alone, &policy));
    assert_true(policy.tbar > 0.9 / N);
}

UNIT_TEST(peers_that_are_gone_have_probability_0)
{
    bool present[SYNC_MAX_PEERS];
    struct netmax_policy policy;
    netmax_matrix t;

    memcpy(present, all, sizeof present);
    present[3] = false;
    fill_times(t, 1);
    netmax_policy_uniform(N, present, &policy);
    assert_near(policy.p[0][1], 1.0 / 6, 1e-12);
    assert_true(policy.lambda2 < 1);
    assert_true(netmax_policy_best(N, present, t, nothing,
                                   &policy));
    for (int i = 0; i < N; i++) {
        assert_true(i == 3 || !policy.p[i][3]);
    }
    assert_near(policy.p[3][3], 1, 0);
}

/* The published optimisation keeps its own rules, finds the slow link, and is
 * not better than ours by our measure. */
UNIT_TEST(the_published_policy_avoids_a_slow_link)
{
    struct netmax_policy policy, ours;
    netmax_matrix t;

    fill_times(t, 1);
    t[2][5] = t[5][2] = 20;
    assert_true(netmax_policy_published(N, all, t, &policy));
    assert_true(policy.lambda2 < 1 && policy.ar > 0);
    for (int i = 0; i < N; i++) {
        double sum = 0, time = 0;

        for (int m = 0; m < N; m++) {
            sum += policy.p[i][m];
            time += i == m ? 0 : policy.p[i][m] * t[i][m];
            assert_true(i == m || policy.p[i][m] >= 2 * policy.ar - 1e-9);
        }
        assert_near(sum, 1, 1e-9);
        assert_near(time, N * policy.tbar, 1e-6);
    }
    assert_true(policy.p[2][5] < 0.1 && policy.p[5][2] < 0.1);
    assert_true(netmax_policy_best(N, all, t, nothing, &ours));
    assert_true(ours.tbar / -log(ours.lambda2)
                <= policy.tbar / -log(policy.lambda2) * 1.05);
}

/* A network of n peers with links that differ: all of them, or one of them a
 * lot. */
static void
make_network(int n, bool one, bool present[], double alone[], netmax_matrix t)
{
    struct seeded random;

    seeded_init(&random, 1, one ? 5 : 3);
    for (int i = 0; i < n; i++) {
        present[i] = true;
        alone[i] = 0.3;
        for (int m = 0; m <= i; m++) {
            double u = seeded_uniform(&random);

            t[i][m] = t[m][i] = !one           ? 1 + 5 * u
                                : i == 1 && !m ? 100
                                               : 1 + u / 10;
        }
    }
}

/* The figures were computed without the bound.  Where all links differ, even
 * probabilities are best. */
UNIT_TEST(the_bound_rejects_no_better_policy)
{
    static const struct {
        int n;
        bool one, published;
        double ar, tbar, lambda2, sum;
    } best[] = {
        { 8, false, false, 0.0714285714286, 0.434827276221, 0.928571428571,
          13.1428571429 },
        { 8, false, true, 0.0571428571429, 0.40844964556, 0.940359964084,
          13.0419125901 },
        { 8, true, false, 0.056, 0.111599835477, 0.956399933244,
          13.5475686256 },
        { 8, true, true, 0.00450181569101, 0.130313222056, 0.993738712188,
          16.7382303995 },
        { 16, false, false, 0.0333333333333, 0.217284312, 0.966666666667,
          25.0666666667 },
        { 16, false, true, 0.0266666666667, 0.202050469419, 0.97198602608,
          28.1378773054 },
        { 16, true, false, 0.0261333333333, 0.0562601907282, 0.976720236986,
          31.5099514102 },
        { 16, true, true, 0.00425328863662, 0.0657057405148, 0.994029327236,
          27.9919910561 },
        { 32, false, false, 0.0161290322581, 0.108416018401, 0.983870967742,
          49.0322580645 },
        { 32, false, true, 0.0129032258065, 0.0969223422882, 0.986533532769,
          62.1544593883 },
        { 32, true, false, 0.0126451612903, 0.0279655427638, 0.988032848434,
          95.8826209407 },
        { 32, true, true, 0.00372698220544, 0.0326251079431, 0.994924495769,
          52.8755110554 },
    };

    for (size_t k = 0; k < sizeof best / sizeof best[0]; k++) {
        bool present[SYNC_MAX_PEERS];
        double alone[SYNC_MAX_PEERS], sum = 0;
        struct netmax_policy policy;
        netmax_matrix t;
        int n = best[k].n;

        make_network(n, best[k].one, present, alone, t);
        assert_true(best[k].published
                    ? netmax_policy_published(n, present, t, &policy)
                    : netmax_policy_best(n, present, t, alone, &policy));
        for (int i = 0; i < n; i++) {
            for (int m = 0; m < n; m++) {
                sum += pow(policy.p[i][m], 2) * (1 + i + 2 * m);
            }
        }
        assert_near(policy.ar, best[k].ar, 1e-12);
        assert_near(policy.tbar, best[k].tbar, 1e-11);
        assert_near(policy.lambda2, best[k].lambda2, 1e-11);
        assert_near(sum, best[k].sum, 1e-8 * sum);
    }
}

UNIT_TEST(the_largest_job_has_a_policy)
{
    bool present[SYNC_MAX_PEERS];
    double alone[SYNC_MAX_PEERS];
    struct netmax_policy policy;
    netmax_matrix t, y;

    make_network(SYNC_MAX_PEERS, true, present, alone, t);
    assert_true(netmax_policy_best(SYNC_MAX_PEERS, present, t, alone,
                                   &policy));
    netmax_policy_mixing(&policy, present, y);
    for (int i = 0; i < SYNC_MAX_PEERS; i++) {
        double sum = 0, slow = 0;

        for (int m = 0; m < SYNC_MAX_PEERS; m++) {
            sum += y[i][m];
            slow += i != m && t[i][m] > 2 ? policy.p[i][m] : 0;
        }
        assert_near(sum, 1, 1e-12);
        assert_true(slow < 0.05);
    }
    assert_near(policy.lambda2,
                netmax_policy_lambda2(SYNC_MAX_PEERS, present, y), 1e-12);
    assert_true(policy.lambda2 < 0.999);
}
