/* SPDX-License-Identifier: Apache-2.0 */

/* The bounds of the order against the linear program with the dual that they
 * solve: completion times that satisfy Queyranne's inequality for every set of
 * stages on every port; and the solver of covering programs against another
 * one. */

#include <stdint.h>

#include <glpk.h>
#include <math.h>
#include <stdbool.h>

#include "order/fluid/cover.h"
#include "order/order.h"
#include "order/primal-dual/ascent.h"
#include "order/primal-dual/primal-dual.h"
#include "tests/unit/order/order-instance.h"
#include "tests/unit/unit-test.h"

#define SLACK 1e-6              /* GLPK's tolerance, relative. */

/* Adds the inequality of 'port' and the set of stages 'set', one bit each.
 * With 'releases' the port stands still until the first of them. */
static void
add_inequality(glp_prob *lp, const struct order_problem *op, int port,
               unsigned int set, bool releases)
{
    int columns[1 + INSTANCE_MAX_STAGES];
    double seconds[1 + INSTANCE_MAX_STAGES];
    double sum = 0, squares = 0, first = INFINITY;
    int n = 0, row;

    for (size_t s = 0; s < op->n_stages; s++) {
        double d = set & (1u << s) ? instance_demand(&op->stages[s], port) : 0;

        if (d > 0) {
            n++;
            columns[n] = s + 1;
            seconds[n] = d;
            sum += d;
            squares += d * d;
            first = fmin(first, op->stages[s].release);
        }
    }
    if (n) {
        row = glp_add_rows(lp, 1);
        glp_set_row_bnds(lp, row, GLP_LO, (sum * sum + squares) / 2
                         + (releases ? first * sum : 0), 0);
        glp_set_mat_row(lp, row, n, columns, seconds);
    }
}

static double
solve_lp(const struct order_problem *op, bool releases)
{
    glp_prob *lp = glp_create_prob();
    glp_smcp parameters;
    double value;

    glp_set_obj_dir(lp, GLP_MIN);
    glp_add_cols(lp, op->n_stages);
    for (size_t s = 0; s < op->n_stages; s++) {
        glp_set_obj_coef(lp, s + 1, op->stages[s].weight);
        glp_set_col_bnds(lp, s + 1, GLP_LO,
                         order_stage_earliest_end(&op->stages[s]), 0);
    }
    for (int p = 0; p < op->n_ports; p++) {
        for (unsigned int set = 1; set < 1u << op->n_stages; set++) {
            add_inequality(lp, op, p, set, releases);
        }
    }
    glp_init_smcp(&parameters);
    parameters.msg_lev = GLP_MSG_OFF;
    assert_int_equal(glp_simplex(lp, &parameters), 0);
    assert_int_equal(glp_get_status(lp), GLP_OPT);
    value = glp_get_obj_val(lp);
    glp_delete_prob(lp);
    return value;
}

static void
assert_at_most(double a, double b)
{
    if (!(a <= b + SLACK * (1 + b))) {
        fail_msg("%.17g is not at most %.17g", a, b);
    }
}

UNIT_TEST(dual_is_at_most_the_lp_is_at_most_the_optimum)
{
    static const struct instance_shape shapes[] = {
        { 6, 4, false, false, false },
        { 6, 4, true, false, true },
        { 6, 3, true, true, false },
        { 5, 3, false, true, true },
    };
    static const double kappas[] = { 0, 0.1, 0.25, 0.5, 1, 2, 4 };
    uint64_t seed = 11;

    for (int i = 0; i < 30 * N_ELEMENTS(shapes); i++) {
        struct order_problem *op
            = instance_create(&seed, &shapes[i % N_ELEMENTS(shapes)]);
        double optimum = instance_optimum(op);
        double lp = solve_lp(op, false);

        assert_at_most(lp, optimum);
        for (size_t j = 0; j < N_ELEMENTS(kappas); j++) {
            int order[INSTANCE_MAX_STAGES];

            assert_at_most(permute(op, kappas[j], order), lp);
        }
        assert_at_most(certificate_bound(op, NULL), optimum);
        order_problem_destroy(op);
    }
}

/* On one port with everybody there, the dual, the program and the best order
 * all have the same value. */
UNIT_TEST(dual_is_the_lp_on_one_port)
{
    const struct instance_shape shape = { 6, 1, true, false, false };
    uint64_t seed = 12;

    for (int i = 0; i < 50; i++) {
        struct order_problem *op = instance_create(&seed, &shape);
        int order[INSTANCE_MAX_STAGES];
        double dual = permute(op, 0, order);
        double lp = solve_lp(op, false);

        assert_at_most(lp, dual);
        assert_at_most(dual, lp);
        assert_at_most(instance_optimum(op), dual);
        order_problem_destroy(op);
    }
}

/* Every split of the weights is a bound, and the best of a thousand is within
 * two per cent of the program's optimum. */
UNIT_TEST(ascent_reaches_the_lp)
{
    static const struct instance_shape shapes[] = {
        { 6, 4, false, false, false },
        { 6, 4, true, false, true },
        { 6, 3, true, true, false },
        { 5, 3, false, true, true },
    };
    uint64_t seed = 13;

    for (int i = 0; i < 20 * N_ELEMENTS(shapes); i++) {
        struct order_problem *op
            = instance_create(&seed, &shapes[i % N_ELEMENTS(shapes)]);
        double lp = solve_lp(op, true);
        double bound = ascent_bound(op, 1000);

        assert_at_most(lp, instance_optimum(op));
        assert_at_most(bound, lp);
        assert_at_most(0.98 * lp, bound);
        order_problem_destroy(op);
    }
}

/* A covering program as those of fluid.h: some costs are 0, and some
 * coefficients negative. */
UNIT_TEST(cover_reaches_the_optimum)
{
    uint64_t seed = 14;
    struct cover c = { 0 };

    for (int i = 0; i < 200; i++) {
        int n = 1 + instance_random(&seed) % 12;
        int n_rows = 1 + instance_random(&seed) % 15;
        glp_prob *lp = glp_create_prob();
        glp_smcp parameters;
        int columns[13];

        cover_begin(&c, n);
        glp_add_cols(lp, n);
        for (int v = 0; v < n; v++) {
            columns[v + 1] = v + 1;
            c.cost[v] = v % 3 ? instance_uniform(&seed) : 0;
            c.most[v] = v % 3 ? INFINITY : 1e3;
            glp_set_obj_coef(lp, v + 1, c.cost[v]);
            glp_set_col_bnds(lp, v + 1, GLP_DB, 0, 1e3);
        }
        for (int r = 0; r < n_rows; r++) {
            double values[13];
            double *row;
            double need = instance_uniform(&seed) - 0.2;

            row = cover_add_row(&c, need);
            for (int v = 0; v < n; v++) {
                row[v] = instance_uniform(&seed) - (v ? 0.5 : 0);
                values[v + 1] = row[v];
            }
            glp_add_rows(lp, 1);
            glp_set_row_bnds(lp, r + 1, GLP_LO, need, 0);
            glp_set_mat_row(lp, r + 1, n, columns, values);
        }
        glp_init_smcp(&parameters);
        parameters.msg_lev = GLP_MSG_OFF;
        assert_int_equal(glp_simplex(lp, &parameters), 0);
        if (glp_get_status(lp) == GLP_OPT) {
            double optimum = glp_get_obj_val(lp);

            assert_at_most(fabs(cover_solve(&c, INFINITY) - optimum), 1e-5);
        }
        glp_delete_prob(lp);
    }
    cover_uninit(&c);
}

int
unit_test_tear_down(void **state)
{
    glp_free_env();
    return 0;
}
