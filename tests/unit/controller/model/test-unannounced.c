/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs that agents report and no search has announced. */

#include <config.h>

#include "controller/model/cluster.h"
#include "controller/model/telemetry-report.h"
#include "controller/model/unannounced.h"
#include "tests/unit/unit-test.h"
#include "util.h"

#define HOUR_MS 3600000

static struct cluster *c;
static struct host *h0;

static int
set_up(void **state OVS_UNUSED)
{
    c = cluster_create();
    h0 = cluster_get_host(c, "h0");
    return 0;
}

static int
tear_down(void **state OVS_UNUSED)
{
    cluster_destroy(c);
    return 0;
}

/* h0 has counted 'bytes' sent bytes, as many received ones less 1, 'seconds'
 * of waiting and 'iterations'. */
static void
report(uint64_t bytes, double seconds, int64_t iterations, bool first,
       long long now)
{
    char name[] = "team/job7";
    const struct telemetry_job tj = { .name = name,
                                      .tx_bytes = bytes,
                                      .rx_bytes = bytes - 1,
                                      .busy = 2 * seconds,
                                      .waited = seconds,
                                      .iteration = -1,
                                      .estimated = iterations };

    unannounced_learn(c->unannounced, h0, &tj, first, now);
}

/* Takes a stage and compares what h0 has sent in it for the job. */
static void
expect_stage(const struct shash *announced, long long now, int rung,
             uint64_t bytes, double seconds, int64_t iterations)
{
    struct stage *stage = unannounced_take(c->unannounced, announced, now);
    struct stage_part *part;

    assert_non_null(stage);
    assert_string_equal(stage->cojob_name, "team");
    assert_int_equal(stage->rung, rung);
    assert_int_equal(stage->done, iterations);
    assert_true(stage->ended >= stage->began);
    part = shash_find_data(&stage->parts, "job7");
    assert_int_equal(stage_get_bytes(&part->moved, h0)->bytes[DIR_TX], bytes);
    assert_int_equal(stage_get_bytes(&stage->moved, h0)->bytes[DIR_TX], bytes);
    assert_float_equal(stage_get_bytes(&part->moved, h0)->waited, seconds,
                       1e-9);
    stage_destroy(stage);
}

FIXTURE_TEST(a_job_ends_when_no_host_reports_it)
{
    report(100, 1, 3, false, 1000);
    report(300, 1.5, 5, false, 2000);
    assert_null(unannounced_take(c->unannounced, &c->jobs, 11000));
    expect_stage(&c->jobs, 12001, 0, 300, 1.5, 5);
    assert_null(unannounced_take(c->unannounced, NULL, 12001));
    assert_int_equal(h0->moved[DIR_TX], 300);
    assert_int_equal(h0->moved[DIR_RX], 299);
}

/* What an agent has counted before it connected was before the recording. */
FIXTURE_TEST(the_first_report_of_a_connection_is_a_base)
{
    report(5000, 7, 40, true, 1000);
    report(5100, 8, 42, false, 2000);
    report(100, 1, 1, true, 3000); /* Another agent. */
    report(200, 2, 2, false, 4000);
    expect_stage(NULL, 4000, 0, 200, 2, 2);
}

FIXTURE_TEST(a_long_job_has_a_stage_each_hour)
{
    report(100, 1, 10, false, 1000);
    report(700, 2, 20, false, HOUR_MS + 1000);
    assert_null(unannounced_take(c->unannounced, &c->jobs, HOUR_MS + 1000));
    expect_stage(&c->jobs, HOUR_MS + 1001, 0, 700, 2, 20);
    report(750, 4, 25, false, HOUR_MS + 2000);
    expect_stage(NULL, HOUR_MS + 2000, 1, 50, 2, 5);
}

FIXTURE_TEST(an_announced_job_is_no_longer_recorded)
{
    struct shash announced = SHASH_INITIALIZER(&announced);

    report(100, 1, 3, false, 1000);
    assert_null(unannounced_take(c->unannounced, &announced, 1000));
    shash_add(&announced, "team/job7", NULL);
    expect_stage(&announced, 1000, 0, 100, 1, 3);
    shash_destroy(&announced);
}
