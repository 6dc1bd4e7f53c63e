/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/scenario.h"
#include "util.h"

#define SEARCH_OF(NAME, TRIALS) \
    "{\"name\": \"" NAME "\", \"trials\": " TRIALS "," \
    " \"space\": {\"learning_rate\": {\"min\": 0.1, \"max\": 1," \
    "  \"scale\": \"log\"}, \"width\": [16], \"batch\": [4]}," \
    " \"rungs\": [{\"iterations\": 5, \"keep\": 1}]," \
    " \"placements\": [{\"workers\": [\"h0\"], \"servers\": [\"h1\"]}]," \
    " \"model\": {\"inputs\": 8, \"hidden_layers\": 1, \"classes\": 2}," \
    " \"data\": {\"kind\": \"generated\"}}"
#define SEARCH SEARCH_OF("a", "1")
#define SEARCH_B SEARCH_OF("b", "1")
#define SEARCH_3 SEARCH_OF("a", "3")
#define HEAD "{\"name\": \"s\", "
#define TAIL(SEARCHES) \
    "\"policies\": [\"fair\"], \"searches\": [" SEARCHES "]}"
#define ONE "{\"search\": " SEARCH "}"

/* Each row is one mistake and the line that it gets. */
static const struct {
    const char *text;
    const char *error;
} bad_scenarios[] = {
    { HEAD "\"hosts\": 2, " TAIL(ONE),
      "s.json: /rate: required member is missing" },
    { HEAD "\"hosts\": 2, \"rate\": \"0Mbit\", " TAIL(ONE),
      "s.json: /rate: \"0Mbit\" is not a rate from \"1kbit\" to "
      "\"10000Gbit\", such as \"50Mbit\"" },
    { HEAD "\"hosts\": 0, \"rate\": \"50Mbit\", " TAIL(ONE),
      "s.json: /hosts: 0 is not an integer from 1 to 64" },
    { HEAD "\"hosts\": \"two\", \"rate\": \"50Mbit\", " TAIL(ONE),
      "s.json: /hosts: \"two\" is not an integer from 1 to 64" },
    { HEAD "\"hosts\": 2, \"rate\": \"2Gbit\", " TAIL(ONE),
      "s.json: /rate: 2000 Mbit/s, at most 500 Mbit/s are allowed with an "
      "MTU of 9000" },
    { HEAD "\"hosts\": 2, \"rate\": \"300Mbit\", \"mtu\": 1500, " TAIL(ONE),
      "s.json: /rate: 300 Mbit/s, at most 200 Mbit/s are allowed with an MTU "
      "of 1500" },
    { HEAD "\"hosts\": 2, \"rate\": \"50Mbit\", \"fabric\": \"wet string\", "
      TAIL(ONE),
      "s.json: /fabric: \"wet string\" is not one of \"ovs\", \"bridge\"" },
    { HEAD "\"hosts\": 2, \"rate\": \"50Mbit\", \"hots\": 1, " TAIL(ONE),
      "s.json: /hots: unknown member" },
    { HEAD "\"hosts\": 2, \"rate\": \"50Mbit\", " TAIL(""),
      "s.json: /searches: 0 elements, 1 to 64 are allowed" },
    { HEAD "\"hosts\": 2, \"rate\": \"50Mbit\", " TAIL(ONE ", " ONE),
      "s.json: /searches/1/search/name: \"a\" is the name of another "
      "search" },
    { HEAD "\"hosts\": 2, \"rate\": \"50Mbit\", "
      TAIL("{\"start_s\": -1, \"search\": " SEARCH "}"),
      "s.json: /searches/0/start_s: -1 is not a number from 0 to 3600" },
    { HEAD "\"hosts\": 1, \"rate\": \"50Mbit\", " TAIL(ONE),
      "s.json: /searches/0/search/placements/0/servers/0: no such host "
      "\"h1\"" },
    { HEAD "\"hosts\": 2, \"slots\": 1, \"rate\": \"50Mbit\", "
      TAIL(ONE ", {\"search\": " SEARCH_B "}"),
      "s.json: /searches/1/search/placements: with the searches before it "
      "this makes 2 processes on h0, at most 1 are allowed" },
    { HEAD "\"hosts\": 2, \"slots\": 2, \"rate\": \"50Mbit\", "
      TAIL("{\"search\": " SEARCH_3 "}"),
      "s.json: /searches/0/search/placements/0/workers/0: needs 3 processes "
      "on h0, at most 2 are allowed" },
};

static void
names_the_member_at_fault(void **state OVS_UNUSED)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad_scenarios); i++) {
        struct scenario *s;
        char *error = scenario_from_string("s.json", bad_scenarios[i].text,
                                           &s);

        assert_non_null(error);
        assert_string_equal(error, bad_scenarios[i].error);
        assert_null(s);
        free(error);
    }
}

static void
reads_a_complete_scenario(void **state OVS_UNUSED)
{
    struct scenario *s;
    char *error;

    error = scenario_from_string(
        "s.json",
        "{\"name\": \"s\", \"description\": \"d\", \"hosts\": 2,"
        " \"slots\": 3, \"rate\": \"50Mbit\", \"mtu\": 1500,"
        " \"fabric\": \"bridge\", \"policies\": [\"fair\", \"stage\"],"
        " \"timeout_s\": 12.5,"
        " \"searches\": [{\"start_s\": 2, \"search\": " SEARCH "}]}", &s);
    assert_null(error);
    assert_string_equal(s->name, "s");
    assert_int_equal(s->n_hosts, 2);
    assert_int_equal(s->slots, 3);
    assert_int_equal(s->rate_bps, 50000000);
    assert_int_equal(s->mtu, 1500);
    assert_int_equal(s->fabric, FABRIC_BRIDGE);
    assert_int_equal(s->n_policies, 2);
    assert_string_equal(s->policies[1], "stage");
    assert_float_equal(s->timeout_s, 12.5, 1e-9);
    assert_int_equal(s->n_searches, 1);
    assert_string_equal(s->searches[0].cojob, "a");
    assert_float_equal(s->searches[0].start_s, 2, 1e-9);
    assert_non_null(strstr(s->searches[0].text, "\"h1\""));
    scenario_destroy(s);
}

static void
reads_the_scenarios_that_we_ship(void **state OVS_UNUSED)
{
    static const char *const files[] = {
        "lab/scenarios/smoke.json", "lab/scenarios/quickstart.json",
        "lab/scenarios/early.json",
    };

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        struct scenario *s;
        char *error = scenario_from_file(files[i], &s);

        if (error) {
            fail_msg("%s", error);
        }
        scenario_destroy(s);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_the_member_at_fault),
        cmocka_unit_test(reads_a_complete_scenario),
        cmocka_unit_test(reads_the_scenarios_that_we_ship),
    };

    return cmocka_run_group_tests_name("scenario", tests, NULL, NULL);
}
