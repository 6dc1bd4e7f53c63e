/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdint.h>

#include "order/fluid/fluid.h"
#include "order/fluid/prices.h"
#include "tests/unit/unit-test.h"

#define WORK 1e9
#define MAX_PORTS 4

/* A search of one rung with one job.  Its iterations take a second of each
 * port of 'ports', a bit each, and 'computing' seconds more. */
static void
add_one(struct fluid *f, double begin, unsigned int ports, double iterations,
        double computing)
{
    fluid_add_search(f, 1, begin);
    fluid_add_rung(f, 1);
    fluid_add_job(f, iterations, 1 + computing);
    for (int p = 0; p < MAX_PORTS; p++) {
        if (ports & 1u << p) {
            fluid_add_demand(f, p, 1);
        }
    }
}

/* Checks the optimum of the fluid form.  The strict form is 'loss' less at
 * most: iterations that ends of others cut. */
static void
check_optimum(struct fluid *f, double optimum, double loss)
{
    struct fluid_bound b = fluid_bound(f, WORK);

    assert_int_equal(b.kind, ORDER_BOUND_FLUID);
    assert_float_equal(b.fluid, optimum, 1e-5 * optimum);
    assert_true(b.strict <= optimum * (1 + 1e-9));
    assert_true(b.strict >= optimum - loss - 1e-5);
    fluid_destroy(f);
}

/* Searches of one rung with one job each, see add_one(). */
static const struct {
    const char *name;
    struct {
        double begin;
        unsigned int ports;
        double iterations, computing;
        double weight; /* 0 is 1. */
    } searches[3];
    double optimum, loss;
} cases[] = {
    { "the shorter search goes first at a port",
      { { 0, 1, 10, 0 }, { 0, 1, 5, 0 } },
      5 + 15,
      1 },
    { "jobs that compute overlap: the port is left to the other one",
      { { 0, 1, 10, 1 }, { 0, 1, 10, 1 } },
      20 + 20,
      1 },
    { "a job has one rate at all ports: one that needs both waits for two "
      "that need one each; each port by itself could serve it first",
      { { 0, 3, 10, 0 }, { 0, 1, 10, 0 }, { 0, 2, 10, 0 } },
      10 + 10 + 20,
      2 },
    { "any two of three share a port, so they are served in turns",
      { { 0, 3, 10, 0 }, { 0, 6, 10, 0 }, { 0, 5, 10, 0 } },
      10 + 20 + 30,
      30 },
    { "of a begin on, the shortest remaining time goes first",
      { { 3, 1, 10, 0 }, { 7, 1, 2, 0 }, { 20, 1, 1, 0 } },
      12 + 2 + 1,
      2 },
    { "weights decide which of two equal searches goes first",
      { { 0, 1, 10, 0 }, { 0, 1, 10, 0, 1000 } },
      20 + 1000 * 10,
      20 },
};

UNIT_TEST(the_optimum_of_few_searches_is_found)
{
    for (size_t c = 0; c < N_ELEMENTS(cases); c++) {
        struct fluid *f = fluid_create(MAX_PORTS);

        print_message("%s\n", cases[c].name);
        for (size_t s = 0; s < 3 && cases[c].searches[s].ports; s++) {
            add_one(f, cases[c].searches[s].begin, cases[c].searches[s].ports,
                    cases[c].searches[s].iterations,
                    cases[c].searches[s].computing);
            if (cases[c].searches[s].weight > 0) {
                f->searches[s].weight = cases[c].searches[s].weight;
            }
        }
        check_optimum(f, cases[c].optimum, cases[c].loss);
    }
}

UNIT_TEST(rungs_follow_each_other)
{
    struct fluid *f = fluid_create(2);

    add_one(f, 0, 1, 10, 0);
    fluid_add_rung(f, 1);
    fluid_add_job(f, 10, 1);
    fluid_add_demand(f, 1, 1);
    add_one(f, 0, 2, 12, 0);
    check_optimum(f, 12 + 22, 3);
}

/* Any of three jobs may take part: the cheapest two count, and each of them
 * does all of its iterations. */
UNIT_TEST(the_cheapest_jobs_count_if_it_is_unknown_which)
{
    struct fluid *f = fluid_create(1);
    const double seconds[] = { 3, 1, 2 };

    fluid_add_search(f, 1, 0);
    fluid_add_rung(f, 2);
    for (size_t i = 0; i < N_ELEMENTS(seconds); i++) {
        fluid_add_job(f, 10, 4);
        fluid_add_demand(f, 0, seconds[i]);
    }
    check_optimum(f, 40, 0);

    /* With a port as the limit. */
    f = fluid_create(1);
    fluid_add_search(f, 1, 0);
    fluid_add_rung(f, 1);
    for (size_t i = 0; i < N_ELEMENTS(seconds); i++) {
        fluid_add_job(f, 10, 0);
        fluid_add_demand(f, 0, seconds[i]);
    }
    check_optimum(f, 10, 0);
}

static uint64_t random_state;

static double
draw(double low, double high)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return low + (random_state >> 11) * 0x1p-53 * (high - low);
}

/* Three searches of two rungs at 'n_ports' ports; some begin later. */
static struct fluid *
draw_searches(bool later)
{
    struct fluid *f = fluid_create(MAX_PORTS);

    for (int s = 0; s < 3; s++) {
        fluid_add_search(f, draw(0.5, 2), later ? draw(-10, 20) : 0);
        for (int r = 0; r < 2; r++) {
            int n_jobs = draw(1, 4);

            fluid_add_rung(f, draw(1, n_jobs + 1));
            for (int j = 0; j < n_jobs; j++) {
                fluid_add_job(f, floor(draw(20, 60)), draw(0, 1));
                fluid_add_demand(f, draw(0, MAX_PORTS), draw(0.1, 1));
                fluid_add_demand(f, draw(0, MAX_PORTS), draw(0.1, 1));
            }
        }
    }
    return f;
}

/* Prices and the rates for all orders bound the same, and the rates are the
 * best. */
UNIT_TEST(prices_come_near_the_optimum)
{
    double sum = 0;

    random_state = 1;
    for (int i = 0; i < 20; i++) {
        struct fluid *f = draw_searches(i % 2);
        struct fluid_bound b = fluid_bound(f, INFINITY);
        double prices = 0;

        assert_int_equal(b.kind, ORDER_BOUND_FLUID);
        assert_true(b.strict <= b.fluid);
        assert_true(prices_bound(f, WORK, &prices));
        assert_true(prices <= b.fluid * (1 + 1e-6));
        sum += prices / b.fluid / 20;
        fluid_destroy(f);
    }
    print_message("prices: %.4f of the optimum in the mean\n", sum);
    assert_true(sum > 0.8);
}

/* Twenty searches have too many orders.  At one port prices are exact, but for
 * the grid of times. */
UNIT_TEST(many_searches_have_prices)
{
    struct fluid *f = fluid_create(1);
    struct fluid_bound b;
    double optimum = 0;

    for (int i = 20; i > 0; i--) {
        add_one(f, 0, 1, 10 * i, 0);
        optimum += 10 * i * (21 - i);
    }
    b = fluid_bound(f, WORK);
    assert_int_equal(b.kind, ORDER_BOUND_PRICES);
    assert_true(b.fluid <= optimum && b.fluid > 0.98 * optimum);
    assert_true(b.strict == b.fluid);

    /* Without time for that, only how long each search takes is known. */
    b = fluid_bound(f, 1000);
    assert_int_equal(b.kind, ORDER_BOUND_ISOLATED);
    assert_float_equal(b.strict, 10 * 20 * 21 / 2, 1e-3);
    fluid_destroy(f);

    f = fluid_create(0);
    b = fluid_bound(f, WORK);
    assert_true(b.fluid == 0 && b.strict == 0);
    fluid_destroy(f);
}
