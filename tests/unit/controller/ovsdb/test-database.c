/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/ovsdb/answers.h"
#include "controller/ovsdb/database-cluster.h"
#include "controller/ovsdb/database-file.h"
#include "controller/ovsdb/database.h"
#include "controller/ovsdb/leader-search.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "svec.h"
#include "tests/unit/unit-test.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-get.h"

static bool
has_argument(const struct svec *argv, const char *argument)
{
    for (size_t i = 0; argv->names[i]; i++) {
        if (!strcmp(argv->names[i], argument)) {
            return true;
        }
    }
    return false;
}

UNIT_TEST(a_server_without_an_address_listens_on_sockets_only)
{
    struct database_site site = { .rundir = "/run/x" };
    struct svec argv = SVEC_EMPTY_INITIALIZER;

    database_argv(&database_intent, "/db", &site, &argv);
    assert_true(has_argument(&argv, "--remote=punix:/run/x/intent.sock"));
    assert_true(has_argument(&argv, "--unixctl=/run/x/intent-db.ctl"));
    assert_true(has_argument(&argv, "/db"));
    for (size_t i = 0; i < argv.n; i++) {
        assert_null(strstr(argv.names[i], "ssl"));
    }
    svec_destroy(&argv);
}

UNIT_TEST(a_server_with_an_address_trusts_controllers_and_its_relay_agents)
{
    struct database_site site = {
        .rundir = "/run/x", .address = "192.0.2.1", .tls = "/tls",
    };
    struct svec argv = SVEC_EMPTY_INITIALIZER;

    database_argv(&database_hosts, "/db", &site, &argv);
    assert_true(has_argument(&argv, LISTENER_REMOTE));
    assert_true(has_argument(&argv, "/run/x/hosts-port.db"));
    assert_true(has_argument(&argv, "--ca-cert=/tls/controllers-ca.pem"));
    assert_false(has_argument(&argv, "--ca-cert=/tls/agents-ca.pem"));
    svec_destroy(&argv);

    svec_init(&argv);
    database_relay_argv(&site, &argv);
    assert_true(has_argument(&argv, "--ca-cert=/tls/agents-ca.pem"));
    assert_false(has_argument(&argv, "--ca-cert=/tls/controllers-ca.pem"));
    assert_true(has_argument(&argv, "relay:Stagecoach_Hosts:"
                                   "unix:/run/x/hosts.sock"));
    svec_destroy(&argv);
}

/* The server reads these records. */
UNIT_TEST(a_server_with_an_address_has_a_file_with_its_port)
{
    char dir[] = "/tmp/sct-database-XXXXXX";
    struct database_site site = { .rundir = mkdtemp(dir) };
    char *file = xasprintf("%s/intent-port.db", dir);
    struct database_file check;
    struct ds text = DS_EMPTY_INITIALIZER;
    FILE *stream;
    char *error;

    assert_null(database_prepare(&database_intent, &site));
    assert_int_equal(access(file, F_OK), -1);

    site.address = "[2001:db8::1]";
    for (int i = 0; i < 2; i++) {       /* The second replaces the first. */
        assert_null(database_prepare(&database_intent, &site));
        assert_null(database_file_check(file, &check));
        assert_int_equal(check.good, check.size);
        assert_int_equal(check.n_lost, 0);
    }
    stream = fopen(file, "re");
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ds_get_line(&text, stream), 0);
    }
    fclose(stream);
    assert_non_null(strstr(ds_cstr(&text), "\"pssl:6641:[2001:db8::1]\""));
    assert_non_null(strstr(ds_cstr(&text), "\"inactivity_probe\": 1500}"));
    ds_destroy(&text);
    assert_int_equal(unlink(file), 0);

    site.rundir = "/nowhere";
    error = database_prepare(&database_intent, &site);
    assert_is(error, "/nowhere/intent-port.db: cannot be written "
                     "(No such file or directory)");
    free(file);
    assert_int_equal(rmdir(dir), 0);
}

#define STATUS                                          \
    "c4a5\n"                                            \
    "Name: Stagecoach_Intent\n"                         \
    "Address: ssl:192.0.2.2:6643\n"                     \
    "Status: cluster member\n"                          \
    "Role: follower\n"                                  \
    "Term: 7\n"                                         \
    "Leader: c4a5\n"                                    \
    "Servers:\n"                                        \
    "    d2e1 (d2e1 at ssl:192.0.2.2:6643) (self)\n"    \
    "    c4a5 (c4a5 at ssl:192.0.2.1:6643) last msg 9 ms ago\n"  \
    "    e3f2 (e3f2 at unix:/x.raft)\n"

UNIT_TEST(members_are_read_from_the_cluster_status)
{
    struct database_cluster dc;
    char *remote;

    database_cluster_parse(STATUS, &dc);
    assert_string_equal(dc.status, "cluster member");
    assert_string_equal(dc.role, "follower");
    assert_string_equal(dc.leader, "c4a5");
    assert_string_equal(dc.term, "7");
    assert_string_equal(dc.address, "ssl:192.0.2.2:6643");
    assert_int_equal(dc.members.n, 3);
    assert_string_equal(dc.members.names[0], "ssl:192.0.2.1:6643");

    /* This member by its socket, others with TLS by their client port. */
    remote = database_cluster_remote(&database_intent, "/run/x", &dc);
    assert_is(remote, "unix:/run/x/intent.sock,ssl:192.0.2.1:6641");
    database_cluster_uninit(&dc);
}

UNIT_TEST(a_reply_that_is_no_status_has_no_members)
{
    static const char *const replies[] = {
        "", "\n\n", "Role:", "Role:follower", "    a (b at", "    a at b",
    };

    for (size_t i = 0; i < ARRAY_SIZE(replies); i++) {
        struct database_cluster dc;

        database_cluster_parse(replies[i], &dc);
        assert_string_equal(dc.role, "unknown");
        assert_int_equal(dc.members.n, 0);
        database_cluster_uninit(&dc);
    }
}

UNIT_TEST(schema_versions_compare_by_number)
{
    static const struct {
        const char *schema;
        int order;              /* Sign, compared with 1.10.2. */
    } cases[] = {
        { "{\"version\": \"1.10.2\"}", 0 },
        { "{\"version\": \"1.9.9\"}", -1 },
        { "{\"version\": \"0.11.3\"}", -1 },
        { "{\"version\": \"1.10.10\"}", 1 },
        { "{\"version\": \"2.0.0\"}", 1 },
    };
    static const char *const bad[] = {
        "{}", "[]", "{\"version\": 1}", "{\"version\": \"1.2\"}",
    };
    struct database_version ours = { 1, 10, 2 };
    struct database_version v;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json *schema = json_from_string(cases[i].schema);
        int order;

        assert_true(database_version_parse(schema, &v));
        order = database_version_compare(&v, &ours);
        assert_int_equal(order < 0 ? -1 : order > 0, cases[i].order);
        json_destroy(schema);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct json *schema = json_from_string(bad[i]);

        assert_false(database_version_parse(schema, &v));
        json_destroy(schema);
    }
    assert_false(database_version_parse(NULL, &v));
}

static const char *
current_member(const struct leader_search *ls)
{
    return ls->members.names[ls->current];
}

UNIT_TEST(silent_members_have_half_a_second_each)
{
    struct leader_search ls;

    leader_search_init(&ls, NULL, "ssl:a,ssl:b,ssl:c", 0);
    assert_string_equal(current_member(&ls), "ssl:a");
    assert_false(leader_search_advance(&ls, false, false, 1000));
    assert_false(leader_search_advance(&ls, false, false, 1499));
    assert_true(leader_search_advance(&ls, false, false, 1500));
    assert_string_equal(current_member(&ls), "ssl:b");
    assert_false(leader_search_advance(&ls, false, false, 1999));
    assert_true(leader_search_advance(&ls, false, false, 2000));
    assert_string_equal(current_member(&ls), "ssl:c");
    assert_true(leader_search_advance(&ls, false, false, 2500));
    assert_string_equal(current_member(&ls), "ssl:a");
    leader_search_uninit(&ls);
}

UNIT_TEST(members_that_are_not_the_leader_have_a_fifth_of_a_second)
{
    struct leader_search ls;

    leader_search_init(&ls, NULL, "ssl:a,ssl:b,ssl:c", 0);
    assert_false(leader_search_advance(&ls, false, false, 1000));
    assert_true(leader_search_advance(&ls, false, false, 1500));

    /* "b" rejects it. */
    assert_false(leader_search_advance(&ls, true, false, 1510));
    assert_false(leader_search_advance(&ls, false, false, 1520));
    assert_int_equal(ls.next, 1700);
    assert_true(leader_search_advance(&ls, false, false, 1700));
    assert_string_equal(current_member(&ls), "ssl:c");

    /* "c" refuses it. */
    assert_false(leader_search_advance(&ls, false, true, 1710));
    assert_true(leader_search_advance(&ls, false, true, 1900));
    assert_string_equal(current_member(&ls), "ssl:a");
    leader_search_uninit(&ls);
}

UNIT_TEST(the_leader_that_is_lost_is_tried_last)
{
    struct leader_search ls;

    leader_search_init(&ls, NULL, "ssl:a,ssl:b,ssl:c", 0);
    assert_false(leader_search_advance(&ls, true, false, 1000));
    assert_int_equal(ls.next, 0);
    assert_false(leader_search_advance(&ls, true, false, 8000));

    /* At once. */
    assert_true(leader_search_advance(&ls, false, false, 9000));
    assert_string_equal(current_member(&ls), "ssl:b");
    assert_true(leader_search_advance(&ls, false, false, 9500));
    assert_string_equal(current_member(&ls), "ssl:c");
    leader_search_uninit(&ls);
}

UNIT_TEST(a_new_list_of_members_keeps_the_turn)
{
    struct leader_search ls;

    leader_search_init(&ls, NULL, "unix:a", 0);
    for (long long now = 1000; now < 9000; now += 500) {
        assert_false(leader_search_advance(&ls, false, true, now));
    }
    leader_search_set_remote(&ls, "ssl:c,unix:a,ssl:b");
    assert_string_equal(current_member(&ls), "unix:a");
    assert_false(leader_search_advance(&ls, false, false, 9000));
    assert_true(leader_search_advance(&ls, false, false, 9500));
    assert_string_equal(current_member(&ls), "ssl:b");

    /* It leaves the cluster. */
    leader_search_set_remote(&ls, "ssl:c,unix:a");
    assert_true(leader_search_advance(&ls, false, false, 10000));
    assert_string_equal(current_member(&ls), "ssl:c");
    leader_search_uninit(&ls);
}

/* A server that hangs is connected, but answers only once its contents are
 * there. */
UNIT_TEST(a_connected_server_answers_once_it_has_sent_its_contents)
{
    struct answers a = { .now = false };

    answers_run(&a, false, 0);
    assert_false(a.now);
    answers_run(&a, true, 0);
    assert_false(a.now);
    answers_run(&a, true, 1);
    assert_true(a.now);
    answers_run(&a, true, 7);
    answers_run(&a, false, 7);          /* It did not answer a probe. */
    assert_false(a.now);
    answers_run(&a, true, 7);           /* Accepted by the kernel. */
    assert_false(a.now);
    answers_run(&a, false, 7);
    answers_run(&a, true, 8);
    assert_true(a.now);
}

UNIT_TEST(a_member_that_does_not_answer_is_an_alarm)
{
    struct member_health *mh = member_health_create(&database_intent);
    struct json *alarms = json_array_create_empty();
    long long before = time_msec(), after;
    const char *text;

    member_health_set_remote(mh, "unix:/nowhere/a,unix:/nowhere/b");
    after = time_msec();
    member_health_run(mh);
    assert_int_equal(member_health_alarms(mh, before + ANSWERS_MS - 1, NULL),
                     0);
    assert_int_equal(member_health_alarms(mh, after + ANSWERS_MS, alarms), 2);
    assert_int_equal(alarms->array.n, 2);
    text = json_string(json_get(alarms->array.elems[1], "text", JSON_STRING));
    assert_ptr_equal(strstr(text, "member unix:/nowhere/b of the intent "
                                  "database has not answered since "),
                     text);

    /* A member that has left the cluster. */
    member_health_set_remote(mh, "unix:/nowhere/b,unix:/nowhere/c");
    assert_int_equal(member_health_alarms(mh, after + 2 * ANSWERS_MS, alarms),
                     2);
    for (int i = 0; i < 2; i++) {
        text = json_string(
            json_get(alarms->array.elems[2 + i], "text", JSON_STRING));
        assert_non_null(strstr(text, i ? "/nowhere/c" : "/nowhere/b"));
    }

    /* A cluster of one member. */
    member_health_set_remote(mh, "unix:/nowhere/b");
    assert_int_equal(member_health_alarms(mh, after + 2 * ANSWERS_MS, NULL),
                     0);
    json_destroy(alarms);
    member_health_destroy(mh);
}
