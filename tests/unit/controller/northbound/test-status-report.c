/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "controller/model/cluster.h"
#include "controller/northbound/views/status-report.h"
#include "openvswitch/json.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/json-get.h"

/* The clock, linked with --wrap. */
static long long int now = 1000;
long long int __wrap_time_msec(void);

long long int
__wrap_time_msec(void)
{
    return now;
}

/* A cluster without a problem. */
struct fixture {
    struct cluster *c;
    struct status_facts facts;
};

FIXTURE_SET_UP
{
    f->c = cluster_create();
    for (int i = 0; i < 8; i++) {
        char name[] = { 'h', '0' + i, '\0' };
        struct host *host = cluster_get_host(f->c, name);

        host->connected = true;
        host->named = true;
    }
    f->facts = (struct status_facts){
        .cluster = f->c,
        .intent_connected = true,
        .hosts_connected = true,
    };
}

FIXTURE_TEAR_DOWN
{
    cluster_destroy(f->c);
}

static struct host *
host(struct fixture *f, const char *name)
{
    return cluster_get_host(f->c, name);
}

/* The count of the last alarm. */
static int n_named;

/* Checks that there is one alarm, 'text', or none if it is null. */
static void
assert_alarm(const struct fixture *f, const char *text)
{
    struct json *alarms = json_array_create_empty();

    status_add_alarms(alarms, &f->facts);
    assert_int_equal(alarms->array.n, text != NULL);
    if (text) {
        assert_string_equal(
            json_string(json_get(alarms->array.elems[0], "text", JSON_STRING)),
            text);
    }
    n_named =
        text ? json_get(alarms->array.elems[0], "count", JSON_INTEGER)->integer
             : 0;
    json_destroy(alarms);
}

FIXTURE_TEST(a_healthy_cluster_has_no_alarm)
{
    assert_alarm(f, NULL);
}

FIXTURE_TEST(each_lost_database_and_a_bad_policy_raise_an_alarm)
{
    f->facts.intent_connected = false;
    assert_alarm(f, "the intent database is unreachable: new stages are not "
                 "scheduled");
    f->facts.intent_connected = true;
    f->facts.hosts_connected = false;
    assert_alarm(f, "the hosts database is unreachable: hosts keep their "
                 "last order");
    f->facts.hosts_connected = true;
    f->facts.policy_error = "p.json: /order: no";
    assert_alarm(f, "the policy file is refused, the previous policy stays "
                 "in force: p.json: /order: no");
}

FIXTURE_TEST(a_missing_agent_matters_only_where_jobs_run)
{
    host(f, "h1")->connected = false;
    assert_alarm(f, "agent disconnected on h1; live jobs run there");
    host(f, "h1")->named = false;
    assert_alarm(f, NULL);
}

FIXTURE_TEST(refused_jobs_raise_an_alarm)
{
    const struct membership_claim claim = { .has_uid = true, .uid = 1001 };
    struct cojob *cojob;
    struct job *job;

    host(f, "h3")->refused_at = now;
    assert_alarm(f,
                 "jobs were refused on h3: a user or the host has too "
                 "many, or processes name the job of another user, or copy a "
                 "connection");
    host(f, "h3")->refused_at = 0;
    host(f, "h1")->n_users = 1;
    host(f, "h1")->users[0].uid = 1001;
    host(f, "h3")->n_users = 1;
    strcpy(host(f, "h3")->users[0].pod, "c3a1-d2");
    assert_alarm(f,
                 "more than a share of a table is requested by user "
                 "1001 on h1, pod c3a1-d2 on h3: others lose nothing by it");
    host(f, "h1")->n_users = host(f, "h3")->n_users = 0;

    cluster_intent_begin(f->c);
    cojob = cluster_put_cojob(f->c, "asha", 1, true);
    job = cojob_put_job(f->c, cojob, "t0", true, 1, 0);
    cluster_intent_end(f->c);
    cojob->uid = 1000;
    job_refuse(job, host(f, "h1"), MEMBERSHIP_OTHER_USER, &claim);
    assert_alarm(f, "claims of processes do not count: asha/t0 on "
                    "h1 (of user 1001, and the owner of asha is user 1000)");
    job_refuse(job, host(f, "h1"), MEMBERSHIP_UNREGISTERED, &claim);
    assert_alarm(f, "claims of processes do not count: asha/t0 on "
                    "h1 (known by their environment only, which the policy's "
                    "/trust does not admit)");
    job_admit(job, host(f, "h1"));
    assert_alarm(f, NULL);

    job->reports_refused_at = now;
    assert_alarm(f, "progress reports of asha/t0 were refused: stagecoach "
                    "explain JOB has the reason");
}

FIXTURE_TEST(an_alarm_lists_five_hosts_in_order)
{
    for (int i = 4; i >= 0; i--) {
        char name[] = { 'h', '0' + i, '\0' };

        host(f, name)->bypass = true;
    }
    assert_alarm(f, "shim down on h0, h1, h2, h3, h4: the kernel bypass "
                 "forwards traffic without priorities");
    host(f, "h5")->bypass = true;
    host(f, "h6")->bypass = true;
    assert_alarm(f, "shim down on h0, h1, h2, h3, h4 and others: the kernel "
                 "bypass forwards traffic without priorities");
    assert_int_equal(n_named, 7);
}

/* What one host does that none should, and for how long its alarm stays. */
FIXTURE_TEST(a_faulty_host_raises_an_alarm)
{
    struct host *h = host(f, "h2");

    f->c->generation = 7;
    h->generation = INT64_MAX;
    assert_alarm(f, "orders of this generation are refused for a newer one by "
                    "h2 (9223372036854775807): stagecoach controller "
                    "raise-generation goes above");
    h->generation = 7;
    h->oversized_at = now;
    assert_alarm(f, "the row of h2 in the hosts database was larger than an "
                    "agent writes and has been dropped");
    h->oversized_at = 0;
    h->later = true;
    assert_alarm(f, "an agent of a later version than this controller runs on "
                    "h2: update the controllers first");
    h->later = false;
    h->silent_at = now;
    assert_alarm(f, "the agent is connected and sends nothing on h2: restart "
                    "it, or find what blocks it");
    now += 60000;
    assert_alarm(f, NULL);
}

FIXTURE_TEST(two_machines_of_one_name_raise_an_alarm)
{
    host_take_turn(host(f, "h2"), "ssl:10.0.0.2", "ssl:10.0.0.1");
    assert_alarm(f, "two machines report in turns as h2 (ssl:10.0.0.1, "
                    "ssl:10.0.0.2): give one of them another name and "
                    "certificate");
    now += 600000;
    assert_alarm(f, NULL);

    /* An agent that starts again, and one that fights for the name. */
    for (int i = 0; i < 2; i++) {
        host_take_turn(host(f, "h3"), "ssl:10.0.0.1", "ssl:10.0.0.1");
        assert_alarm(f, NULL);
    }
    host_take_turn(host(f, "h3"), "ssl:10.0.0.1", "ssl:10.0.0.1");
    assert_alarm(f, "two machines report in turns as h3 (ssl:10.0.0.1, "
                    "ssl:10.0.0.1): give one of them another name and "
                    "certificate");
}

FIXTURE_TEST(a_first_label_of_two_hosts_raises_an_alarm)
{
    host(f, "h2.a");
    assert_alarm(f, NULL);
    host(f, "h2.b");
    assert_alarm(f, "jobs or the topology name a host by a first label that "
                    "two hosts have: h2 (h2.b, h2.a): give the whole name");
    host(f, "h2")->reported_at = now;
    assert_alarm(f, NULL);
}

FIXTURE_TEST(a_host_that_lags_raises_an_alarm)
{
    host_set_applied(host(f, "h2"), 4);
    host_set_wanted(host(f, "h2"), 5);
    assert_alarm(f, NULL);
    now += CLUSTER_LAG_MS + 1;
    assert_alarm(f, "the last order is not in force on h2");
    host(f, "h2")->connected = false;
    assert_alarm(f, "agent disconnected on h2; live jobs run there");
    host(f, "h2")->connected = true;
    host_set_applied(host(f, "h2"), 5);
    assert_alarm(f, NULL);
}

FIXTURE_TEST(idle_and_misstated_stages_raise_an_alarm)
{
    struct stage *stage;

    cluster_intent_begin(f->c);
    stage = cojob_put_stage(f->c, cluster_put_cojob(f->c, "a", 1, true), 0, 1,
                            0, 100);
    cluster_intent_end(f->c);
    assert_alarm(f, NULL);
    stage->idle = STAGE_NO_PROCESS;
    assert_alarm(f, "stages behind all others: a/0 (no process of their jobs "
                    "has joined)");
    stage->idle = STAGE_BUSY;
    stage->claim.bytes_ratio = 10;
    assert_alarm(f, "stages announced wrongly: a/0 (10 times the bytes of an "
                    "iteration); what is counted decides");
}

FIXTURE_TEST(unknown_traffic_counts_in_all_hosts_and_not_while_observing)
{
    /* Less than 10 MB prove nothing. */
    host(f, "h0")->ip_bytes = 9000000;
    host(f, "h0")->default_bytes = 9000000;
    assert_alarm(f, NULL);
    host(f, "h1")->ip_bytes = 9000000;
    assert_alarm(f, "50 % of the traffic belongs to no known job");
    f->facts.observes = true;
    assert_alarm(f, NULL);
    f->facts.observes = false;
    host(f, "h1")->ip_bytes = 91000000;
    assert_alarm(f, NULL);
}
