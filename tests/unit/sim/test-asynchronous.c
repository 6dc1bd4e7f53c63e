/* SPDX-License-Identifier: Apache-2.0 */

/* Searches that judge their trials one by one. */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "order/problem/memory.h"
#include "sim/fabric/fabric.h"
#include "sim/run/simulate.h"
#include "sim/workload/random.h"
#include "sim/workload/workload.h"
#include "tests/unit/assert-near.h"

#define MAX_VERDICTS 1000

/* What happened in a run, by search. */
static struct verdict {
    size_t job, rung;
    bool passes;
} verdicts[2][MAX_VERDICTS];
static size_t n_verdicts[2];
static struct sim_result r; /* Of the last run. */

static void
note(void *aux, const struct sim_job *job, size_t rung, bool passes)
{
    size_t *n = &n_verdicts[job->cojob];

    assert_true(*n < MAX_VERDICTS);
    verdicts[job->cojob][(*n)++] =
        (struct verdict){ .job = job->job, .rung = rung, .passes = passes };
}

static void
run(const struct workload *w, enum order_kind order, enum order_trials trials)
{
    struct sim_options options = { .order = ORDER_OPTIONS_INIT(order),
                                   .refresh_s = 0.2,
                                   .latest = 1.1,
                                   .judged = note };

    options.order.trials = trials;
    n_verdicts[0] = n_verdicts[1] = 0;
    sim_result_uninit(&r);
    simulate(w, &options, &r);
    assert_int_equal(r.n_stages, w->n_stages);
}

static int
tear_down(void **state)
{
    sim_result_uninit(&r);
    return 0;
}

static int
set_up(void **state)
{
    return 0;
}

/* A search with trials that move 'bytes' from host 0 to host 1, and have these
 * metrics from their first iteration on. */
static void
add_search(struct workload *w, double bytes, const double *metrics, size_t n,
           struct workload_trials trials)
{
    struct workload_cojob *cojob = workload_add_cojob(w, "s", 1, 0);

    for (size_t i = 0; i < n; i++) {
        struct workload_job *job = workload_add_job(cojob, "t", 0);

        workload_add_transfer(job, 0, 1, bytes, 0, 0);
        job->curve.final = metrics[i];
        job->curve.every = 1;
    }
    workload_add_trials(w, cojob, &trials);
}

/* One trial at a time, a second an iteration: each is judged against those
 * before it, in the second case those of its bracket. */
FIXTURE_TEST(judges_each_trial_when_it_arrives)
{
    static const double metrics[] = { 5, 4, 6, 3, 7, 5.5 };
    static const int64_t iterations[][N_ELEMENTS(metrics)] = {
        { 3, 1, 3, 1, 3, 3 },
        { 3, 3, 3, 3, 3, 3 },
    };
    static int64_t rungs[] = { 1, 3 };

    for (size_t b = 1; b <= 2; b++) {
        struct workload *w =
            workload_create("stage", sim_fabric_create(2, 100));
        double begin = 0;

        add_search(w, 100, metrics, N_ELEMENTS(metrics),
                   (struct workload_trials){ 1, 2, b, 2, rungs });
        run(w, ORDER_STAGE, ORDER_TRIALS_NEUTRAL);
        for (size_t i = 0; i < N_ELEMENTS(metrics); i++) {
            assert_int_equal(r.jobs[i].iterations, iterations[b - 1][i]);
            assert_near(r.jobs[i].begin, begin);
            begin += iterations[b - 1][i];
            assert_near(r.jobs[i].end, begin);
        }
        assert_near(r.stages[0].end, begin);
        assert_near(r.port_bytes[0], 100 * begin);
        assert_true(r.bound <= r.mean * (1 + 1e-9));
        workload_destroy(w);
    }
}

/* Two of three trials at a time share the link; the third begins when the
 * first one ends. */
FIXTURE_TEST(has_places)
{
    static const double metrics[] = { 1, 2, 3 };
    static int64_t rungs[] = { 4 };
    struct workload *w = workload_create("stage", sim_fabric_create(2, 100));

    add_search(w, 100, metrics, 3,
               (struct workload_trials){ 2, 2, 1, 1, rungs });
    w->cojobs[0].jobs[1].transfers[0].bytes = 200;
    run(w, ORDER_PLAIN, ORDER_TRIALS_NEUTRAL);
    assert_near(r.jobs[0].end, 8);
    assert_near(r.jobs[2].begin, 8);
    assert_near(r.stages[0].end, 16);
    workload_destroy(w);
}

/* Where trials share their ports, the network changes nothing about which
 * trials are compared: only searches go one before the other. */
FIXTURE_TEST(neutral_keeps_the_sequence_of_fair_sharing)
{
    static int64_t rungs[] = { 2, 6, 18 };
    struct sim_random random = { 1 };
    struct workload *w = workload_create("stage", sim_fabric_create(2, 100));
    struct verdict fair[2][MAX_VERDICTS];
    size_t n[2];
    double end;

    for (int s = 0; s < 2; s++) {
        double metrics[40];

        for (size_t i = 0; i < N_ELEMENTS(metrics); i++) {
            metrics[i] = sim_random_between(&random, 0, 1);
        }
        add_search(w, 100 + s, metrics, N_ELEMENTS(metrics),
                   (struct workload_trials){ 4, 3, 1, 3, rungs });
        for (size_t i = 0; i < N_ELEMENTS(metrics); i++) {
            w->cojobs[s].jobs[i].transfers[0].bytes +=
                sim_random_between(&random, 0, 20);
        }
    }
    run(w, ORDER_FAIR, ORDER_TRIALS_NEUTRAL);
    memcpy(fair, verdicts, sizeof fair);
    memcpy(n, n_verdicts, sizeof n);
    end = r.mean;
    run(w, ORDER_STAGE, ORDER_TRIALS_NEUTRAL);
    for (int s = 0; s < 2; s++) {
        assert_int_equal(n_verdicts[s], n[s]);
        assert_true(n[s] > 40);
        for (size_t i = 0; i < n[s]; i++) {
            assert_int_equal(verdicts[s][i].job, fair[s][i].job);
            assert_int_equal(verdicts[s][i].rung, fair[s][i].rung);
            assert_int_equal(verdicts[s][i].passes, fair[s][i].passes);
        }
    }
    assert_true(r.mean < 0.9 * end);
    workload_destroy(w);
}

/* Of trials that have reported enough, the better one is first at the next
 * rung, and the first one of the file otherwise. */
FIXTURE_TEST(promising_trials_go_first)
{
    static const double metrics[] = { 0.1, 0.5, 0.2 };
    static int64_t rungs[] = { 20, 40 };
    struct workload *w = workload_create("stage", sim_fabric_create(2, 100));

    add_search(w, 100, metrics, 3,
               (struct workload_trials){ 3, 3, 1, 2, rungs });
    for (size_t i = 0; i < 3; i++) {
        w->cojobs[0].jobs[i].compute = 1;
    }
    run(w, ORDER_STAGE, ORDER_TRIALS_NEUTRAL);
    assert_int_equal(verdicts[0][0].job, 0);
    assert_int_equal(r.jobs[0].iterations, 40);
    run(w, ORDER_STAGE, ORDER_TRIALS_PROMISING);
    assert_int_equal(verdicts[0][0].job, 1);
    assert_int_equal(r.jobs[0].iterations, 20);
    workload_destroy(w);
}

/* A search beside one that judges in stages, with plans, and trials that take
 * no time. */
FIXTURE_TEST(shares_a_cluster_with_stages)
{
    static const double metrics[] = { 1, 3, 2, 5, 4, 6, 9, 8 };
    static int64_t rungs[] = { 2, 6 };
    struct workload *w = workload_create("stage", sim_fabric_create(2, 100));
    struct workload_cojob *stages;

    add_search(w, 100, metrics, N_ELEMENTS(metrics),
               (struct workload_trials){ 3, 2, 2, 2, rungs });
    for (size_t i = 0; i < 5; i++) {
        w->cojobs[0].jobs[i].n_transfers = i < 4;
    }
    stages = workload_add_cojob(w, "b", 1, 0);
    for (int i = 0; i < 2; i++) {
        workload_add_transfer(workload_add_job(stages, "j", 0.1), 0, 1, 50, 0,
                              0);
    }
    workload_add_rung(w, stages, 10, 2);
    workload_add_rung(w, stages, 30, 1);
    for (enum order_kind kind = 0; kind < ORDER_N_KINDS; kind++) {
        for (int runs = 0; runs < 200; runs += 100) {
            struct sim_options options = { .order = ORDER_OPTIONS_INIT(kind),
                                           .refresh_s = 0.2,
                                           .latest = 1.1,
                                           .lookahead_runs = runs };

            options.order.trials = runs > 0;
            sim_result_uninit(&r);
            simulate(w, &options, &r);
            assert_int_equal(r.n_stages, 3);
            assert_true(r.bound > 0 && r.bound <= r.mean * (1 + 1e-9));
        }
    }
    workload_destroy(w);
}
