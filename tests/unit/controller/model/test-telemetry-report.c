/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "controller/model/telemetry-report.h"
#include "openvswitch/json.h"
#include "tests/unit/unit-test.h"
#include "util.h"

/* A message that is right but for REST, which comes last. */
#define MESSAGE(HOST, PORTS, JOBS, REST)                                \
    "[{\"version\": 1, \"host\": \"" HOST "\", \"time\": 1,"             \
    " \"state\": \"ordered\", \"applied\": 17, \"ports\": " PORTS ","    \
    " \"jobs\": " JOBS ", " REST "}]"
#define BYTES "\"ip_bytes\": 10, \"default_bytes\": 4"
#define LONG "ip-10-0-12-34.us-west-2.compute.internal.a-name-of-64-characters"

static char *
parse(const char *text, struct telemetry_report **report)
{
    struct json *json = json_from_string(text);
    char *error = telemetry_report_from_json(json, report);

    json_destroy(json);
    return error;
}

UNIT_TEST(reads_what_the_interface_says)
{
    struct telemetry_report *r;

    assert_null(parse(
        MESSAGE(
            LONG,
            "{\"uplink\": {\"tx_bytes\": 1, \"rx_bytes\": 2,"
            " \"capacity_bps\": 50000000}}",
            "[{\"job\": \"" LONG "/_t0\", \"tx_bytes\": 5,"
            " \"rx_bytes\": 6,"
            " \"period_s\": 0.4, \"burst_bytes\": 9000, \"duty\": 1,"
            " \"busy_s\": 3.5, \"waited_s\": 1.25, \"gpus\": 4,"
            " \"iteration\": 12, \"stage\": 0, \"metric\": \"eval loss@5\","
            " \"value\": 0.41},"
            " {\"job\": \"asha/t1\", \"tx_bytes\": 7, \"rx_bytes\": 8,"
            " \"sent_to\": [{\"remote\": \"10.77.0.3\", \"bytes\": 5}],"
            " \"counted\": 3}]",
            BYTES),
        &r));
    assert_string_equal(r->host, LONG);
    assert_string_equal(r->state, "ordered");
    assert_int_equal(r->applied, 17);
    assert_int_equal(simap_get(&r->ports, "uplink"), 50000);
    assert_int_equal(r->ip_bytes, 10);
    assert_int_equal(r->default_bytes, 4);
    assert_false(r->bypass);
    assert_int_equal(r->queued_bytes, -1);
    assert_int_equal(r->time, 1);
    assert_int_equal(r->n_jobs, 2);
    assert_int_equal(r->jobs[0].n_remotes, 0);
    assert_int_equal(r->jobs[1].n_remotes, 1);
    assert_int_equal(r->jobs[1].remotes[0].ip, 0x0a4d0003);
    assert_int_equal(r->jobs[1].remotes[0].bytes, 5);
    assert_string_equal(r->jobs[0].name, LONG "/_t0");
    assert_int_equal(r->jobs[0].tx_bytes, 5);
    assert_int_equal(r->jobs[0].rx_bytes, 6);
    assert_int_equal(r->jobs[0].iteration, 12);
    assert_string_equal(r->jobs[0].metric, "eval loss@5");
    assert_true(r->jobs[0].value == 0.41);
    assert_true(r->jobs[0].period == 0.4);
    assert_int_equal(r->jobs[0].burst_bytes, 9000);
    assert_true(r->jobs[0].duty == 1);
    assert_true(r->jobs[0].busy == 3.5);
    assert_true(r->jobs[0].waited == 1.25);
    assert_true(r->jobs[1].waited == 0);
    assert_int_equal(r->jobs[0].gpus, 4);
    assert_int_equal(r->jobs[1].gpus, 0);
    assert_int_equal(r->port_bytes[0], 1);
    assert_int_equal(r->port_bytes[1], 2);
    assert_true(r->jobs[1].period == 0);
    assert_int_equal(r->jobs[0].estimated, -1);
    assert_int_equal(r->jobs[1].iteration, -1);
    assert_int_equal(r->jobs[1].estimated, 3);
    assert_null(r->jobs[1].metric);
    telemetry_report_destroy(r);

    assert_null(
        parse(MESSAGE("h0", "{}", "[]",
                      BYTES ", \"bypass\": true,"
                            " \"queued_bytes\": 7, \"users\": ["
                            "{\"uid\": 7, \"entries\": 1, \"refused\": 2},"
                            "{\"pod\": \"a-1\", \"entries\": 3,"
                            " \"refused\": 4}]"),
              &r));
    assert_int_equal(r->n_users, 2);
    assert_int_equal(r->users[0].uid, 7);
    assert_int_equal(r->users[0].refused, 2);
    assert_string_equal(r->users[1].pod, "a-1");
    assert_int_equal(r->users[1].entries, 3);
    assert_true(r->bypass);
    assert_int_equal(r->queued_bytes, 7);
    telemetry_report_destroy(r);
}

#define EIGHT "[1, 2, 3, 4, 5, 6, 7, 8]"
#define SHIM(RESTARTS, LEVELS)                                         \
    BYTES ", \"shim\": {\"tx_packets\": 1, \"tx_bytes\": 2,"           \
          " \"rx_packets\": 3, \"rx_bytes\": 4, \"queue_dropped\": 5," \
          " \"port_dropped\": 6, \"policed\": 7,"                      \
          " \"malformed\": 8, \"port_restarts\": " RESTARTS ","        \
          " \"cc_flows\": 10, \"cc_windows\": 11, \"cc_grants\": 12,"  \
          " \"cc_marks\": 13, \"untagged\": 14,"                       \
          " \"cc_forged\": 15, \"cc_refused\": 16,"                    \
          " \"cc_repeated\": 17, \"cc_disobeyed\": 18,"                \
          " \"level_bytes\": " LEVELS ", \"level_dropped\": " LEVELS "}"

UNIT_TEST(reads_what_a_shim_counts)
{
    struct telemetry_report *r;

    assert_null(parse(MESSAGE("h0", "{}", "[]", BYTES), &r));
    assert_false(r->shim.known);
    telemetry_report_destroy(r);
    assert_null(parse(MESSAGE("h0", "{}", "[]", SHIM("9", EIGHT)), &r));
    assert_true(r->shim.known);
    for (size_t i = 0; i < SHIM_COUNTERS_N; i++) {
        assert_int_equal(r->shim.values[i], i + 1);
    }
    assert_int_equal(r->shim.level_bytes[7], 8);
    assert_int_equal(r->shim.level_dropped[0], 1);
    telemetry_report_destroy(r);
}

UNIT_TEST(counters_may_be_missing)
{
    struct telemetry_report *r;

    assert_null(parse("[{\"version\": 1, \"host\": \"h0\","
                      " \"state\": \"fair\", \"applied\": 1,"
                      " \"jobs\": []}]",
                      &r));
    assert_false(r->has_counters);
    telemetry_report_destroy(r);
    assert_null(parse(MESSAGE("h0", "{}", "[]", BYTES), &r));
    assert_true(r->has_counters);
    telemetry_report_destroy(r);
}

UNIT_TEST(lets_members_of_later_versions_pass)
{
    struct telemetry_report *r;

    assert_null(parse(MESSAGE("h0", "{}", "[]", BYTES ", \"new\": [1]"),
                      &r));
    telemetry_report_destroy(r);
}

/* A message of one job, with REST before its bytes. */
#define JOB(NAME, TX, REST)                                          \
    MESSAGE("h0", "{}",                                              \
            "[{" REST "\"job\": \"" NAME "\", \"tx_bytes\": " TX "," \
            " \"rx_bytes\": 1}]",                                    \
            BYTES)

/* Each row is one message of a broken or hostile agent, and a part of the log
 * line about it. */
static const struct {
    const char *text;
    const char *error;
} bad_messages[] = {
    { MESSAGE("h0", "{}", "[]", SHIM("-1", EIGHT)),
      "'port_restarts' is not a count" },
    { MESSAGE("h0", "{}", "[]", SHIM("\"x\"", EIGHT)),
      "'port_restarts' is not a count" },
    { MESSAGE("h0", "{}", "[]", SHIM("1", "[1, 2, 3, 4, 5, 6, 7]")),
      "are not 8 counts" },
    { MESSAGE("h0", "{}", "[]", BYTES ", \"shim\": []"), "" },
    { MESSAGE("h0", "{}", "[]", BYTES ", \"shim\": {}"),
      "'tx_packets' is not a count" },
    { "[]", "exactly one parameter" },
    { "{}", "exactly one parameter" },
    { "[1, 2]", "exactly one parameter" },
    { "[1]", "" },
    { "[{}]", "" },
    { "[{\"version\": 2, \"host\": \"h0\", \"state\": \"fair\","
      " \"applied\": 1, \"jobs\": []}]",
      "telemetry of version 2, and this controller reads 1" },
    { "[{\"version\": 3}]", "telemetry of version 3" },
    { MESSAGE("", "{}", "[]", BYTES), "'host' is not a name" },
    { MESSAGE("../etc", "{}", "[]", BYTES), "'host' is not a name" },
    { MESSAGE(LONG LONG LONG LONG, "{}", "[]", BYTES),
      "'host' is not a name" },
    { MESSAGE("h0", "[]", "[]", BYTES), "" },
    { MESSAGE("h0", "{}", "{}", BYTES), "" },
    { MESSAGE("h0", "{\"up\": 1}", "[]", BYTES), "" },
    { MESSAGE("h0", "{\"up\": {\"capacity_bps\": 0}}", "[]", BYTES),
      "'capacity_bps' is not from" },
    { MESSAGE("h0", "{\"up\": {\"capacity_bps\": 9000000000000}}", "[]",
              BYTES),
      "'capacity_bps' is not from" },
    { MESSAGE("h0", "{\"u p\": {\"capacity_bps\": 9000}}", "[]", BYTES),
      "not a name" },
    { MESSAGE("h0", "{}", "[1]", BYTES), "" },
    { JOB("a", "1", ""), "COJOB/JOB" },
    { JOB("a/b/c", "1", ""), "COJOB/JOB" },
    { JOB("a/b", "1",
          "\"sent_to\": [{\"remote\": \"h1\","
          " \"bytes\": 1}], "),
      "'remote' is not an IP address" },
    { JOB("a/b", "-1", ""), "'tx_bytes' is negative" },
    { JOB("a/b", "1", "\"iteration\": -5, "), "'iteration' is negative" },
    { JOB(LONG LONG LONG LONG "/b", "1", ""), "COJOB/JOB" },
    { JOB("a/b", "1", "\"metric\": \"\", "), "'metric' is not a name" },
    { JOB("a/b", "1", "\"value\": \"1\", "), "" },
    { JOB("a/b", "1.5", ""), "" },
    { JOB("a/b", "1", "\"period_s\": -0.1, "),
      "'period_s' is not from 0 to 86400" },
    { JOB("a/b", "1", "\"duty\": 1.5, "), "'duty' is not from 0 to 1" },
    { MESSAGE("h0", "{}", "[]", "\"ip_bytes\": 1"), "" },
    { MESSAGE("h0", "{}", "[]",
              BYTES ", \"users\": [{\"entries\": 1, \"refused\": 1}]"),
      "" },
    { MESSAGE("h0", "{}", "[]",
              BYTES ", \"users\": [{\"pod\": \"a b\", \"entries\": 1,"
                    " \"refused\": 1}]"),
      "'pod' is not an id" },
};

UNIT_TEST(refuses_what_is_wrong)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad_messages); i++) {
        struct telemetry_report *r;
        char *error = parse(bad_messages[i].text, &r);

        if (!error || !strstr(error, bad_messages[i].error)
            || strlen(error) > 140) {
            fail_msg("%s: %s", bad_messages[i].text,
                     error ? error : "accepted");
        }
        assert_null(r);
        free(error);
    }
}

UNIT_TEST(refuses_too_many_jobs)
{
    struct json *jobs = json_array_create_empty();
    struct telemetry_report *r;
    struct json *json;

    json = json_from_string(MESSAGE("h0", "{}", "[]", BYTES));
    for (int i = 0; i < TELEMETRY_MAX_JOBS + 1; i++) {
        json_array_add(jobs, json_object_create());
    }
    json_object_put(json->array.elems[0], "jobs", jobs);
    assert_says(telemetry_report_from_json(json, &r), "1025 jobs");
    json_destroy(json);
}
