/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/cluster.h"
#include "controller/northbound/views/control.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "tests/unit/unit-test.h"
#include "util.h"

static void
put_host(struct cluster *c, const char *name, bool connected, int64_t applied,
         int64_t wanted)
{
    struct host *host = cluster_get_host(c, name);

    host->connected = connected;
    host_set_applied(host, applied);
    host_set_wanted(host, wanted);
}

/* Checks the whole report of 'c'. */
static void
assert_rollout(const struct cluster *c, bool settled, double switches,
               const char *expected)
{
    struct json *json = rollout_to_json(c, settled, 7, switches);

    assert_is(json_to_string(json, JSSF_SORT), expected);
    json_destroy(json);
}

UNIT_TEST(a_rollout_is_done_when_events_hosts_and_switches_are)
{
    static const struct {
        bool settled;
        int64_t applied;        /* Version of host h1, of 7. */
        double switches;
        const char *report;
    } cases[] = {
#define REPORT(DONE, APPLIED, N, SWITCHES, BEHIND)                          \
        "{\"applied\":" APPLIED ",\"behind\":[" BEHIND "],\"done\":" DONE \
        ",\"hosts\":2,\"hosts_applied\":" N ",\"switches_applied\":"      \
        SWITCHES ",\"version\":7}"
        { true, 7, 1, REPORT("true", "1", "2", "1", "") },
        { true, 8, 1, REPORT("true", "1", "2", "1", "") },
        { false, 7, 1, REPORT("false", "1", "2", "1", "") },
        { true, 7, 0.5, REPORT("false", "1", "2", "0.5", "") },
        { true, 6, 1, REPORT("false", "0.5", "1", "1", "\"h1\"") },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct cluster *c = cluster_create();

        put_host(c, "h0", true, 7, 7);
        put_host(c, "h1", true, cases[i].applied, 7);
        put_host(c, "h2", false, 1, 7);         /* Is not waited for. */
        assert_rollout(c, cases[i].settled, cases[i].switches,
                       cases[i].report);
        cluster_destroy(c);
    }
}

UNIT_TEST(without_hosts_nothing_is_behind)
{
    struct cluster *c = cluster_create();

    assert_rollout(c, true, 1, "{\"applied\":1,\"behind\":[],\"done\":true,"
                   "\"hosts\":0,\"hosts_applied\":0,\"switches_applied\":1,"
                   "\"version\":7}");
    cluster_destroy(c);
}

UNIT_TEST(a_stage_runs_from_its_begin_to_its_end)
{
    struct cluster *c = cluster_create();

    assert_false(rollout_stage_runs(c, "a", 0));
    for (int64_t ended = 0; ended < 2; ended++) {
        struct cojob *cojob;
        struct stage *stage;

        cluster_intent_begin(c);
        cojob = cluster_put_cojob(c, "a", 1, true);
        stage = cojob_put_stage(c, cojob, 3, 1000, ended ? 2000 : 0, 10);
        if (stage) {
            struct job *job = cojob_put_job(c, cojob, "j", true, 1000, 1);

            job_put_worker(c, job, "h0", ROLE_WORKER);
            stage_put_job(stage, job);
        }
        cluster_intent_end(c);
        assert_int_equal(rollout_stage_runs(c, "a", 3), !ended);
        assert_false(rollout_stage_runs(c, "a", 2));
        assert_false(rollout_stage_runs(c, "b", 3));
    }
    cluster_destroy(c);
}
