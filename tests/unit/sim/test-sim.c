/* SPDX-License-Identifier: Apache-2.0 */

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "sim/fabric/fabric.h"
#include "sim/rates/rates.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload-coflow.h"
#include "sim/workload/workload.h"
#include "tests/unit/assert-near.h"

#define TRACE "../shared/data/coflow/FB2010-1Hr-150-0.txt"
#define MAX_PORTS 64

/* Next of a fixed sequence of numbers from 0 to 'n' - 1. */
static int
next_random(uint64_t *state, int n)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (*state >> 33) % n;
}

/* A coflow of one flow. */
static void
add_flow(struct workload *w, double arrival, int src, int dst, double bytes)
{
    struct workload_cojob *cojob = workload_add_cojob(w, "c", 1, arrival);

    workload_add_transfer(workload_add_job(cojob, "j", 0), src, dst, bytes,
                          0, 0);
    workload_add_rung(w, cojob, 1, 1);
}

static struct sim_result r; /* Of the last run. */

static void
run(const struct workload *w, const struct sim_options *options)
{
    sim_result_uninit(&r);
    simulate(w, options, &r);
    assert_int_equal(r.n_stages, w->n_stages);
}

static void
run_order(const struct workload *w, enum order_kind order, int n_levels)
{
    struct sim_options options = { .order = ORDER_OPTIONS_INIT(order) };

    options.order.n_levels = n_levels;
    run(w, &options);
}

/* When the 'rung' of 'cojob' ended. */
static double
end_of(size_t cojob, size_t rung)
{
    for (size_t i = 0; i < r.n_stages; i++) {
        if (r.stages[i].cojob == cojob && r.stages[i].rung == rung) {
            return r.stages[i].end;
        }
    }
    fail_msg("cojob %zu has no rung %zu", cojob, rung);
    return 0;
}

UNIT_TEST(shares_or_orders_two_equal_flows)
{
    struct workload *w = workload_create("coflow", sim_fabric_create(3, 10));

    add_flow(w, 0, 0, 2, 50);
    add_flow(w, 0, 1, 2, 50);

    run_order(w, ORDER_PLAIN, 2);
    assert_near(end_of(0, 0), 10);
    assert_near(end_of(1, 0), 10);
    assert_near(r.mean, 10);

    run_order(w, ORDER_STAGE, 2);
    assert_near(end_of(0, 0), 5);
    assert_near(end_of(1, 0), 10);
    assert_near(r.mean, 7.5);
    assert_near(r.p50, 5);
    assert_near(r.p95, 10);
    assert_near(r.max, 10);
    assert_near(r.bound, 7.5);
    assert_near(r.gap, 1);
    assert_int_equal(r.decisions, 2);
    workload_destroy(w);
}

/* A job with three flows and one with a single flow share an uplink, with and
 * without two flows of others that leave the single flow a third of its
 * downlink. */
UNIT_TEST(jobs_take_turns_whatever_their_flows)
{
    for (int others = 0; others < 2; others++) {
        struct workload *w =
            workload_create("stage", sim_fabric_create(7, 12));
        struct workload_cojob *cojob = workload_add_cojob(w, "c", 1, 0);
        struct workload_job *job = workload_add_job(cojob, "j", 0);

        for (int i = 1; i <= 3; i++) {
            workload_add_transfer(job, 0, i, 48, 0, 0);
        }
        workload_add_rung(w, cojob, 1, 1);
        add_flow(w, 0, 0, 4, 48);
        for (int i = 0; others && i < 2; i++) {
            add_flow(w, 0, 5 + i, 4, 480);
        }
        run_order(w, ORDER_PLAIN, 2);
        assert_near(end_of(1, 0), 16);
        run_order(w, ORDER_FAIR, 2);
        assert_near(end_of(0, 0), others ? 18 : 16);
        assert_near(end_of(1, 0), others ? 12 : 8);
        workload_destroy(w);
    }
}

/* Two jobs that compute for a second and send for a second keep their distance
 * in the plain network and drift apart by MLTCP. */
UNIT_TEST(mltcp_lets_jobs_drift_apart)
{
    struct workload *w = workload_create("stage", sim_fabric_create(2, 100));

    for (int i = 0; i < 2; i++) {
        struct workload_cojob *cojob = workload_add_cojob(w, "c", 1, 0.1 * i);

        workload_add_transfer(workload_add_job(cojob, "j", 1), 0, 1, 100, 0,
                              0);
        workload_add_rung(w, cojob, 40, 1);
    }
    run_order(w, ORDER_PLAIN, 2);
    assert_true(r.mean > 110);
    run_order(w, ORDER_MLTCP, 2);
    assert_true(r.mean < 90);
    workload_destroy(w);
}

/* The second is small, arrives at 2 s and goes first. */
UNIT_TEST(lets_a_smaller_arrival_go_first)
{
    struct workload *w = workload_create("coflow", sim_fabric_create(2, 10));

    add_flow(w, 0, 0, 1, 100);
    add_flow(w, 2, 0, 1, 20);

    run_order(w, ORDER_STAGE, 2);
    assert_near(end_of(0, 0), 12);
    assert_near(end_of(1, 0), 4);

    run_order(w, ORDER_PLAIN, 2);
    assert_near(end_of(1, 0), 6);
    assert_near(end_of(0, 0), 12);

    /* With one level there is no order. */
    run_order(w, ORDER_STAGE, 1);
    assert_near(end_of(1, 0), 6);

    /* Both at 0: the small one for 2 s, then the other. */
    workload_make_offline(w);
    run_order(w, ORDER_STAGE, 2);
    assert_near(end_of(1, 0), 2);
    assert_near(end_of(0, 0), 12);
    workload_destroy(w);
}

/* A weight of 9 outweighs five times the size. */
UNIT_TEST(serves_the_heavier_weight_first)
{
    struct workload *w = workload_create("coflow", sim_fabric_create(2, 10));

    add_flow(w, 0, 0, 1, 100);
    add_flow(w, 0, 0, 1, 20);
    w->cojobs[0].weight = 9;
    run_order(w, ORDER_STAGE, 2);
    assert_near(end_of(0, 0), 10);
    assert_near(end_of(1, 0), 12);
    workload_destroy(w);
}

/* As above but for the age: at 2 s the weight of the first is 5 or more, and
 * 5 / 8 s is more than 1 / 2 s. */
static void
check_aging(double aging_s, double aging_slowdown)
{
    struct workload *w = workload_create("coflow", sim_fabric_create(2, 10));
    struct sim_options options = {
        .order = ORDER_OPTIONS_INIT(ORDER_STAGE),
        .aging_s = aging_s,
        .aging_slowdown = aging_slowdown,
    };

    options.order.n_levels = 2;
    add_flow(w, 0, 0, 1, 100);
    add_flow(w, 2, 0, 1, 20);
    run(w, &options);
    assert_near(end_of(0, 0), 10);
    assert_near(end_of(1, 0), 12);
    workload_destroy(w);
}

UNIT_TEST(lets_an_aged_stage_go_first)
{
    check_aging(0.5, 0);
    check_aging(0, 0.05);
}

/* Adds a job of one worker on 'worker', one server on 'server'. */
static void
add_pair(struct workload_cojob *cojob, int worker, int server,
         double compute, double bytes)
{
    struct workload_job *job = workload_add_job(cojob, "t", compute);

    workload_add_transfer(job, worker, server, bytes, 0, 0);
    workload_add_transfer(job, server, worker, bytes, 0, 1);
}

/* Two searches of one job, two iterations of 1 s compute, 1 s push, 1 s pull.
 * In lockstep each exchange takes twice as long.  In order the second one
 * waits once for the push, and from then on computes while the first one
 * sends. */
UNIT_TEST(overlaps_computing_and_sending)
{
    struct workload *w = workload_create("stage", sim_fabric_create(2, 100));

    for (int i = 0; i < 2; i++) {
        struct workload_cojob *cojob = workload_add_cojob(w, "c", 1, 0);

        add_pair(cojob, 0, 1, 1, 100);
        workload_add_rung(w, cojob, 2, 1);
    }

    run_order(w, ORDER_PLAIN, 6);
    assert_near(end_of(0, 0), 10);
    assert_near(end_of(1, 0), 10);

    run_order(w, ORDER_STAGE, 6);
    assert_near(end_of(0, 0), 6);
    assert_near(end_of(1, 0), 7);
    workload_destroy(w);
}

/* A search that is on its way meets a coflow that is a bit longer than what
 * remains of its pushes, or a bit shorter than the pull that it has not begun;
 * what it had in all, and what flows now, is otherwise. */
UNIT_TEST(orders_by_what_remains)
{
    static const struct {
        int64_t iterations;
        double push, pull, meet;
        int src, dst;
        double bytes, search_end, coflow_end;
    } cases[] = {
        { 10, 100, 0, 9.5, 0, 1, 60, 10, 10.6 },
        { 10, 100, 0, 8.5, 0, 1, 160, 10, 11.6 },
        { 1, 1, 100, 0.005, 1, 0, 80, 1.805, 0.805 },
    };

    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct workload *w = workload_create("stage",
                                             sim_fabric_create(2, 100));
        struct workload_cojob *cojob = workload_add_cojob(w, "c", 1, 0);
        struct workload_job *job = workload_add_job(cojob, "t", 0);

        workload_add_transfer(job, 0, 1, cases[i].push, 0, 0);
        workload_add_transfer(job, 1, 0, cases[i].pull, 0, 1);
        workload_add_rung(w, cojob, cases[i].iterations, 1);
        add_flow(w, cases[i].meet, cases[i].src, cases[i].dst,
                 cases[i].bytes);
        run_order(w, ORDER_WORK, 6);
        assert_near(end_of(0, 0), cases[i].search_end);
        assert_near(end_of(1, 0), cases[i].coflow_end);
        workload_destroy(w);
    }
}

/* Adds a search of one job with iterations that send 'bytes' from host 0 to
 * host 1; 'later' is the end of a second rung, 0 for none. */
static void
add_search(struct workload *w, double bytes, int64_t iterations,
           int64_t later)
{
    struct workload_cojob *cojob = workload_add_cojob(w, "c", 1, 0);

    workload_add_transfer(workload_add_job(cojob, "t", 0), 0, 1, bytes, 0, 0);
    workload_add_rung(w, cojob, iterations, 1);
    if (later) {
        workload_add_rung(w, cojob, later, 1);
    }
}

/* Two searches share a link of 100 bytes/s: ten iterations of 1 s, and two of
 * 1.5 s.  The second needs less, unless it has a long rung to come.  While an
 * order is late both share the link. */
UNIT_TEST(orders_iterations_by_what_their_search_needs)
{
    static const struct {
        int64_t later;
        double late_s;
        bool present_only;
        double first_end, second_end;
    } cases[] = {
        { 0, 0, false, 13, 3 },
        { 0, 0, true, 13, 3 },
        { 100, 0, false, 10, 13 },
        { 0, 0.5, false, 13, 3.25 },
    };

    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct workload *w = workload_create("stage",
                                             sim_fabric_create(2, 100));
        struct sim_options options = {
            .order = ORDER_OPTIONS_INIT(ORDER_STAGE),
            .late_s = cases[i].late_s,
            .present_only = cases[i].present_only,
        };

        add_search(w, 100, 10, 0);
        add_search(w, 150, 2, cases[i].later);
        run(w, &options);
        assert_near(end_of(0, 0), cases[i].first_end);
        assert_near(end_of(1, 0), cases[i].second_end);
        workload_destroy(w);
    }
}

/* Without a limit of levels, orders that share inside levels use few. */
UNIT_TEST(shares_without_a_limit_of_levels)
{
    static const enum order_kind kinds[] = { ORDER_DCLAS, ORDER_LAS };

    for (size_t i = 0; i < N_ELEMENTS(kinds); i++) {
        struct workload *w = workload_create("stage",
                                             sim_fabric_create(2, 100));
        struct sim_options options = {
            .order = ORDER_OPTIONS_INIT(kinds[i]),
            .service = SIM_SERVICE_EXACT,
        };

        options.order.n_levels = INT_MAX;
        add_search(w, 100, 2, 0);
        run(w, &options);
        assert_near(end_of(0, 0), 2);
        workload_destroy(w);
    }
}

/* Rung 0: jobs on links of their own with 3 s and 5 s an iteration, so that
 * the rung ends at 10 s; rung 1: the first job alone, two more iterations. */
UNIT_TEST(ends_a_rung_with_its_slowest_job)
{
    struct workload *w = workload_create("stage", sim_fabric_create(4, 100));
    struct workload_cojob *cojob = workload_add_cojob(w, "c", 1, 4);

    add_pair(cojob, 0, 1, 1, 100);
    add_pair(cojob, 2, 3, 3, 100);
    workload_add_rung(w, cojob, 2, 2);
    workload_add_rung(w, cojob, 4, 1);
    run_order(w, ORDER_STAGE, 6);
    assert_near(end_of(0, 0), 14);
    assert_near(r.stages[1].begin, 14);
    assert_near(end_of(0, 1), 20);
    assert_near(r.mean, 8);
    assert_near(r.bound, 8);
    workload_destroy(w);
}

/* Two workers, two servers, 100 bytes each way and shard: server 2's shard
 * gets both pushes by its port in 2 s, and so does server 3's; each worker
 * sends both of its by one port, also in 2 s; pulls alike. */
UNIT_TEST(exchanges_shards_side_by_side)
{
    struct workload *w = workload_create("stage", sim_fabric_create(4, 100));
    struct workload_cojob *cojob = workload_add_cojob(w, "c", 1, 0);
    struct workload_job *job = workload_add_job(cojob, "t", 0.5);

    for (int i = 0; i < 4; i++) {
        workload_add_transfer(job, i / 2, 2 + i % 2, 100, i % 2, 0);
        workload_add_transfer(job, 2 + i % 2, i / 2, 100, i % 2, 1);
    }
    workload_add_rung(w, cojob, 3, 1);
    assert_near(workload_exchange_time(job, w->fabric), 4);
    run_order(w, ORDER_PLAIN, 6);
    assert_near(end_of(0, 0), 3 * 4.5);
    workload_destroy(w);
}

UNIT_TEST(ends_what_has_nothing_to_do)
{
    struct workload *w = workload_create("stage", sim_fabric_create(1, 100));
    struct workload_cojob *cojob = workload_add_cojob(w, "c", 1, 7);

    workload_add_job(cojob, "t", 0);
    workload_add_rung(w, cojob, INT64_MAX, 1);
    workload_add_cojob(w, "none", 1, 0);
    run_order(w, ORDER_STAGE, 6);
    assert_near(end_of(0, 0), 7);
    assert_near(r.mean, 0);
    assert_near(r.gap, 1);
    workload_destroy(w);
}

/* The exact service of the order "stage" fills: see test-rates.c. */
UNIT_TEST(fills_what_the_first_stage_leaves)
{
    struct workload *w = workload_create("coflow", sim_fabric_create(4, 10));
    struct sim_options options = { .order = ORDER_OPTIONS_INIT(ORDER_STAGE),
                                   .service = SIM_SERVICE_EXACT };
    struct workload_cojob *cojob = workload_add_cojob(w, "c", 100, 0);
    struct workload_job *job = workload_add_job(cojob, "j", 0);

    options.order.n_levels = INT_MAX;
    workload_add_transfer(job, 0, 1, 60, 0, 0);
    workload_add_transfer(job, 0, 2, 30, 0, 0);
    workload_add_rung(w, cojob, 1, 1);
    add_flow(w, 0, 3, 1, 40);
    run(w, &options);
    assert_near(end_of(0, 0), 9);
    assert_near(end_of(1, 0), 10);
    workload_destroy(w);
}

/* What went through each port. */
struct meter {
    const struct sim_fabric *fabric;
    double bytes[MAX_PORTS];
};

static void
measure(void *meter_, double seconds, const struct sim_flow *flows, size_t n)
{
    struct meter *m = meter_;
    double rate[MAX_PORTS] = { 0 };

    assert_true(seconds >= 0);
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < flows[i].n_ports; k++) {
            rate[flows[i].ports[k]] += flows[i].rate;
        }
    }
    for (int p = 0; p < m->fabric->n_ports; p++) {
        assert_true(rate[p] <= m->fabric->capacity[p] * (1 + 1e-9));
        m->bytes[p] += rate[p] * seconds;
    }
}

static void
add_random_cojob(struct workload *w, uint64_t *seed, double *bytes)
{
    int n_hosts = w->fabric->n_hosts;
    struct workload_cojob *cojob = workload_add_cojob(
        w, "c", 1, next_random(seed, 20));
    int n_jobs = 1 + next_random(seed, 3);
    int n_iterations = 1 + next_random(seed, 3);

    for (int j = 0; j < n_jobs; j++) {
        struct workload_job *job = workload_add_job(
            cojob, "t", next_random(seed, 3));
        int n_transfers = next_random(seed, 8);

        for (int i = 0; i < n_transfers; i++) {
            int src = next_random(seed, n_hosts);
            int dst = next_random(seed, n_hosts);
            double size = next_random(seed, 2)
                              ? next_random(seed, 1000)
                              : pow(10, next_random(seed, 7) - 2);

            workload_add_transfer(job, src, dst, size, next_random(seed, 3),
                                  next_random(seed, 3));
            bytes[2 * src] += size * n_iterations * (j ? 1 : 2);
            bytes[2 * dst + 1] += size * n_iterations * (j ? 1 : 2);
        }
    }
    workload_add_rung(w, cojob, n_iterations, n_jobs);
    workload_add_rung(w, cojob, 2 * n_iterations, 1);
}

UNIT_TEST(delivers_every_byte_and_overloads_no_port)
{
    uint64_t seed = 1;

    for (int round = 0; round < 60; round++) {
        struct workload *w = workload_create("stage",
                                             sim_fabric_create(5, 100));
        double bytes[MAX_PORTS] = { 0 };

        for (int i = 0; i < 8; i++) {
            add_random_cojob(w, &seed, bytes);
        }
        for (int order = 0; order_names[order]; order++) {
            struct meter meter = { .fabric = w->fabric };
            struct sim_options options = {
                .order = ORDER_OPTIONS_INIT(order),
                .aging_s = round,
                .service = round % 2 ? SIM_SERVICE_EXACT : SIM_SERVICE_LEVELS,
                .observe = measure,
                .aux = &meter,
            };

            options.order.n_levels = 1 + round % 6;
            run(w, &options);
            for (int p = 0; p < w->fabric->n_ports; p++) {
                assert_true(fabs(meter.bytes[p] - bytes[p])
                            <= 1e-6 * (1 + bytes[p]));
                assert_near(r.port_bytes[p], bytes[p]);
            }
            assert_true(r.bound > 0);
            assert_true(r.mean >= r.bound * (1 - 1e-9));
            assert_true(r.p50 <= r.p95 && r.p95 <= r.p99 && r.p99 <= r.max);
        }
        workload_destroy(w);
    }
}

/* A search of two jobs: what is placed are its jobs, and one ends before the
 * other, whether the search is ordered or they are; or each of the four
 * exchanges as it begins, and what is left when one ends while the other goes
 * on. */
UNIT_TEST(decides_when_units_begin_and_end)
{
    static const struct {
        enum order_kind order;
        size_t decisions;
    } cases[] = {
        { ORDER_PLAIN, 0 }, { ORDER_STAGE, 2 },   { ORDER_INTENSITY, 2 },
        { ORDER_TCF, 5 },   { ORDER_GROUPER, 1 },
    };
    struct workload *w = workload_create("stage", sim_fabric_create(4, 100));
    struct workload_cojob *cojob = workload_add_cojob(w, "c", 1, 0);

    workload_add_transfer(workload_add_job(cojob, "a", 1), 0, 1, 100, 0, 0);
    workload_add_transfer(workload_add_job(cojob, "b", 2.25), 2, 3, 100, 0,
                          0);
    workload_add_rung(w, cojob, 2, 2);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        run_order(w, cases[i].order, 6);
        assert_int_equal(r.decisions, cases[i].decisions);
        assert_near(end_of(0, 0), 6.5);
    }
    workload_destroy(w);
}

/* The jobs of the first search, 100 and 300 bytes, share the link; the second
 * search has it after them. */
UNIT_TEST(jobs_of_a_whole_stage_share)
{
    struct workload *w = workload_create("stage", sim_fabric_create(2, 100));
    struct workload_cojob *cojob = workload_add_cojob(w, "c", 1, 0);

    workload_add_transfer(workload_add_job(cojob, "a", 0), 0, 1, 100, 0, 0);
    workload_add_transfer(workload_add_job(cojob, "b", 0), 0, 1, 300, 0, 0);
    workload_add_rung(w, cojob, 1, 2);
    add_search(w, 250, 2, 0);
    run_order(w, ORDER_GROUPER, INT_MAX);
    assert_near(r.jobs[0].end, 2);
    assert_near(r.jobs[1].end, 4);
    assert_near(r.jobs[2].end, 9);
    assert_int_equal(r.decisions, 2);
    workload_destroy(w);
}

/* An order that is late sees no exchanges, as a controller.  Of these jobs,
 * one iteration of the second has fewer bytes, but the first has fewer left in
 * its exchange when the second's begins.  Coflows without lateness keep the
 * first before the second until its exchange ends; the controller's order has
 * the second first at once. */
UNIT_TEST(late_orders_see_no_exchanges)
{
    struct workload *w = workload_create("stage", sim_fabric_create(2, 100));
    struct workload_cojob *cojob = workload_add_cojob(w, "c", 1, 0);
    struct sim_options options = {
        .order = ORDER_OPTIONS_INIT(ORDER_TCF),
        .late_s = 0.01,
    };

    workload_add_transfer(workload_add_job(cojob, "a", 1), 0, 1, 300, 0, 0);
    workload_add_transfer(workload_add_job(cojob, "b", 3), 0, 1, 200, 0, 0);
    workload_add_rung(w, cojob, 2, 2);
    run(w, &options);
    assert_near(r.jobs[1].end, 10);
    assert_int_equal(r.decisions, 12);
    options.late_s = 0;
    run(w, &options);
    assert_near(r.jobs[1].end, 11);
    workload_destroy(w);
}

/* A job's metric after 'k' iterations is 1 - 1 / (k + 1).  After the 9 that
 * are planned for the first job that is 0.9, and after 5 it is more than 0.81;
 * the second is stopped after 3, at 0.75, and has more than 0.675 only then;
 * the third has no metric. */
UNIT_TEST(notes_when_jobs_are_good)
{
    struct workload *w = workload_create("stage", sim_fabric_create(4, 100));
    struct workload_cojob *cojob = workload_add_cojob(w, "c", 1, 1);

    for (int i = 0; i < 3; i++) {
        struct workload_job *job = workload_add_job(cojob, "t", 1);

        workload_add_transfer(job, i, 3 - i, 50 * (i + 1), 0, 0);
        job->curve = (struct workload_curve){ 1, 1, 1, i < 2 };
    }
    cojob->jobs[0].transfers[0].bytes = 100;
    workload_add_rung(w, cojob, 3, 3);
    workload_add_rung(w, cojob, 9, 1);
    run_order(w, ORDER_PLAIN, 6);
    assert_int_equal(r.n_jobs, 3);
    assert_near(r.jobs[0].begin, 1);
    assert_near(r.jobs[0].early_end, 8.5 + 2 * 2);
    assert_near(r.jobs[0].end, 8.5 + 6 * 2);
    assert_near(r.jobs[1].end, 7);
    assert_near(r.jobs[1].early_end, 7);
    assert_int_equal(r.jobs[2].job, 2);
    assert_near(r.jobs[2].end, 8.5);
    assert_true(isinf(r.jobs[2].early_end));
    assert_near(r.stages[0].isolated, 7.5);
    assert_near(r.stages[1].isolated, 12);
    assert_near(r.port_bytes[0], 900);
    workload_destroy(w);
}

/* Two jobs on the same ports; the first hardly learns.  That is known as soon
 * as it has reported as many samples as the options want before they judge it,
 * one each 'every' iterations; until then it is early, as the second is. */
static double
end_of_the_second(int samples, int64_t every)
{
    struct workload *w = workload_create("stage", sim_fabric_create(2, 100));
    struct sim_options options = {
        .order = ORDER_OPTIONS_INIT(ORDER_EARLY),
        .service = SIM_SERVICE_EXACT,
        .early = { .samples = samples, .boot_s = 300, .period_s = 1 },
    };
    double end;

    options.order.early_theta = 0.9;
    for (int i = 0; i < 2; i++) {
        struct workload_cojob *cojob = workload_add_cojob(w, "c", 1, 0);
        struct workload_job *job = workload_add_job(cojob, "t", 0);

        workload_add_transfer(job, 0, 1, 100, 0, 0);
        job->curve = (struct workload_curve) {
            1, i ? 0.9 : 0.001, i ? 0.2 : 1, every,
        };
        workload_add_rung(w, cojob, 20, 1);
    }
    run(w, &options);
    end = end_of(1, 0);
    workload_destroy(w);
    return end;
}

UNIT_TEST(judges_early_jobs_by_what_they_told)
{
    double end = end_of_the_second(5, 1);

    assert_true(end < end_of_the_second(15, 1));
    assert_true(end < end_of_the_second(5, 3));
}

/* A young job preempts a job that has learned most already, although its
 * iterations take ten times as long, and also where a cheaper one is behind
 * it. */
UNIT_TEST(maif_prefers_the_job_that_improves_most)
{
    struct workload *w = workload_create("stage", sim_fabric_create(2, 100));
    struct sim_options options = {
        .order = ORDER_OPTIONS_INIT(ORDER_MAIF),
        .service = SIM_SERVICE_EXACT,
        .early = { .samples = 0, .boot_s = 0, .period_s = 1 },
    };

    for (int i = 0; i < 2; i++) {
        struct workload_cojob *cojob = workload_add_cojob(w, "c", 1, 10 * i);
        struct workload_job *job = workload_add_job(cojob, "t", 0);

        workload_add_transfer(job, 0, 1, i ? 1000 : 100, 0, 0);
        job->curve = (struct workload_curve){ 1, 1, 1, 1 };
        workload_add_rung(w, cojob, i ? 3 : 30, 1);
    }
    run(w, &options);
    assert_near(end_of(1, 0), 40);
    assert_near(end_of(0, 0), 60);
    workload_destroy(w);
}

UNIT_TEST(headers_take_their_part)
{
    struct workload *w = workload_create("coflow", sim_fabric_create(2, 10));
    struct sim_options options = {
        .order = ORDER_OPTIONS_INIT(ORDER_STAGE),
        .efficiency = 0.8,
        .service = SIM_SERVICE_EXACT,
    };

    add_flow(w, 0, 0, 1, 80);
    run(w, &options);
    assert_near(end_of(0, 0), 10);
    assert_near(r.bound, 10);
    assert_near(r.port_bytes[0], 80);
    workload_destroy(w);
}

/* Two hosts a leaf, which can send up what one host can: two flows to the
 * other leaf share that, or go up one after the other. */
UNIT_TEST(passes_a_narrow_spine)
{
    struct workload *w = workload_create(
        "coflow", sim_fabric_create_leaf_spine(4, 2, 10, 2));
    struct sim_options options = {
        .order = ORDER_OPTIONS_INIT(ORDER_PLAIN),
        .service = SIM_SERVICE_EXACT,
    };

    add_flow(w, 0, 0, 2, 50);
    add_flow(w, 0, 1, 3, 100);
    run(w, &options);
    assert_near(end_of(0, 0), 10);
    assert_near(end_of(1, 0), 15);

    options.order.kind = ORDER_STAGE;
    run(w, &options);
    assert_near(end_of(0, 0), 5);
    assert_near(end_of(1, 0), 15);
    assert_near(r.bound, 10);
    workload_destroy(w);
}

static char *
read_trace(const char *text, struct workload **wp)
{
    FILE *stream = fmemopen((void *) text, strlen(text), "r");
    char *error;

    assert_non_null(stream);
    error = workload_coflow_read("t.txt", stream, 0, wp);
    fclose(stream);
    return error;
}

UNIT_TEST(reads_a_trace)
{
    struct workload *w;

    assert_null(read_trace("3 2\n7 500 2 0 1 2 2:3.0 0:1\r\n"
                           "8 1500 1 2 1 2:0.5\n\n", &w));
    assert_int_equal(w->n_cojobs, 2);
    assert_int_equal(w->fabric->n_hosts, 3);
    assert_near(w->fabric->capacity[0], 128 * 1048576.0);
    assert_string_equal(w->cojobs[0].name, "7");
    assert_near(w->cojobs[0].arrival, 0.5);
    assert_int_equal(w->cojobs[0].jobs[0].n_transfers, 4);
    assert_near(w->cojobs[0].jobs[0].transfers[1].bytes, 1.5 * 1048576);
    assert_int_equal(w->cojobs[0].jobs[0].transfers[1].src, 1);
    assert_int_equal(w->cojobs[0].jobs[0].transfers[1].dst, 2);
    assert_int_equal(w->cojobs[1].jobs[0].transfers[0].src, 2);
    workload_destroy(w);
}

static const struct {
    const char *text;
    const char *error;
} mistakes[] = {
    { "\n", "t.txt:2: no \"PORTS COFLOWS\", the first line of a trace" },
    { "0 1\n",
      "t.txt:1: number of ports \"0\" is not an integer from 1 to 10000" },
    { "3 x\n", "t.txt:1: number of coflows \"x\" is not an integer from 1 to "
               "10000000" },
    { "3 1 4\n1 0 1 0 1 0:1\n",
      "t.txt:1: \"4\" stands after the number of coflows" },
    { "3 2\n1 0 1 0 1 1:1.0\n",
      "t.txt:3: the trace ends after 1 of 2 coflows" },
    { "3 1\n1 0 1 0 1 1:1\n2 0 1 0 1 1:1\n",
      "t.txt:3: one more coflow than the 1 that line 1 says" },
    { "3 1\n\n", "t.txt:3: the trace ends after 0 of 1 coflows" },
    { "3 1\n# no comment\n1 0 1 0 1 1:1\n",
      "t.txt:2: arrival in ms \"no\" "
      "is not a number from 0 to 1000000000000" },
    { "3 1\n1 -5 1 0 1 1:1\n", "t.txt:2: arrival in ms \"-5\" is not a "
                               "number from 0 to 1000000000000" },
    { "3 1\n1 0x10 1 0 1 1:1\n", "t.txt:2: arrival in ms \"0x10\" is not a "
                                 "number from 0 to 1000000000000" },
    { "3 1\n1 0 4 0 1 2 0 1 1:1\n",
      "t.txt:2: number of mappers \"4\" is not an integer from 1 to 3" },
    { "3 1\n1 0 1 3 1 1:1\n",
      "t.txt:2: mapper \"3\" is not an integer from 0 to 2" },
    { "3 1\n1 0 1 0 1 1.5:1\n",
      "t.txt:2: reducer \"1.5\" is not an integer from 0 to 2" },
    { "3 1\n1 0 1 0 1 1=1\n",
      "t.txt:2: \"1=1\" is not a reducer such as \"65:1.0\"" },
    { "3 1\n1 0 1 0 1 1:\n",
      "t.txt:2: size in MB \"\" is not a number from 0 to 1000000000" },
    { "3 1\n1 0 1 0 2 1:1\n",
      "t.txt:2: the line ends where a reducer is expected" },
    { "3 1\n1 0 1 0 1 1:1 2:1\n",
      "t.txt:2: \"2:1\" stands after the last reducer" },
    { "\x1f\x8b\x08 1\n", "t.txt:1: number of ports \"???\" is not an integer "
                          "from 1 to 10000" },
};

UNIT_TEST(names_the_line_at_fault)
{
    for (size_t i = 0; i < N_ELEMENTS(mistakes); i++) {
        struct workload *w;
        char *error = read_trace(mistakes[i].text, &w);

        assert_is(error, mistakes[i].error);
        assert_null(w);
    }
}

UNIT_TEST(orders_the_public_trace_better_than_plain)
{
    FILE *stream = fopen(TRACE, "r");
    struct workload *w;
    double plain;

    if (!stream) {
        print_message("SKIP: no trace in %s\n", TRACE);
        skip();
    }
    assert_null(workload_coflow_read(TRACE, stream, 30, &w));
    fclose(stream);
    assert_int_equal(w->n_cojobs, 30);
    run_order(w, ORDER_PLAIN, 6);
    plain = r.mean;
    run_order(w, ORDER_STAGE, 6);
    assert_true(r.mean < 0.9 * plain);
    assert_true(r.mean < 1.1 * r.bound);
    workload_destroy(w);
}

int
unit_test_tear_down(void **state)
{
    sim_result_uninit(&r);
    return 0;
}
