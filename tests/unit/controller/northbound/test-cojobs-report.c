/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <string.h>

#include "controller/model/cluster.h"
#include "controller/model/owners.h"
#include "controller/northbound/views/cojobs-report.h"
#include "controller/northbound/views/users-report.h"
#include "openvswitch/json.h"
#include "tests/unit/unit-test.h"
#include "util.h"

/* Checks and destroys 'json'. */
static void
assert_json(struct json *json, const char *expected)
{
    assert_is(json ? json_to_string(json, JSSF_SORT) : NULL, expected);
    json_destroy(json);
}

/* Search "a" with job "t0" on host h0, which has a running stage, and "t1",
 * which has ended. */
static struct cluster *
make_cluster(void)
{
    struct cluster *c = cluster_create();
    struct cojob *cojob;
    struct job *job;

    cluster_intent_begin(c);
    cojob = cluster_put_cojob(c, "a", 2, true);
    cojob_set_owner(c, cojob, "ann", 0);
    job = cojob_put_job(c, cojob, "t0", true, 1000, 8);
    job_put_worker(c, job, "h0", ROLE_WORKER);
    stage_put_job(cojob_put_stage(c, cojob, 3, 1000, 0, 50), job);
    cojob_put_job(c, cojob, "t1", false, 1000, 8);
    cluster_intent_end(c);
    return c;
}

#define T0 \
    "{\"began\":1000,\"hosts\":[\"h0\"],\"job\":\"a/t0\"," \
    "\"live\":true,\"model_bytes\":8,\"rung\":3,\"sent_bytes\":0}"
#define T1 \
    "{\"began\":1000,\"hosts\":[],\"job\":\"a/t1\",\"live\":false," \
    "\"model_bytes\":8}"
#define COJOB \
    "{\"cojob\":\"a\",\"jobs\":[" T0 "," T1 "],\"owner\":\"ann\"," \
    "\"stages\":[{\"began\":1000,\"iterations\":50,\"jobs\":[\"t0\"],\"rung\":3}]," \
    "\"state\":" \
    "\"running\",\"weight\":2}"

UNIT_TEST(unknown_values_are_absent)
{
    struct cluster *c = make_cluster();
    struct job *job = shash_find_data(&c->jobs, "a/t0");

    assert_json(cojobs_report_job(c, "a/t0"), T0);
    job->level = 1;
    job->rank = 4;
    assert_json(cojobs_report_job(c, "a/t0"),
                "{\"began\":1000,\"hosts\":"
                "[\"h0\"],\"job\":\"a/t0\",\"level\":1,\"live\":true,"
                "\"model_bytes\":8,\"rank\":4,\"rung\":3,\"sent_bytes\":0}");
    assert_null(cojobs_report_job(c, "a/t2"));
    assert_null(cojobs_report_cojob(c, "b"));
    cluster_destroy(c);
}

UNIT_TEST(lists_are_sorted_by_name)
{
    struct cluster *c = make_cluster();

    assert_json(cojobs_report_cojob(c, "a"), COJOB);
    assert_json(cojobs_report(c), "{\"cojobs\":[" COJOB "]}");
    assert_json(cojobs_report_jobs(c), "{\"jobs\":[" T0 "," T1 "]}");
    cluster_destroy(c);
}

UNIT_TEST(coverage_of_a_host_is_its_tagged_share)
{
    struct cluster *c = cluster_create();
    struct host *host = cluster_get_host(c, "h0");

#define HOST(COVERAGE)                                                          \
    "{\"hosts\":[{\"applied\":0,\"bypass\":false,\"connected\":false," COVERAGE \
    "\"host\":\"h0\",\"lag_s\":0,\"moved\":{\"rx\":0,"                          \
    "\"tx\":0},\"ports\":{},\"state\":\"\",\"wanted\":0}]}"
    host->reports = true;
    cluster_get_host(c, "h1");          /* Only an ended job names it. */
    assert_json(cojobs_report_hosts(c), HOST(""));
    host->ip_bytes = 100;
    host->default_bytes = 25;
    assert_json(cojobs_report_hosts(c), HOST("\"coverage\":0.75,"));
    host->default_bytes = 101;          /* Counted at different times. */
    assert_json(cojobs_report_hosts(c), HOST("\"coverage\":0,"));
    cluster_destroy(c);
}

#define USER(REST, CLAIMS, ENTRIES, REQUESTS, PLACES, SERVED, END)  \
    "{\"cojobs\":" REST ",\"entries\":" ENTRIES ",\"jobs\":" PLACES \
    ",\"places\":" PLACES END ",\"refused\":{\"claims\":" CLAIMS    \
    ",\"entries\":" ENTRIES ",\"requests\":" REQUESTS               \
    "},\"served_s\":" SERVED

/* An owner with a search, one with an ended search, the user of processes that
 * claim a job of another, and those that agents name. */
UNIT_TEST(users_are_owners_and_who_was_refused)
{
    const struct membership_claim claim = { .has_uid = true, .uid = 1001 };
    struct cluster *c = make_cluster();
    struct host *host = cluster_get_host(c, "h0");

    c->owner_memory_s = 1e15;
    owners_add(owners_get(&c->owners, "bob", 0), 2, c->owner_memory_s);
    owners_get(&c->owners, "nobody", 0);
    owners_refuse(&c->owners, "ann", 0, "/weight: no");
    job_refuse(shash_find_data(&c->jobs, "a/t0"), host, MEMBERSHIP_OTHER_USER,
               &claim);
    host->users[0] =
        (struct telemetry_user){ .uid = 7, .entries = 9, .refused = 9 };
    strcpy(host->users[1].pod, "c3");
    host->users[1].entries = host->users[1].refused = 5;
    host->n_users = 2;
    assert_json(
        users_report(c),
        "{\"users\":[" USER("0", "1", "0", "0", "0", "0", "") ",\"uid\":1001,\"user\":\"\",\"weight\":0}," USER("0", "0", "9", "0", "0", "0", "") ",\"uid\":7,\"user\":\"\",\"weight\":0}," USER(
            "1", "0", "0", "1", "1", "0",
            "") ",\"user\":\"ann\",\"weight\":2,\"why\":\"/weight: no\"}," USER("0",
                                                                                "0",
                                                                                "0",
                                                                                "0",
                                                                                "0",
                                                                                "2",
                                                                                "") ",\"user\":\"bob\",\"weight\":0}," USER("0",
                                                                                                                            "0",
                                                                                                                            "5",
                                                                                                                            "0",
                                                                                                                            "0",
                                                                                                                            "0",
                                                                                                                            ",\"pod\":\"c3\"") ",\"user\":\"\",\"weight\":0}]}");
    cluster_destroy(c);
}
