/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/hosts/telemetry.h"
#include "controller/model/cluster.h"
#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "openvswitch/vlog.h"
#include "stream.h"
#include "tests/unit/unit-test.h"
#include "util.h"

UNIT_TEST(tcp_is_only_allowed_on_the_loopback)
{
    static const struct {
        const char *remote;
        bool allowed;
    } cases[] = {
        { "punix:/run/x.sock", true },
        { "pssl:6643", true },
        { "pssl:6643:10.0.0.1", true },
        { "ptcp:6643:127.0.0.1", true },
        { "ptcp:6643:127.1.2.3", true },
        { "ptcp:6643:[::1]", true },
        { "ptcp:6643", false },
        { "ptcp:6643:0.0.0.0", false },
        { "ptcp:6643:10.0.0.1", false },
        { "ptcp:6643:[::]", false },
        { "ptcp:", false },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *error = telemetry_check_remote(cases[i].remote);

        if (!error != cases[i].allowed) {
            fail_msg("%s: %s", cases[i].remote, error ? error : "allowed");
        }
        free(error);
    }
}

UNIT_TEST(a_client_speaks_for_one_host)
{
    static const struct {
        const char *certificate, *known, *host, *error;
    } cases[] = {
        { NULL, NULL, "h0", NULL },
        { NULL, "h0", "h0", NULL },
        { "h0", NULL, "h0", NULL },
        { "h0", "h0", "h0", NULL },
        { "h1", NULL, "h0",
          "the certificate is of \"h1\" and not of \"h0\"" },
        { "h1", "h0", "h0",
          "the certificate is of \"h1\" and not of \"h0\"" },
        { NULL, "h0", "h1", "'host' was h0 and is now h1" },
        { "h0", "h0", "h1", "'host' was h0 and is now h1" },
        { "", NULL, "h0", "the certificate is of \"\" and not of \"h0\"" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *error = telemetry_check_host(
            cases[i].certificate ? "pssl:6650" : "punix:/run/x.sock",
            cases[i].certificate, cases[i].known, cases[i].host);

        if (cases[i].error) {
            assert_non_null(error);
            assert_string_equal(error, cases[i].error);
        } else {
            assert_null(error);
        }
        free(error);
    }
}

UNIT_TEST(a_certificate_without_a_name_speaks_for_no_host)
{
    char *error = telemetry_check_host("pssl:6650", NULL, NULL, "h0");

    assert_non_null(error);
    free(error);
}

#define HEAD(HOST)                                                   \
    "[{\"version\": 1, \"host\": \"" HOST "\", \"state\": \"fair\"," \
    " \"applied\": 0, \"jobs\": []"
#define COUNTERS ", \"ports\": {}, \"ip_bytes\": 0, \"default_bytes\": 0"

struct fixture {
    char socket[40];
    struct cluster *c;
    struct telemetry *t;
    struct jsonrpc *agents[3];
};

FIXTURE_SET_UP
{
    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_OFF);
    snprintf(f->socket, sizeof f->socket, "unix:/tmp/sct-telemetry-%ld",
             (long) getpid());
    f->c = cluster_create();
    assert_no_error(telemetry_create(f->socket, 2, f->c, &f->t));
    telemetry_run(f->t, true);
}

FIXTURE_TEAR_DOWN
{
    for (size_t i = 0; i < ARRAY_SIZE(f->agents); i++) {
        jsonrpc_close(f->agents[i]);
    }
    telemetry_destroy(f->t);
    cluster_destroy(f->c);
}

/* Lets agent 'i', which connects if it is not, report 'text'. */
static void
report(struct fixture *f, int i, const char *text)
{
    struct stream *stream;

    if (!f->agents[i]) {
        assert_int_equal(stream_open(f->socket, &stream, 0), 0);
        f->agents[i] = jsonrpc_open(stream);
    }
    jsonrpc_send(f->agents[i],
                 jsonrpc_create_notify("telemetry", json_from_string(text)));
    telemetry_run(f->t, true);
}

/* Returns what agent 'i' has received, which the caller frees: a message, "-"
 * without one, or "" if its connection has ended. */
static char *
receive(struct fixture *f, int i)
{
    struct jsonrpc_msg *msg;
    int error = jsonrpc_recv(f->agents[i], &msg);
    char *text;

    if (error) {
        return xstrdup(error == EAGAIN ? "-" : "");
    }
    text = json_to_string(msg->params, JSSF_SORT);
    jsonrpc_msg_destroy(msg);
    return text;
}

FIXTURE_TEST(a_lease_says_how_often_counters_are_wanted)
{
    report(f, 0, HEAD("h0") COUNTERS "}]");
    telemetry_send_leases(f->t, 3, 17, 10000);
    assert_is(receive(f, 0), "[{\"counters_ms\":200,\"generation\":3,"
                             "\"lease_ms\":10000,\"report_ms\":1000,"
                             "\"version\":17}]");
    report(f, 0, HEAD("h0") "}]");
    telemetry_send_leases(f->t, 3, 18, 10000); /* Not due yet. */
    assert_is(receive(f, 0), "-");
    assert_int_equal(telemetry_n_agents(f->t), 1);
}

/* Gives h0 order 'version' and pushes. */
static int64_t
push(struct fixture *f, int64_t version)
{
    struct host *host = cluster_get_host(f->c, "h0");

    free(host->order);
    host->order = xstrdup("{\"host\":\"h0\"}");
    host->wanted_generation = 3;
    host_set_wanted(host, version);
    return telemetry_push(f->t, version);
}

#define ORDER(VERSION) \
    "[{\"row\":{\"host\":\"h0\",\"version\":" VERSION "},\"version\":1}]"
#define HAS(GENERATION, VERSION)                                                     \
    "[{\"version\": 1, \"host\": \"h0\", \"state\": \"fair\", \"applied\": " VERSION \
    ", \"applied_generation\": " GENERATION ", \"jobs\": []" COUNTERS "}]"

FIXTURE_TEST(an_agent_gets_each_order_once_and_after_a_connect_what_it_lacks)
{
    static const struct {
        const char *report, *received;
    } connects[] = {
        { HEAD("h0") COUNTERS "}]", ORDER("8") },
        { HAS("3", "8"), "-" },
        { HAS("3", "7"), ORDER("8") },
        { HAS("2", "8"), ORDER("8") }, /* Of another leader. */
        { HAS("2", "9"), ORDER("8") },
    };

    report(f, 0, HEAD("h0") COUNTERS "}]");
    report(f, 1, HEAD("h1") COUNTERS "}]"); /* Is to have no order. */
    assert_int_equal(push(f, 7), 7);
    assert_is(receive(f, 0), ORDER("7"));
    assert_int_equal(telemetry_push(f->t, 7), 7);
    assert_is(receive(f, 0), "-");
    assert_is(receive(f, 1), "-");
    assert_int_equal(push(f, 8), 8);
    assert_is(receive(f, 0), ORDER("8"));
    for (size_t i = 0; i < ARRAY_SIZE(connects); i++) {
        jsonrpc_close(f->agents[0]);
        f->agents[0] = NULL;
        telemetry_run(f->t, true);
        report(f, 0, connects[i].report);
        telemetry_run(f->t, true);
        assert_int_equal(telemetry_push(f->t, 8), 8);
        assert_is(receive(f, 0), connects[i].received);
    }
}

FIXTURE_TEST(the_first_report_has_counters)
{
    report(f, 0, HEAD("h0") "}]");
    assert_is(receive(f, 0), "");
    assert_int_equal(telemetry_n_agents(f->t), 0);
}

FIXTURE_TEST(a_host_that_connects_again_stays_connected)
{
    const struct host *host;
    unsigned int changes;

    report(f, 0, HEAD("h0") COUNTERS "}]");
    host = cluster_get_host(f->c, "h0");
    changes = f->c->changes;
    report(f, 1, HEAD("h0") COUNTERS "}]");
    assert_is(receive(f, 0), "");
    assert_is(receive(f, 1), "-");
    assert_true(host->connected && f->c->changes == changes);
    assert_int_equal(telemetry_n_agents(f->t), 1);
}

FIXTURE_TEST(there_are_places_for_two_agents)
{
    report(f, 0, HEAD("h0") COUNTERS "}]");
    report(f, 1, HEAD("h1") COUNTERS "}]");
    report(f, 2, HEAD("h2") COUNTERS "}]");
    assert_false(cluster_get_host(f->c, "h2")->connected);
    jsonrpc_close(f->agents[0]);
    f->agents[0] = NULL;
    for (int i = 0; i < 3; i++) { /* It ends, h2 is accepted, and read. */
        telemetry_run(f->t, true);
    }
    assert_true(cluster_get_host(f->c, "h2")->connected);
    assert_int_equal(telemetry_n_agents(f->t), 2);
}

FIXTURE_TEST(a_standby_has_no_agents)
{
    report(f, 0, HEAD("h0") COUNTERS "}]");
    telemetry_run(f->t, false);
    assert_is(receive(f, 0), "");
    assert_false(cluster_get_host(f->c, "h0")->connected);
    report(f, 1, HEAD("h0") COUNTERS "}]");
    assert_int_equal(telemetry_n_agents(f->t), 1);
}
