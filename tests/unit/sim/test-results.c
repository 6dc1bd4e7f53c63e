/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>

#include "sim/rates/rates.h"
#include "sim/run/port-use.h"
#include "sim/run/results.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload.h"
#include "tests/unit/assert-near.h"

/* Cojob "a" of two rungs arrives at 0, "b" of one rung at 1; each has one job
 * that sends 1 byte a second over one link of 1 byte a second. */
static struct workload *
make_workload(void)
{
    struct workload *w = workload_create("stage", sim_fabric_create(2, 1));
    struct workload_cojob *cojob = workload_add_cojob(w, "a", 1, 0);

    workload_add_transfer(workload_add_job(cojob, "t0", 0), 0, 1, 1, 0, 0);
    workload_add_rung(w, cojob, 2, 1);
    workload_add_rung(w, cojob, 4, 1);
    cojob = workload_add_cojob(w, "b", 1, 1);
    workload_add_transfer(workload_add_job(cojob, "t0", 0), 0, 1, 1, 0, 0);
    workload_add_rung(w, cojob, 2, 1);
    return w;
}

static struct sim_stage stages[] = {
    { .cojob = 0, .rung = 0, .begin = 0, .end = 2, .isolated = 2 },
    { .cojob = 1, .rung = 0, .begin = 1, .end = 6, .isolated = 2 },
    { .cojob = 0, .rung = 1, .begin = 2, .end = 4, .isolated = 2 },
};
static struct sim_stage plain_stages[] = {
    { .cojob = 0, .rung = 0, .begin = 0, .end = 3, .isolated = 2 },
    { .cojob = 1, .rung = 0, .begin = 1, .end = 5, .isolated = 2 },
    { .cojob = 0, .rung = 1, .begin = 3, .end = 6, .isolated = 2 },
};
static struct sim_job jobs[] = {
    { .cojob = 0, .job = 0, .begin = 0, .end = 4, .early_end = 3 },
    { .cojob = 1, .job = 0, .begin = 1, .end = 6, .early_end = INFINITY },
};

UNIT_TEST(counts_stages_cojobs_and_jobs)
{
    struct workload *w = make_workload();
    struct sim_result r = {
        .n_stages = 3, .stages = stages, .n_jobs = 2, .jobs = jobs,
    };
    struct results results;

    results_compute(w, &r, NULL, &results);
    assert_int_equal(results.sct.n, 3);
    assert_near(results.sct.mean, 3);
    assert_near(results.sct.p50, 2);
    assert_near(results.sct.p95, 5);
    assert_int_equal(results.cct.n, 2);
    assert_near(results.cct.p50, 4);
    assert_near(results.cct.max, 5);
    assert_near(results.jct.mean, 4.5);
    assert_int_equal(results.early.n, 1);
    assert_near(results.early.mean, 3);
    assert_true(isnan(results.worst));
    workload_destroy(w);
}

/* The metric of the only trial is 0.5, 0.75, 0.875... after 1, 3, 7...
 * iterations, and it has two devices from 1 s on. */
UNIT_TEST(finds_when_a_search_is_near_its_best)
{
    struct workload *w = make_workload();
    struct sim_job job = { .iterations = 255, .begin = 1, .end = 6 };
    struct sim_best points[] = { { 2, 0.5 }, { 3, 0.985 }, { 4, 0.987 } };
    struct sim_bests bests[2] = { { .n = 3, .bests = points } };
    struct sim_result r = {
        .n_jobs = 1,
        .jobs = &job,
        .n_cojobs = 2,
        .bests = bests,
    };
    struct results results;

    w->cojobs[0].jobs[0].curve = (struct workload_curve){
        .final = 1, .span = 1, .exponent = 1, .every = 1
    };
    w->cojobs[0].jobs[0].devices = 2;
    results_compute(w, &r, NULL, &results);
    assert_int_equal(results.target.n, 1);
    assert_near(results.target.mean, 4);
    assert_near(results.device_s, 10);
    assert_near(results.device_s_to_target, 6);
    workload_destroy(w);
}

/* Slowdowns of 1, 2.5 and 1. */
UNIT_TEST(says_who_pays)
{
    struct workload *w = make_workload();
    struct sim_result r = { .n_stages = 3, .stages = stages };
    struct sim_result plain = { .n_stages = 3, .stages = plain_stages };
    struct results results;

    results_compute(w, &r, &plain, &results);
    assert_near(results.rho_max, 2.5);
    assert_near(results.jain, 4.5 * 4.5 / (3 * (1 + 6.25 + 1)));
    assert_near(results.worst, 5.0 / 4);
    results_compute(w, &plain, &plain, &results);
    assert_near(results.worst, 1);
    workload_destroy(w);
}

UNIT_TEST(knows_nothing_of_nobody)
{
    struct workload *w = make_workload();
    struct sim_result r = { .n_stages = 0 };
    struct results results;

    results_compute(w, &r, &r, &results);
    assert_int_equal(results.sct.n, 0);
    assert_true(isnan(results.sct.mean) && isnan(results.jct.p99));
    assert_true(isnan(results.jain) && isnan(results.rho_max));
    assert_true(isnan(results.worst));
    workload_destroy(w);
}

/* 1 s of 3 bytes a second, nothing for 1 s, then 998 s of 0.5. */
UNIT_TEST(keeps_bytes_in_slots)
{
    struct sim_flow flow = { .n_ports = 2, .ports = { 0, 3 }, .rate = 3 };
    struct port_use use;
    double sum = 0;

    port_use_init(&use, 4);
    port_use_add(&use, 1, &flow, 1);
    port_use_add(&use, 1, NULL, 0);
    flow.rate = 0.5;
    port_use_add(&use, 998, &flow, 1);
    assert_near(use.now, 1000);
    assert_true(use.width * PORT_USE_SLOTS >= 1000);
    assert_true(use.width * PORT_USE_SLOTS < 2000 + 1);
    for (int slot = 0; slot < PORT_USE_SLOTS; slot++) {
        sum += port_use_bytes(&use, slot, 3);
        assert_near(port_use_bytes(&use, slot, 0),
                    port_use_bytes(&use, slot, 3));
        assert_near(port_use_bytes(&use, slot, 1), 0);
    }
    assert_near(sum, 3 + 499);
    assert_near(port_use_bytes(&use, 1, 0), 0.5 * use.width);
    port_use_uninit(&use);
}
