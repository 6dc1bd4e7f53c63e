/* SPDX-License-Identifier: Apache-2.0 */

/* The bound of searches against what the simulator makes of them where service
 * is exact. */

#include <limits.h>
#include <math.h>

#include "sim/run/simulate.h"
#include "sim/workload/workload-bound.h"
#include "sim/workload/workload-generate.h"
#include "sim/workload/workload.h"
#include "tests/unit/unit-test.h"

#define N_SEEDS 20

static double
mean_under(const struct workload *w, enum order_kind kind)
{
    struct sim_options options = {
        .order = ORDER_OPTIONS_INIT(kind),
        .service = SIM_SERVICE_EXACT,
    };
    struct sim_result result;

    options.order.n_levels = INT_MAX;
    simulate(w, &options, &result);
    sim_result_uninit(&result);
    return result.mean;
}

/* The strict form holds for each schedule, and only a search for it comes near
 * to it.  The fluid form may be above, but not with many iterations, as
 * here. */
UNIT_TEST(no_order_is_below_the_bound)
{
    static const enum order_kind kinds[] = { ORDER_FAIR, ORDER_STAGE,
                                             ORDER_WORK, ORDER_TCF,
                                             ORDER_SEBF, ORDER_FIFO };
    double worst = INFINITY, sum = 0;

    for (int seed = 1; seed <= N_SEEDS; seed++) {
        struct generate_options options;
        struct workload_bound b, unknown;
        struct workload *w;
        double best = INFINITY;

        generate_options_draw(&options, seed);
        options.n_hosts = 6;
        options.n_cojobs = 3;
        options.n_rungs = 2;
        options.n_jobs = 1 + seed % 4;
        w = workload_generate(&options);
        b = workload_bound(w, 1, true);
        unknown = workload_bound(w, 1, false);
        for (size_t i = 0; i < N_ELEMENTS(kinds); i++) {
            best = fmin(best, mean_under(w, kinds[i]));
        }
        assert_int_equal(b.kind, ORDER_BOUND_FLUID);
        assert_true(unknown.mean <= b.mean * (1 + 1e-6));
        assert_true(b.strict <= b.mean);
        assert_true(b.mean <= best * (1 + 1e-6));
        worst = fmin(worst, best / b.mean);
        sum += best / b.mean;
        workload_destroy(w);
    }
    print_message("best of the orders / bound: %.3f in the mean, %.3f least\n",
                  sum / N_SEEDS, worst);
    assert_true(sum / N_SEEDS < 1.3);
}

/* Headers take their part of ports, and what does not iterate has no such
 * bound. */
UNIT_TEST(bounds_what_iterates)
{
    struct workload *w = workload_create("stage", sim_fabric_create(2, 100));
    struct workload_cojob *cojob = workload_add_cojob(w, "a", 1, 5);
    struct workload_job *job = workload_add_job(cojob, "j", 1);
    struct workload_bound b;

    workload_add_transfer(job, 0, 1, 100, 0, 0);
    workload_add_rung(w, cojob, 1, 1);
    b = workload_bound(w, 1, true);
    assert_int_equal(b.kind, ORDER_BOUND_NONE);
    assert_true(b.mean == 0);
    workload_add_rung(w, cojob, 10, 1);
    b = workload_bound(w, 0.5, true);
    assert_int_equal(b.kind, ORDER_BOUND_FLUID);
    assert_float_equal(b.mean, 10 * 3 / 2, 1e-4);
    workload_destroy(w);
}
