/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/cluster.h"
#include "controller/model/stage-start.h"
#include "controller/northbound/views/metrics.h"
#include "openvswitch/dynamic-string.h"
#include "tests/unit/unit-test.h"
#include "timeval.h"
#include "util.h"

struct fixture {
    struct cluster *c;
    struct stage *stage;
    struct host *host;
    struct stage_starts starts;
    long long now;
};

/* A stage that began 30 ms before it is read, of a job on h0. */
FIXTURE_SET_UP
{
    struct cojob *cojob;
    struct job *job;

    f->c = cluster_create();
    cluster_intent_begin(f->c);
    cojob = cluster_put_cojob(f->c, "asha", 1, true);
    job = cojob_put_job(f->c, cojob, "t0", true, 1000, 1);
    job_put_worker(f->c, job, "h0", ROLE_WORKER);
    f->stage =
        cojob_put_stage(f->c, cojob, 0, f->c->copied.epoch_ms - 30, 0, 100);
    stage_put_job(f->stage, job);
    cluster_intent_end(f->c);
    f->host = cluster_get_host(f->c, "h0");
    f->host->connected = true;
    host_set_wanted(f->host, 4);
    host_set_applied(f->host, 4);
    f->now = f->stage->known_at;
}

FIXTURE_TEAR_DOWN
{
    cluster_destroy(f->c);
}

/* Runs 'ms' later, when the hosts database has version 'stored' of 'written',
 * and returns the step of the stage. */
static enum stage_step
run(struct fixture *f, int ms, int64_t written, int64_t stored)
{
    const struct stage_rows rows = { .written = written, .stored = stored };

    f->now += ms;
    stage_starts_run(&f->starts, &f->c->starting, &rows, f->now);
    return f->stage->start.step;
}

static void
assert_metric(const struct fixture *f, const char *line)
{
    struct ds out = DS_EMPTY_INITIALIZER;

    metrics_put_starts(&out, &f->starts);
    assert_says(ds_steal_cstr(&out), line);
}

FIXTURE_TEST(each_step_has_its_time)
{
    assert_int_equal(run(f, 0, 4, 4), STAGE_DECIDE);
    assert_int_equal(run(f, 60, 4, 4), STAGE_DECIDE);
    f->stage->rank = 0;
    assert_int_equal(run(f, 60, -1, 4), STAGE_PUSH); /* Rows follow later. */
    assert_int_equal(run(f, 100, 5, 4), STAGE_PUSH);
    assert_int_equal(run(f, 100, 6, 4), STAGE_PUSH); /* The next order. */
    host_set_wanted(f->host, 5);
    assert_int_equal(run(f, 100, 6, 5), STAGE_SHIM);
    host_set_wanted(f->host, 6);
    assert_int_equal(run(f, 900, 6, 6), STAGE_SHIM);
    host_set_applied(f->host, 5);
    assert_int_equal(run(f, 900, 6, 6), N_STAGE_STEPS);
    assert_true(ovs_list_is_empty(&f->c->starting));

    assert_metric(f, "\nstagecoach_stage_start_seconds_bucket"
                     "{step=\"intent\",le=\"0.025\"} 0\n");
    assert_metric(f, "\nstagecoach_stage_start_seconds_bucket"
                     "{step=\"intent\",le=\"0.05\"} 1\n");
    assert_metric(f, "\nstagecoach_stage_start_seconds_sum{step=\"decide\"} "
                     "0.12\n");
    assert_metric(f, "\nstagecoach_stage_start_seconds_bucket"
                     "{step=\"push\",le=\"0.25\"} 0\n");
    assert_metric(f, "\nstagecoach_stage_start_seconds_bucket"
                     "{step=\"push\",le=\"+Inf\"} 1\n");
    assert_metric(f, "\nstagecoach_stage_start_seconds_bucket"
                     "{step=\"shim\",le=\"1\"} 0\n");
    assert_metric(f, "\nstagecoach_stage_start_seconds_count{step=\"shim\"} "
                     "1\n");
}

FIXTURE_TEST(hosts_whose_rows_stay_have_applied_them)
{
    f->stage->rank = 0;
    assert_int_equal(run(f, 0, 5, 5), N_STAGE_STEPS);
}

FIXTURE_TEST(hosts_without_an_agent_are_not_awaited)
{
    f->stage->rank = 0;
    f->host->connected = false;
    host_set_wanted(f->host, 5);
    assert_int_equal(run(f, 0, 5, 5), N_STAGE_STEPS);
}

FIXTURE_TEST(what_a_new_leader_finds_does_not_count)
{
    f->stage->rank = 0;
    stage_starts_forget(&f->c->starting);
    assert_int_equal(run(f, 0, 5, 5), STAGE_INTENT);
    assert_metric(f, "\nstagecoach_stage_start_seconds_count{step=\"intent\"} "
                     "0\n");
}

FIXTURE_TEST(neither_does_what_ends_before)
{
    run(f, 0, 4, 4);
    cluster_intent_begin(f->c);
    cluster_put_cojob(f->c, "asha", 1, false);
    cluster_intent_end(f->c);
    assert_true(ovs_list_is_empty(&f->c->starting));
}
