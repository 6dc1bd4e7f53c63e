/* SPDX-License-Identifier: Apache-2.0 */

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fabric/fabric.h"
#include "sim/rates/rates.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload.h"
#include "tests/unit/unit-test.h"

#define CAPACITY 10

static void
assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-6 * fmax(1, fmax(fabs(a), fabs(b))))) {
        fail_msg("%.17g is not %.17g", a, b);
    }
}

static struct workload_job *
add_coflow(struct workload *w, double weight, double arrival)
{
    struct workload_cojob *cojob = workload_add_cojob(w, "c", weight,
                                                      arrival);
    struct workload_job *job = workload_add_job(cojob, "j", 0);

    workload_add_rung(w, cojob, 1, 1);
    return job;
}

static void
run_stage(const struct workload *w,
          void (*observe)(void *, double, const struct sim_flow *, size_t),
          struct sim_result *result)
{
    struct sim_options options = {
        .order = ORDER_OPTIONS_INIT(ORDER_STAGE),
        .service = SIM_SERVICE_EXACT, .observe = observe,
        .aux = (void *) w,
    };

    options.order.n_levels = INT_MAX;
    simulate(w, &options, result);
}

static double
end_of(const struct sim_result *r, size_t cojob)
{
    for (size_t i = 0; i < r->n_stages; i++) {
        if (r->stages[i].cojob == cojob) {
            return r->stages[i].end;
        }
    }
    fail();
    return 0;
}

/* The rates of the first step, by the port where a flow leaves. */
static double first_rates[2 * 5];

static void
keep_first_rates(void *w, double seconds, const struct sim_flow *flows,
                 size_t n)
{
    if (seconds > 0 && !first_rates[2 * 5 - 1]) {
        for (size_t i = 0; i < n; i++) {
            first_rates[flows[i].ports[1]] += flows[i].rate;
        }
        first_rates[2 * 5 - 1] = 1;
    }
}

/* Two flows of one unit share the port that they leave from in proportion, so
 * that both end with it, at (60 + 30) / 10.  What they leave of the other ends
 * is for the next units, both of which would delay the first. */
static void
lets_the_flows_of_a_unit_end_together(void **state)
{
    struct workload *w = workload_create("coflow",
                                         sim_fabric_create(5, CAPACITY));
    struct workload_job *job = add_coflow(w, 100, 0);
    struct sim_result r;

    workload_add_transfer(job, 0, 1, 60, 0, 0);
    workload_add_transfer(job, 0, 2, 30, 0, 0);
    workload_add_transfer(add_coflow(w, 1, 0), 3, 1, 40, 0, 0);
    memset(first_rates, 0, sizeof first_rates);
    run_stage(w, keep_first_rates, &r);
    assert_near(first_rates[2 * 1 + 1], 10);    /* 6.7 and what they leave. */
    assert_near(first_rates[2 * 2 + 1], 10 / 3.0);
    assert_near(end_of(&r, 0), 9);
    assert_near(end_of(&r, 1), 10);
    sim_result_uninit(&r);
    workload_destroy(w);
}

/* A flow that shares no port with its unit's busiest one does not wait for
 * it: it goes at the whole rate, and the next unit after it. */
static void
holds_back_nothing_that_could_go(void **state)
{
    struct workload *w = workload_create("coflow",
                                         sim_fabric_create(5, CAPACITY));
    struct workload_job *job = add_coflow(w, 100, 0);
    struct sim_result r;

    workload_add_transfer(job, 0, 2, 100, 0, 0);
    workload_add_transfer(job, 1, 3, 50, 0, 0);
    workload_add_transfer(add_coflow(w, 1, 0), 1, 0, 60, 0, 0);
    memset(first_rates, 0, sizeof first_rates);
    run_stage(w, keep_first_rates, &r);
    assert_near(first_rates[2 * 2 + 1], 10);
    assert_near(first_rates[2 * 3 + 1], 10);
    assert_near(first_rates[2 * 0 + 1], 0);
    assert_near(end_of(&r, 0), 10);
    assert_near(end_of(&r, 1), 11);
    sim_result_uninit(&r);
    workload_destroy(w);
}

/* Adds up what each port carries at the moment: never more than it can. */
static void
check_capacity(void *w_, double seconds, const struct sim_flow *flows,
               size_t n)
{
    const struct workload *w = w_;
    double *used = test_calloc(w->fabric->n_ports, sizeof *used);

    for (size_t i = 0; i < n; i++) {
        assert_true(flows[i].rate > 0);
        for (int k = 0; k < flows[i].n_ports; k++) {
            used[flows[i].ports[k]] += flows[i].rate;
        }
    }
    for (int p = 0; p < w->fabric->n_ports; p++) {
        assert_true(used[p] <= w->fabric->capacity[p] * (1 + 1e-6));
    }
    test_free(used);
}

static int
next_random(uint64_t *state, int n)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (*state >> 33) % n;
}

/* Coflows of very different sizes: ports are never overfull, and all of the
 * bytes arrive. */
static void
moves_everything_within_capacity(void **state)
{
    uint64_t seed = 1;

    for (int round = 0; round < 30; round++) {
        struct workload *w = workload_create("coflow",
                                             sim_fabric_create(6, CAPACITY));
        struct sim_result r;
        double bytes = 0, carried = 0;

        for (int i = 0; i < 12; i++) {
            struct workload_job *job = add_coflow(w, 1, next_random(&seed, 9));

            for (int j = next_random(&seed, 20); j >= 0; j--) {
                double b = pow(10, next_random(&seed, 7) - 2);

                workload_add_transfer(job, next_random(&seed, 6),
                                      next_random(&seed, 6), b, 0, 0);
                bytes += b;
            }
        }
        run_stage(w, check_capacity, &r);
        for (int p = 0; p < r.n_ports; p += 2) {
            carried += r.port_bytes[p];
        }
        assert_near(carried, bytes);
        assert_true(r.mean >= r.bound * (1 - 1e-6));
        sim_result_uninit(&r);
        workload_destroy(w);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lets_the_flows_of_a_unit_end_together),
        cmocka_unit_test(holds_back_nothing_that_could_go),
        cmocka_unit_test(moves_everything_within_capacity),
    };

    return cmocka_run_group_tests_name("rates-fill", tests, NULL, NULL);
}
