/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <string.h>

#include "cli/command.h"
#include "cli/operator/top-frame.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "tests/unit/unit-test.h"
#include "util.h"

/* The frame makes no request, for which this would be called. */
char *
command_controller_rundir(void)
{
    fail();
    return NULL;
}

#define STATUS(ALARMS)                                                   \
    "{\"state\": \"active\", \"version\": 7, \"policy\": \"stage\","     \
    " \"hosts\": 2, \"agents\": 1, \"order_lag_s\": 0.2, \"cojobs\": 1," \
    " \"jobs\": 2, \"stages\": 1, \"coverage\": 0.75, \"gap\": 1.5,"     \
    " \"bound_s\": 2,"                                                   \
    " \"alarms\": " ALARMS "}"
#define ORDER                                                               \
    "{\"order\": [{\"rank\": 0, \"cojob\": \"asha\", \"rung\": 2,"          \
    " \"level\": 1, \"jobs\": [\"asha/t0\", \"asha/t1\"],"                  \
    " \"iterations\": 200, \"iterations_left\": 50,"                        \
    " \"completion_s\": 7500, \"bottleneck\": \"h0:tx\","                   \
    " \"demand\": {\"h0:tx\": 30}}]}"
#define HOSTS(TX, RX)                                                       \
    "{\"hosts\": [{\"host\": \"h0\", \"connected\": true,"                  \
    " \"bypass\": false, \"state\": \"ordered\", \"applied\": 7,"           \
    " \"moved\": {\"tx\": " TX ", \"rx\": 0}, \"queued_bytes\": 12000,"     \
    " \"coverage\": 1}, {\"host\": \"h1\", \"connected\": false,"           \
    " \"bypass\": false, \"state\": \"fair\", \"applied\": 6,"              \
    " \"moved\": {\"tx\": 5, \"rx\": " RX "}, \"coverage\": 0.5}]}"
#define PORTS(H0, LEAF)                                                     \
    "{\"ports\": [{\"port\": \"h0:tx\", \"busy_s\": " H0 "},"               \
    " {\"port\": \"leaf0>spine0\", \"busy_s\": " LEAF "}]}"

static struct top_sample
make(double at, const char *status, const char *hosts, const char *ports)
{
    return (struct top_sample) {
        .at = at,
        .views = { json_from_string(status), json_from_string(ORDER),
                   json_from_string(hosts), json_from_string(ports) },
    };
}

/* Checks the frame of two samples that are two seconds apart. */
static void
assert_frame(struct top_screen *screen, const char *alarms,
             const char *expected)
{
    struct top_sample before = make(10, STATUS("[]"), HOSTS("1000", "9000"),
                                    PORTS("1.5", "3"));
    struct top_sample now = make(12, alarms, HOSTS("5001000", "500009000"),
                                 PORTS("2.5", "1"));
    struct ds frame = DS_EMPTY_INITIALIZER;

    top_frame(&before, &now, screen, &frame);
    assert_string_equal(ds_cstr(&frame), expected);
    ds_destroy(&frame);
    for (int i = 0; i < N_TOP_VIEWS; i++) {
        json_destroy(before.views[i]);
        json_destroy(now.views[i]);
    }
}

#define HEADER                                                         \
    "controller active, order 7 by policy stage, 1.50 x the bound\n"   \
    "2 hosts, 1 connected, at most 0.2 s behind the order; 1 cojobs, " \
    "2 jobs, "                                                         \
    "1 stages; 75% tagged; GPUs waited 0.0 of 0.0 hours\n"
#define STAGES                                                 \
    "rank  stage   jobs  level  iterations  done  ends in    " \
    "bottleneck\n"                                             \
    "   0  asha/2     2      1  150/200     75%   2 h 5 min  h0:tx\n"

UNIT_TEST(shows_rates_and_loads_between_two_samples)
{
    struct top_screen screen = { .lines = 0 };

    assert_frame(
        &screen, STATUS("[{\"text\": \"shim down on h1\"}, {}]"),
        HEADER
        "alarms: 2, shim down on h1\n"
        "\n" STAGES "\n"
        "host  state         order  jobs send    jobs receive  queued  tagged\n"
        "h1    disconnected      6  0.0 Mbit/s   2.00 Gbit/s   0 kB    50%\n"
        "h0    ordered           7  20.0 Mbit/s  0.0 Mbit/s    12 kB   100%\n"
        "\n"
        "link          load  demand\n"
        "h0:tx         50%   30 s\n"
        "leaf0>spine0  0%    0 s");
}

UNIT_TEST(what_is_unknown_is_not_a_number)
{
    struct top_screen screen = { .lines = 0 };
    struct top_sample now = make(12, "{\"state\": \"active\"}", "{}", "{}");
    struct ds frame = DS_EMPTY_INITIALIZER;

    json_destroy(now.views[TOP_ORDER]);
    now.views[TOP_ORDER] =
        json_from_string("{\"order\": [{\"cojob\": \"a\", \"iterations\": 9},"
                         " {\"cojob\": \"b\", \"iterations\": 9,"
                         " \"idle\": \"no-process\"}]}");
    top_frame(&now, &now, &screen, &frame);
    assert_non_null(strstr(ds_cstr(&frame), "unknown tagged"));
    assert_non_null(strstr(ds_cstr(&frame), "unknown/9   unknown  unknown"));
    assert_non_null(
        strstr(ds_cstr(&frame), "unknown/9   unknown  no-process"));
    ds_destroy(&frame);
    for (int i = 0; i < N_TOP_VIEWS; i++) {
        json_destroy(now.views[i]);
    }
}

UNIT_TEST(each_part_has_its_share_of_the_screen)
{
    struct top_screen screen = {
        .lines = 12,
        .columns = 20,
        .error = "it is\x1b[2J gone",
    };

    assert_frame(&screen, STATUS("[]"),
                 "controller active, o\n"
                 "2 hosts, 1 connected\n"
                 "OLD DATA: it is?[2J \n"
                 "\n"
                 "rank  stage   jobs  \n"
                 "   0  asha/2     2  \n"
                 "\n"
                 "host  state         \n"
                 "h1    disconnected  \n"
                 "\n"
                 "link          load  \n"
                 "h0:tx         50%   ");
}

UNIT_TEST(survives_a_tiny_screen)
{
    struct top_screen screen = { .lines = 2, .columns = 5 };

    assert_frame(&screen, STATUS("[]"), "contr\n2 hos");
}
