/* SPDX-License-Identifier: Apache-2.0 */

/* The closed form of a row against the linear program that it solves, and what
 * the policy makes of networks. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glpk.h>
#include <math.h>
#include <string.h>

#include "trainer/gossip/netmax-policy.h"
#include "trainer/data/seeded.h"

#define N 8
#define N_INSTANCES 300
#define SLACK 1e-7              /* GLPK's tolerance. */

static const bool all[NETMAX_MAX_PEERS] = {
    true, true, true, true, true, true, true, true,
};

static const double nothing[NETMAX_MAX_PEERS];

static void
assert_near(double a, double b, double slack)
{
    if (!(fabs(a - b) <= slack)) {
        fail_msg("%.17g is not %.17g", a, b);
    }
}

/* min p_0 s.t. sum p_m t_m = total, p_m >= least, sum p = 1, where column 1 is
 * asking nobody.  -1 if there is no solution. */
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

static void
a_row_is_as_good_as_the_lp(void **state)
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

static void
mixing_is_symmetric_and_doubly_stochastic(void **state)
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
static void
lambda2_is_that_of_a_ring(void **state)
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

static void
equal_links_have_equal_probabilities(void **state)
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

static void
a_slow_link_is_rarely_used_and_delays_no_peer(void **state)
{
    static const double factors[] = { 3, 10, 30, 100 };

    for (int k = 0; k < 4; k++) {
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

/* However seldom slow links are asked, no step is shorter than its gradient;
 * and where all links take as long as that, all are asked. */
static void
a_step_without_a_pull_takes_time(void **state)
{
    double alone[NETMAX_MAX_PEERS];
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

static void
peers_that_are_gone_have_probability_0(void **state)
{
    bool present[NETMAX_MAX_PEERS];
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
static void
the_published_policy_avoids_a_slow_link(void **state)
{
    struct netmax_policy policy, ours;
    netmax_matrix t;

    (void) state;
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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_as_good_as_the_lp),
        cmocka_unit_test(mixing_is_symmetric_and_doubly_stochastic),
        cmocka_unit_test(lambda2_is_that_of_a_ring),
        cmocka_unit_test(equal_links_have_equal_probabilities),
        cmocka_unit_test(a_slow_link_is_rarely_used_and_delays_no_peer),
        cmocka_unit_test(a_step_without_a_pull_takes_time),
        cmocka_unit_test(peers_that_are_gone_have_probability_0),
        cmocka_unit_test(the_published_policy_avoids_a_slow_link),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
