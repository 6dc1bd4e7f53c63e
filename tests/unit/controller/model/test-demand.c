/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "controller/controller.h"
#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "controller/model/fabric.h"
#include "controller/model/host-word.h"
#include "controller/model/iteration-traffic.h"
#include "controller/model/telemetry-report.h"
#include "controller/northbound/rest/peer.h"
#include "controller/northbound/rest/rest-routes.h"
#include "controller/northbound/views/metrics.h"
#include "order/order.h"
#include "policies/policy.h"
#include "tests/unit/unit-test.h"
#include "timeval.h"
#include "util.h"

/* Both clocks, each ahead of the real one by so much. */
static long long wall_ahead, msec_ahead;

long long __real_time_wall_msec(void);
long long __real_time_msec(void);
long long __wrap_time_wall_msec(void);
long long __wrap_time_msec(void);

long long
__wrap_time_wall_msec(void)
{
    return __real_time_wall_msec() + wall_ahead;
}

long long
__wrap_time_msec(void)
{
    return __real_time_msec() + msec_ahead;
}

/* A cojob with one job, with two workers and two servers on h0 to h2:
 *     h0: worker, server    h1: worker    h2: server */
struct fixture {
    struct cluster *c;
    struct job *job;
    struct stage *stage;
    int64_t began, stage_began; /* Epoch ms. */
    int64_t counted;            /* What hosts count, -1 if they cannot. */
    double waited;              /* Seconds that the job has waited. */
    bool over;                  /* The job has ended. */
    bool unplaced;              /* Its place is not announced. */
    struct telemetry_remote to; /* Where the host sends to, unless 0. */
    struct membership_claim claim;      /* Of the processes of the job. */
};

#define MODEL 1000000

static void
give_intent(struct fixture *f, int64_t ended)
{
    struct cojob *cojob;

    cluster_intent_begin(f->c);
    cojob = cluster_put_cojob(f->c, "asha", 1, true);
    f->job = cojob_put_job(f->c, cojob, "t0", !f->over, f->began, MODEL);
    if (!f->unplaced) {
        job_put_worker(f->c, f->job, "h0", ROLE_WORKER);
        job_put_worker(f->c, f->job, "h1", ROLE_WORKER);
        job_put_worker(f->c, f->job, "h0", ROLE_SERVER);
        job_put_worker(f->c, f->job, "h2", ROLE_SERVER);
    }
    f->stage = cojob_put_stage(f->c, cojob, 0, f->stage_began, ended, 100);
    stage_put_job(f->stage, f->job);
    cluster_intent_end(f->c);
}

FIXTURE_SET_UP
{
    f->c = cluster_create();
    f->counted = -1;
    f->claim.registered = true;
    f->began = f->stage_began = 1000;
    give_intent(f, 0);
}

FIXTURE_TEAR_DOWN
{
    cluster_destroy(f->c);
}

/* Host 'host' tells of job asha/t0 through a link of 8 Mbit/s. */
static void
learn(struct fixture *f, const char *host, uint64_t tx, uint64_t rx,
      int64_t iteration, bool first)
{
    struct telemetry_job tj = { .name = CONST_CAST(char *, "asha/t0"),
                                .tx_bytes = tx,
                                .rx_bytes = rx,
                                .busy = 2 * f->waited,
                                .waited = f->waited,
                                .iteration = iteration,
                                .estimated = f->counted,
                                .claim = f->claim,
                                .remotes = &f->to,
                                .n_remotes = f->to.ip != 0 };
    struct telemetry_report r = {
        .host = CONST_CAST(char *, host),
        .state = CONST_CAST(char *, "fair"),
        .jobs = &tj,
        .n_jobs = 1,
        .has_counters = true,
        .port_bytes = { 2 * tx, 2 * rx },
    };

    simap_init(&r.ports);
    simap_put(&r.ports, "uplink", 8000);
    demand_learn(f->c, &r, first);
    simap_destroy(&r.ports);
}

/* Seconds that the stage still needs of a port. */
static double
demand(struct fixture *f, const char *host, enum direction dir)
{
    int port = demand_port(cluster_get_host(f->c, host), dir);
    int64_t left = demand_remaining_iterations(f->stage, f->job);
    struct order_demand *demands;
    double seconds = 0;
    size_t n;

    n = iteration_traffic_demand(f->c, f->job, &demands);
    for (size_t i = 0; i < n; i++) {
        if (demands[i].port == port) {
            seconds = left * demands[i].seconds;
        }
    }
    free(demands);
    return seconds;
}

static uint64_t
moved(struct fixture *f, const char *host, enum direction dir)
{
    return stage_get_bytes(&f->stage->moved, cluster_get_host(f->c, host))
        ->bytes[dir];
}

FIXTURE_TEST(begins_with_the_parameter_server_formula)
{
    double second = MODEL * 8 / CLUSTER_UNKNOWN_BPS * 100;

    /* h0: half of the model to h2's shard, and half of h1's to its own. */
    assert_float_equal(demand(f, "h0", DIR_TX), second, 1e-9);
    assert_float_equal(demand(f, "h0", DIR_RX), second, 1e-9);
    assert_float_equal(demand(f, "h1", DIR_TX), second, 1e-9);
    assert_float_equal(demand(f, "h2", DIR_RX), second, 1e-9);
}

/* What a host has counted of a job, and of its card, goes to the stage. */
FIXTURE_TEST(keeps_what_each_job_of_a_stage_did)
{
    struct stage_part *part;
    struct stage_bytes *b;

    f->waited = 5;
    learn(f, "h0", 500, 0, 0, true);
    f->waited = 7;
    msec_ahead += 10000;
    learn(f, "h0", 900, 100, 1, false);
    learn(f, "h1", 0, 100, 1, false); /* Less than h0. */
    msec_ahead -= 10000;
    part = shash_find_data(&f->stage->parts, "t0");
    assert_int_equal(part->devices, 2);
    b = shash_find_data(&part->moved, "h0");
    assert_int_equal(b->bytes[DIR_TX], 400);
    assert_float_equal(b->waited, 2, 1e-9);
    assert_float_equal(b->busy, 4, 1e-9);
    assert_float_equal(f->job->gpu_waited, 2 * 2, 1e-9);
    assert_float_equal(f->job->gpu_held, 2 * 10, 1);
    assert_true(f->c->gpu_held == f->job->gpu_held);
    assert_int_equal(cluster_get_host(f->c, "h0")->carried[DIR_TX], 800);
    assert_int_equal(cluster_get_host(f->c, "h0")->moved[DIR_TX], 400);
}

FIXTURE_TEST(measures_bytes_per_iteration)
{
    f->job->model_bytes = 0;
    learn(f, "h0", 500, 0, 0, true);
    learn(f, "h0", 500, 0, 1, false);
    learn(f, "h0", 4500, 800, 3, false);
    /* 97 iterations of 2,000 bytes at 1 MB/s. */
    assert_float_equal(demand(f, "h0", DIR_TX), 0.194, 1e-9);
    assert_float_equal(demand(f, "h0", DIR_RX), 0.0388, 1e-9);
    learn(f, "h0", 16500, 3200, 9, false);
    assert_float_equal(demand(f, "h0", DIR_TX), 91 * 2000 / 1e6, 1e-9);

    /* The average follows a change. */
    learn(f, "h0", 20500, 4000, 10, false);
    assert_true(demand(f, "h0", DIR_TX) > 90 * 2000 / 1e6);
    assert_true(demand(f, "h0", DIR_TX) < 90 * 4000 / 1e6);
}

/* Two jobs of the same size do not differ by where in an iteration each is:
 * what an iteration moves may be there in one that has hardly begun. */
FIXTURE_TEST(a_few_iterations_only_correct_the_formula)
{
    learn(f, "h0", 0, 0, 0, true);
    learn(f, "h0", 3 * MODEL, 0, 1, false);     /* With the parameters. */
    learn(f, "h0", 6 * MODEL, 0.4 * MODEL, 3, false);
    assert_float_equal(demand(f, "h0", DIR_TX), 97, 1e-6);

    /* Two iterations, or nearly three, or hardly more than one. */
    assert_float_equal(demand(f, "h0", DIR_RX), 97 * 0.4, 1e-6);
    learn(f, "h0", 6 * MODEL, 0.6 * MODEL, 4, false);
    assert_float_equal(demand(f, "h0", DIR_TX), 96, 1e-6);
    assert_float_equal(demand(f, "h0", DIR_RX), 96 * 0.3, 1e-6);

    /* Then it is an average, in which the formula has one half. */
    learn(f, "h0", 11 * MODEL, 1.6 * MODEL, 9, false);
    assert_float_equal(demand(f, "h0", DIR_TX), 91, 1e-6);
    assert_float_equal(demand(f, "h0", DIR_RX), 91 * (1.6 / 7 + 0.2) / 2,
                       1e-6);
}

/* The parameters that a job begins with come in bursts, which are counted
 * until it tells how far it is. */
FIXTURE_TEST(what_was_counted_is_forgotten_for_what_is_told)
{
    learn(f, "h0", 0, 0, -1, true);
    f->counted = 1;
    learn(f, "h0", 0.1 * MODEL, 0, -1, false);
    f->counted = 5;
    learn(f, "h0", 0.5 * MODEL, 0, -1, false);
    assert_float_equal(demand(f, "h0", DIR_TX), 95, 1e-6);
    f->counted = 10;
    learn(f, "h0", MODEL, 0, -1, false);
    assert_true(demand(f, "h0", DIR_TX) < 60);
    learn(f, "h0", MODEL, 0, 0, false);
    assert_float_equal(demand(f, "h0", DIR_TX), 100, 1e-6);
    learn(f, "h0", 2 * MODEL, 0, 1, false);
    learn(f, "h0", 10 * MODEL, 0, 9, false);
    assert_float_equal(demand(f, "h0", DIR_TX), 91, 1e-6);
}

/* Neither a model that is too small nor silence makes a demand small: h0 moves
 * as much again as it has moved beyond what is expected. */
FIXTURE_TEST(a_job_needs_as_much_as_it_moves_without_iterations)
{
    learn(f, "h0", 0, 0, 0, true);
    learn(f, "h0", 2 * MODEL, 0, 0, false); /* With the parameters. */
    assert_float_equal(demand(f, "h0", DIR_TX), 100, 1e-6);
    learn(f, "h0", 301 * MODEL, 0, 0, false);
    assert_float_equal(demand(f, "h0", DIR_TX), 300, 1e-6);

    learn(f, "h0", 301 * MODEL, 0, 1, false);
    assert_float_equal(demand(f, "h0", DIR_TX), 99, 1e-6);
    learn(f, "h0", 309 * MODEL, 0, 9, false);
    assert_float_equal(demand(f, "h0", DIR_TX), 91, 1e-6);
    learn(f, "h0", 500 * MODEL, 0, 9, false);
    assert_float_equal(demand(f, "h0", DIR_TX), 190, 1e-6);
}

/* Each host has the same part of it, until it has been counted. */
FIXTURE_TEST(what_a_stage_announces_is_expected)
{
    f->job->model_bytes = 0;
    f->stage->claim.bytes = 6 * MODEL;
    assert_int_equal(demand_remaining_iterations(f->stage, f->job), 100);
    learn(f, "h0", 0, 0, 0, true);
    assert_float_equal(demand(f, "h0", DIR_TX), 200, 1e-6);
    f->job->cojob->bytes_ratio = 0.5;
    assert_float_equal(demand(f, "h0", DIR_TX), 100, 1e-6);
    learn(f, "h0", MODEL, MODEL, 1, false);
    assert_float_equal(demand_counted_bytes(f->job), 0, 0);
    learn(f, "h0", 17 * MODEL, MODEL, 9, false);
    assert_true(demand(f, "h0", DIR_TX) > 91 * 1.5);
}

/* It reports neither its model's size nor its iterations, and they cannot be
 * counted. */
FIXTURE_TEST(a_silent_job_has_as_much_left_as_it_has_moved)
{
    f->job->model_bytes = 0;
    learn(f, "h0", 0, 0, -1, true);
    assert_float_equal(demand(f, "h0", DIR_TX), 0, 1e-9);
    learn(f, "h0", 5000, 1000, -1, false);
    assert_float_equal(demand(f, "h0", DIR_TX), 5000 / 1e6, 1e-9);
    assert_float_equal(demand(f, "h0", DIR_RX), 1000 / 1e6, 1e-9);
    learn(f, "h0", 8000, 1000, -1, false);
    assert_float_equal(demand(f, "h0", DIR_TX), 8000 / 1e6, 1e-9);
}

FIXTURE_TEST(counts_for_a_job_that_does_not_tell)
{
    f->job->model_bytes = 0;
    learn(f, "h0", 0, 0, -1, true);
    f->counted = 2;
    learn(f, "h0", 4000, 1000, -1, false);
    assert_int_equal(f->job->iteration, 2);
    assert_true(f->job->estimated);
    f->counted = 6;
    learn(f, "h0", 12000, 3000, -1, false);
    assert_float_equal(demand(f, "h0", DIR_TX), 94 * 2000 / 1e6, 1e-9);

    /* Another host takes the halves of an iteration for two. */
    f->counted = 12;
    learn(f, "h1", 0, 0, -1, true);
    assert_int_equal(f->job->iteration, 6);

    f->counted = 101;
    learn(f, "h1", 0, 0, -1, false);

    /* Until the stage is said to have ended the job may not be there. */
    f->counted = 101;
    learn(f, "h0", 202000, 50500, -1, false);
    assert_int_equal(demand_remaining_iterations(f->stage, f->job), 1);

    /* What the job tells is worth more. */
    learn(f, "h0", 202000, 50500, 99, false);
    assert_int_equal(f->job->iteration, 99);
    assert_false(f->job->estimated);
    learn(f, "h0", 204000, 51000, 100, false);
    assert_int_equal(demand_remaining_iterations(f->stage, f->job), 0);
}

FIXTURE_TEST(keeps_what_an_agent_counted_before_its_restart)
{
    learn(f, "h0", 0, 0, -1, true);
    f->counted = 6;
    learn(f, "h0", 12000, 3000, -1, false);

    /* The new agent cannot count yet. */
    f->counted = -1;
    learn(f, "h0", 100, 0, -1, true);
    assert_int_equal(f->job->iteration, 6);
    f->counted = 2;
    learn(f, "h0", 4000, 1000, -1, false);
    assert_int_equal(f->job->iteration, 8);

    /* The same agent again; a count may also be mended. */
    learn(f, "h0", 4000, 1000, -1, true);
    assert_int_equal(f->job->iteration, 8);
    f->counted = 1;
    learn(f, "h0", 4000, 1000, -1, false);
    assert_int_equal(f->job->iteration, 7);

    /* The job begins again. */
    f->began = 2000;
    give_intent(f, 0);
    learn(f, "h0", 4000, 1000, -1, false);
    assert_int_equal(f->job->iteration, 1);
}

FIXTURE_TEST(measures_hosts_that_do_not_know_the_iteration)
{
    f->job->model_bytes = 0;
    learn(f, "h0", 0, 0, 10, true);
    learn(f, "h2", 0, 0, -1, true);
    learn(f, "h0", 0, 0, 20, false);
    learn(f, "h2", 30000, 0, -1, false);
    assert_float_equal(demand(f, "h2", DIR_TX), 80 * 3000 / 1e6, 1e-9);
}

FIXTURE_TEST(an_agent_that_begins_again_costs_nothing)
{
    double before;

    learn(f, "h0", 0, 0, 0, true);
    learn(f, "h0", 20000, 0, 10, false);
    before = demand(f, "h0", DIR_TX);
    learn(f, "h0", 100, 0, 10, true);
    assert_float_equal(demand(f, "h0", DIR_TX), before, 1e-9);
    assert_int_equal(moved(f, "h0", DIR_TX), 20000);
    learn(f, "h0", 2100, 0, 11, false);
    assert_int_equal(moved(f, "h0", DIR_TX), 22000);
    /* A fall without a new connection is the same. */
    learn(f, "h0", 50, 0, 11, false);
    assert_int_equal(moved(f, "h0", DIR_TX), 22000);
}

FIXTURE_TEST(a_stage_that_is_there_needs_nothing)
{
    learn(f, "h0", 0, 0, 0, true);
    learn(f, "h0", 20000, 0, 100, false);
    assert_float_equal(demand(f, "h0", DIR_TX), 0, 1e-9);
    learn(f, "h0", 40000, 0, 130, false);
    assert_float_equal(demand(f, "h0", DIR_TX), 0, 1e-9);
}

FIXTURE_TEST(bytes_count_for_the_stage_in_which_they_move)
{
    learn(f, "h1", 7000, 0, 0, true);   /* Of before, so a base only. */
    learn(f, "h1", 9000, 10, 1, false);
    assert_int_equal(moved(f, "h1", DIR_TX), 2000);
    assert_int_equal(moved(f, "h1", DIR_RX), 10);

    /* After the stage they count for none. */
    give_intent(f, time_wall_msec());
    msec_ahead += 60000;
    assert_int_equal(f->c->n_ended, 1);
    learn(f, "h1", 19000, 10, 1, false);
    assert_int_equal(moved(f, "h1", DIR_TX), 2000);
}

/* Half of the time between two messages was the previous stage's. */
FIXTURE_TEST(bytes_around_the_end_of_a_stage_are_shared)
{
    struct stage *old = f->stage;

    learn(f, "h1", 0, 0, 0, true);
    msec_ahead += 1000;
    give_intent(f, time_wall_msec());
    f->stage_began = 2000;
    give_intent(f, 0);
    assert_ptr_not_equal(f->stage, old);
    msec_ahead += 1000;
    learn(f, "h1", 10000, 0, 0, false);
    assert_in_range(moved(f, "h1", DIR_TX), 4900, 5100);
    f->stage = old;
    assert_in_range(moved(f, "h1", DIR_TX), 4900, 5100);
}

/* A report a second; the stage had half of that second. */
FIXTURE_TEST(bytes_after_the_end_of_a_stage_are_left_out)
{
    learn(f, "h1", 0, 0, 0, true);
    msec_ahead += 1000;
    give_intent(f, time_wall_msec());
    msec_ahead += 1000;
    learn(f, "h1", 10000, 0, 0, false);
    assert_in_range(moved(f, "h1", DIR_TX), 4900, 5100);
}

/* They are reported at once, so that they are of the last 200 ms. */
FIXTURE_TEST(bytes_after_a_pause_are_the_new_stage_s)
{
    learn(f, "h1", 0, 0, 0, true);
    learn(f, "h1", 0, 0, 0, false);
    msec_ahead += 700;
    give_intent(f, time_wall_msec());
    f->stage_began = 1700;
    give_intent(f, 0);
    msec_ahead += 200;
    learn(f, "h1", 10000, 0, 0, false);
    assert_in_range(moved(f, "h1", DIR_TX), 9900, 10000);
}

/* Of its stage; a new stage begins at 0. */
FIXTURE_TEST(counts_what_a_job_has_sent)
{
    learn(f, "h0", 0, 0, 0, true);
    learn(f, "h1", 0, 0, 0, true);
    learn(f, "h0", 3000, 9, 1, false);
    learn(f, "h1", 400, 9, 1, false);
    assert_true(f->job->sent == 3400);
    assert_float_equal(demand_bytes_of_iteration(f->job), MODEL * 3, 1e-6);
    assert_int_equal(demand_devices(f->job), 2);
    f->stage_began++;
    give_intent(f, 0);
    assert_true(f->job->sent == 0);
}

FIXTURE_TEST(a_job_that_begins_again_begins_at_0)
{
    double before = demand(f, "h1", DIR_TX);

    cluster_get_host(f->c, "h1")->capacity_bps = CLUSTER_UNKNOWN_BPS;
    f->job->iteration = 100;
    assert_float_equal(demand(f, "h1", DIR_TX), 0, 1e-9);
    f->job->progress.period = 1;
    f->began++;
    give_intent(f, 0);
    assert_true(f->job->progress.period == 0);
    assert_float_equal(demand(f, "h1", DIR_TX), before, 1e-9);
}

FIXTURE_TEST(processes_count_while_their_job_lives)
{
    const struct job_traffic *t = shash_find_data(&f->job->traffic, "h0");

    for (int round = 0; round < 2; round++) {
        for (int again = 0; again < 2; again++) {
            f->over = false;
            give_intent(f, 0);
            assert_int_equal(f->job->workers[ROLE_SERVER], 2);
            assert_int_equal(t->workers[ROLE_WORKER], 1);
            assert_int_equal(demand_devices(f->job), 2);
            assert_true(cluster_get_host(f->c, "h0")->named);
        }
        f->over = true;
        give_intent(f, 0);
        assert_int_equal(demand_devices(f->job), 0);
        assert_int_equal(t->workers[ROLE_WORKER], 0);
        assert_false(cluster_get_host(f->c, "h0")->named);
        assert_int_equal(shash_count(&f->job->traffic), 3);
    }
}

/* What had ended before the controller heard of it is known all the same. */
UNIT_TEST(job_that_is_over_has_its_hosts)
{
    struct fixture f = { .c = cluster_create(), .over = true, .counted = -1 };

    give_intent(&f, 0);
    give_intent(&f, 0);
    assert_int_equal(shash_count(&f.job->traffic), 3);
    f.over = false;
    give_intent(&f, 0);
    assert_int_equal(demand_devices(f.job), 2);
    cluster_destroy(f.c);
}

/* Each order is news to each host, and none of them is late for that. */
FIXTURE_TEST(host_is_late_after_some_time)
{
    struct host *host = cluster_get_host(f->c, "h0");

    host_set_wanted(host, 7);
    assert_false(host_is_lagging(host));
    learn(f, "h0", 0, 0, 0, true);
    assert_false(host_is_lagging(host));
    msec_ahead += CLUSTER_LAG_MS + 100;
    assert_true(host_is_lagging(host));
    host_set_applied(host, 7);
    assert_false(host_is_lagging(host));

    /* It follows orders that come faster than it tells. */
    for (int version = 8; version < 20; version++) {
        host_set_wanted(host, version);
        msec_ahead += CLUSTER_LAG_MS / 4;
        host_set_applied(host, version - 1);
        assert_false(host_is_lagging(host));
    }

    /* It does not follow. */
    host_set_wanted(host, 20);
    msec_ahead += CLUSTER_LAG_MS / 2;
    assert_false(host_is_lagging(host));
    host_set_wanted(host, 21);
    host_set_applied(host, 18);
    msec_ahead += CLUSTER_LAG_MS / 2;
    host_set_wanted(host, 22);
    host_set_applied(host, 18);
    msec_ahead += CLUSTER_LAG_MS;
    assert_true(host_is_lagging(host));
    host->connected = false;
    assert_false(host_is_lagging(host));
    msec_ahead = 0;
}

/* Host h0 reports 'value' after 'iteration', 'ms' after its last report, by a
 * clock that was set 'step' ms forward meanwhile. */
static void
learn_metric(struct fixture *f, int64_t iteration, double value, int ms,
             long long step)
{
    struct telemetry_job tj = {
        .name = CONST_CAST(char *, "asha/t0"), .iteration = iteration,
        .metric = CONST_CAST(char *, "accuracy"), .value = value,
        .claim.registered = true,
    };
    struct telemetry_report r = {
        .host = CONST_CAST(char *, "h0"),
        .state = CONST_CAST(char *, "fair"), .jobs = &tj, .n_jobs = 1,
    };

    msec_ahead += ms;
    wall_ahead += ms + step;
    simap_init(&r.ports);
    demand_learn(f->c, &r, false);
    simap_destroy(&r.ports);
}

FIXTURE_TEST(setting_the_clock_does_not_change_what_is_measured)
{
    static const long long steps[] = { 0, 3600000, -7200000 };

    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        const struct progress_curve *curve;
        unsigned int samples = f->c->samples;

        f->began = time_wall_msec() + (long long) i;        /* Again. */
        give_intent(f, 0);
        curve = &f->job->progress.curve;
        for (int k = 1; k <= 5; k++) {
            learn_metric(f, 10 * k, 0.1 * k, 4000, steps[i]);
        }
        assert_int_equal(f->c->samples, samples + 5);
        assert_float_equal(f->job->progress.period, 0.4, 0.01);
        assert_int_equal(curve->n, 5);
        assert_float_equal(curve->samples[0].time - curve->begin, 4, 0.1);
        assert_float_equal(curve->distance, 4, 0.1);
    }
}

/* A REST client reports 'value' after 'iteration', 'ms' after the previous
 * report. */
static void
post_progress(struct fixture *f, int64_t iteration, double value, int ms)
{
    char *body = xasprintf("{\"iteration\": %lld, \"metric\": \"accuracy\", "
                           "\"value\": %g}", (long long) iteration, value);
    struct controller ctl = { .cluster = f->c };
    struct rest_counts counts = { 0 };
    struct rest_request r = { .ctl = &ctl,
                              .counts = &counts,
                              .method = "POST",
                              .peer = &(struct peer){ .role = PEER_OPERATOR },
                              .path = "/v1/cojobs/asha/jobs/t0/progress",
                              .body = body,
                              .body_size = strlen(body) };
    struct rest_reply reply;

    msec_ahead += ms;
    wall_ahead += ms;
    reply = rest_route(&r);
    assert_int_equal(reply.status, 200);
    rest_reply_uninit(&reply);
    free(body);
}

/* Both sources at once: the period is measured from one to the other. */
FIXTURE_TEST(a_message_without_counters_changes_none)
{
    const struct host *host;

    learn(f, "h0", 1000, 1000, 1, true);
    host = shash_find_data(&f->c->hosts, "h0");
    learn_metric(f, 2, 0.5, 200, 0);
    assert_true(host_capacity(host) == 8e6);
    learn(f, "h0", 3000, 2000, 3, false);
    assert_int_equal(host->carried[DIR_TX], 4000);
}

FIXTURE_TEST(rest_and_telemetry_measure_one_period)
{
    learn_metric(f, 10, 0.1, 4000, 0);
    post_progress(f, 20, 0.2, 4000);
    learn_metric(f, 30, 0.3, 4000, 0);
    assert_int_equal(f->job->iteration, 30);
    assert_float_equal(f->job->progress.period, 0.4, 0.01);
    assert_int_equal(f->c->samples, 3);
}

FIXTURE_TEST(gain_of_a_job_that_reports_by_rest_decays_after_a_day)
{
    struct order_traits traits;
    struct policy *policy;
    double gain;

    assert_null(policy_from_string(
        "p", "{\"name\": \"p\", \"order\": \"early\"}", &policy));
    for (int k = 1; k <= 6; k++) {
        post_progress(f, 10 * k, 1 - 1.0 / (k + 1), 4000);
    }
    assert_int_equal(f->c->samples, 6);
    job_progress_score(&f->job->progress, policy, 60, 1, 0, time_msec(),
                       &traits);
    gain = traits.gain;
    assert_true(gain > 0.01);

    msec_ahead += 24 * 3600 * 1000;
    job_progress_score(&f->job->progress, policy, 60, 1, 0, time_msec(),
                       &traits);
    assert_true(traits.gain < gain / 1e6);
    policy_destroy(policy);
}

/* What a process claims by its environment changes nothing: neither bytes nor
 * iterations count, and the host is not one of the job's. */
FIXTURE_TEST(processes_that_are_not_registered_count_for_nothing)
{
    learn(f, "h0", 1000, 1000, 5, true);
    f->claim = (struct membership_claim) { .has_uid = true, .uid = 1001 };
    learn(f, "h9", 0, 0, -1, true);
    learn(f, "h9", 500000, 500000, 90, false);
    assert_int_equal(f->job->iteration, 5);
    assert_null(shash_find(&f->job->traffic, "h9"));
    assert_non_null(job_refusal(f->job, "h9"));
    assert_null(job_refusal(f->job, "h0"));

    f->c->trusts_environment = true;
    f->job->workers[ROLE_WORKER]++;
    job_get_traffic(f->job, cluster_get_host(f->c, "h9"))
        ->workers[ROLE_WORKER]++;
    learn(f, "h9", 500000, 500000, 6, false);
    assert_int_equal(f->job->iteration, 6);
    assert_null(job_refusal(f->job, "h9"));
    assert_int_equal(cluster_get_host(f->c, "h9")->moved[DIR_TX], 0);
}

/* The topology has h1 and h9. */
static void
know_addresses(struct fixture *f)
{
    struct fabric *fabric = fabric_create(1);

    fabric_add_host(fabric, "h1", 1, 0);
    fabric_add_host(fabric, "h9", 9, 0);
    cluster_set_fabric(f->c, fabric);
}

/* Host h9 reports of the job what would end its stage.  Returns true if that
 * counts. */
static bool
h9_counts(struct fixture *f)
{
    learn(f, "h9", 0, 0, -1, true);
    learn(f, "h9", 500000, 500000, 100, false);
    if (job_refusal(f->job, "h9")) {
        assert_int_equal(job_refusal(f->job, "h9")->reason,
                         MEMBERSHIP_ELSEWHERE);
        assert_int_equal(moved(f, "h9", DIR_TX), 0);
        assert_int_not_equal(f->job->iteration, 100);
        return false;
    }
    assert_int_equal(f->job->iteration, 100);
    return true;
}

FIXTURE_TEST(hosts_are_not_believed_about_a_job_that_is_elsewhere)
{
    know_addresses(f);
    assert_false(h9_counts(f)); /* No host has begun yet. */
    learn(f, "h0", 0, 0, 0, true);
    learn(f, "h0", 100000, 100000, 1, false);
    assert_false(h9_counts(f));
    f->to = (struct telemetry_remote){ 9, 1000 };
    learn(f, "h0", 100000, 100000, 1, false);
    assert_true(h9_counts(f));
}

FIXTURE_TEST(first_host_of_a_job_without_places_names_the_others)
{
    f->unplaced = true;
    f->began++;
    give_intent(f, 0);
    learn(f, "h0", 0, 0, 0, true);
    learn(f, "h0", 100000, 100000, 1, false);
    learn(f, "h1", 0, 0, 2, true); /* No host knows more. */
    assert_int_equal(f->job->iteration, 2);
    know_addresses(f);
    f->to = (struct telemetry_remote){ 1, 1000 };
    learn(f, "h0", 100000, 100000, 2, false);
    learn(f, "h1", 0, 0, 3, false);
    assert_int_equal(f->job->iteration, 3);
    f->to.ip = 0;
    assert_false(h9_counts(f));

    /* It is begun again on another host. */
    msec_ahead += HOST_WORD_STALE_MS + 1;
    assert_true(h9_counts(f));
    msec_ahead -= HOST_WORD_STALE_MS + 1;
}

/* A host without a certificate of its own, and one with. */
FIXTURE_TEST(certified_host_counts_where_others_send_to_it)
{
    struct host *h9 = cluster_get_host(f->c, "h9");

    f->unplaced = true;
    f->began++;
    give_intent(f, 0);
    h9->certified = true;
    h9->ip = 9;
    learn(f, "h0", 0, 0, 0, true);
    assert_false(cluster_wants_pairs(f->c));
    assert_false(h9_counts(f));
    assert_true(cluster_wants_pairs(f->c));
    f->to = (struct telemetry_remote){ 9, 1000 };
    learn(f, "h0", 100000, 100000, 1, false);
    assert_true(h9_counts(f));
}

FIXTURE_TEST(own_bytes_of_a_host_carry_no_iterations)
{
    learn(f, "h0", 0, 0, 0, true);
    learn(f, "h1", 0, 0, 0, true);
    learn(f, "h0", 20000000, 20000000, 1, false);
    learn(f, "h1", 20000000, 20000000, 10, false);
    learn(f, "h0", 2000000000, 2000000000, 5000, false);
    assert_int_equal(f->job->iteration, 10);
    assert_string_equal(f->job->refused_host->name, "h0");
    learn(f, "h0", 40000000, 40000000, 20, false);
    learn(f, "h1", 40000000, 40000000, 20, false);
    assert_int_equal(f->job->iteration, 20);

    /* Without its agent the bytes of h1 are not counted. */
    cluster_get_host(f->c, "h1")->connected = false;
    msec_ahead += 5000;
    learn(f, "h0", 40000000, 40000000, 500, false);
    assert_int_equal(f->job->iteration, 500);
    msec_ahead -= 5000;
}

FIXTURE_TEST(processes_of_another_user_count_for_nothing)
{
    char *why;

    f->c->trusts_environment = true;
    f->job->cojob->uid = 1000;
    f->claim = (struct membership_claim) { .has_uid = true, .uid = 1001 };
    learn(f, "h1", 0, 0, 90, true);
    assert_int_equal(f->job->iteration, -1);
    why = job_refusal_to_string(f->job, job_refusal(f->job, "h1"));
    assert_is(why, "of user 1001, and the owner of asha is user "
                   "1000");

    /* A host without processes has no claim. */
    msec_ahead += CLUSTER_REFUSAL_MS + 1;
    assert_null(job_refusal(f->job, "h1"));
    msec_ahead -= CLUSTER_REFUSAL_MS + 1;
    f->claim.uid = 1000;
    learn(f, "h1", 0, 0, 7, false);
    assert_int_equal(f->job->iteration, 7);
}

/* One report ends no stage, and does not spoil what was measured. */
FIXTURE_TEST(iterations_that_no_traffic_carries_do_not_count)
{
    learn(f, "h0", 0, 0, 1, true);
    learn(f, "h0", 20000000, 20000000, 11, false);
    learn(f, "h0", 20000000, 20000000, 1000000000, false);
    assert_int_equal(f->job->iteration, 11);
    assert_int_equal(demand_remaining_iterations(f->stage, f->job), 89);
    assert_int_equal(f->job->bound.n_refused, 1);
    assert_false(demand_progress(f->c, f->job, &f->job->rest, 1000000000,
                                 NULL, 0, 1000));
    learn(f, "h0", 40000000, 40000000, 21, false);
    assert_int_equal(f->job->iteration, 21);
}

/* The job goes on from the checkpoint of another one, twice, and begins again
 * in the end. */
FIXTURE_TEST(steps_after_a_jump_count)
{
    static const struct {
        int64_t told, counts;
    } rows[] = {
        { 11, 11 },    { 5011, 11 },  { 5011, 11 },  { 5021, 21 },
        { 95021, 21 }, { 95031, 31 }, { 95030, 30 }, { 95041, 41 },
        { 7, 7 },      { 17, 17 },
    };
    uint64_t bytes = 0;

    f->stage->iterations = 1000000;
    learn(f, "h0", 0, 0, 1, true);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        bytes += 20000000;
        learn(f, "h0", bytes, bytes, rows[i].told, false);
        assert_int_equal(f->job->iteration, rows[i].counts);
    }
    assert_int_equal(f->job->bound.n_refused, 2);
}

/* A job that is requeued begins again on another host. */
FIXTURE_TEST(iterations_where_a_job_is_no_more_do_not_count)
{
    learn(f, "h0", 0, 0, 1, true);
    learn(f, "h0", 20000000, 20000000, 11, false);
    assert_int_equal(f->job->iteration, 11);
    msec_ahead += HOST_WORD_STALE_MS + 1;
    learn(f, "h1", 0, 0, 0, true);
    assert_int_equal(f->job->iteration, 0);
    learn(f, "h1", 4000000, 4000000, 2, false);
    assert_int_equal(f->job->iteration, 2);
    msec_ahead -= HOST_WORD_STALE_MS + 1;
}
