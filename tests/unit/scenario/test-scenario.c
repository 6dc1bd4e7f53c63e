/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <string.h>

#include "scenario/scenario.h"
#include "tests/unit/unit-test.h"
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
#define COJOB_OF(NAME, STAGES, HOSTS, COMMAND) \
    "{\"name\": \"" NAME "\", \"stages\": [" STAGES "]," \
    " \"jobs\": [{\"name\": \"t0\", \"hosts\": [" HOSTS "]," \
    "  \"command\": [" COMMAND "]}]}"
#define LOGS(LOG) \
    "{\"name\": \"c\", \"stages\": [" UP_TO_5 "]," \
    " \"jobs\": [{\"name\": \"t0\", \"hosts\": [\"h0\"]," \
    "  \"command\": [\"a\"], \"log\": \"" LOG "\"}]}"
#define UP_TO_5 "{\"iterations\": 5}"
#define COJOBS(COJOBS_) \
    HEAD "\"hosts\": 2, \"rate\": \"50Mbit\", \"slots\": 2," \
    " \"policies\": [\"fair\"], \"cojobs\": [" COJOBS_ "]}"

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
      "s.json: /rate: 2000 Mbit/s; expected at most 500 Mbit/s with an "
      "MTU of 9000, unless only the kernel forwards" },
    { HEAD "\"hosts\": 2, \"rate\": \"3Gbit\", \"actuator\": \"bpf\","
           " \"fabric\": \"bridge\", " TAIL(ONE),
      "s.json: /rate: 3000 Mbit/s; expected at most 2500 Mbit/s with an "
      "MTU of 9000" },
    { HEAD "\"hosts\": 2, \"rate\": \"300Mbit\", \"mtu\": 1500, " TAIL(ONE),
      "s.json: /rate: 300 Mbit/s; expected at most 200 Mbit/s with an MTU "
      "of 1500, unless only the kernel forwards" },
    { HEAD
      "\"hosts\": 2, \"rate\": \"50Mbit\", \"fabric\": \"wet string\", " TAIL(
          ONE),
      "s.json: /fabric: \"wet string\" is not one of \"ovs\", \"bridge\"" },
    { HEAD "\"hosts\": 2, \"rate\": \"50Mbit\", \"fabric\": \"bridge\","
           " \"datapath\": \"kernel\", " TAIL(ONE),
      "s.json: /datapath: \"kernel\" is of Open vSwitch; expected the fabric "
      "\"ovs\" or one with \"leaf_spine\"" },
    { HEAD
      "\"hosts\": 4, \"rate\": \"50Mbit\","
      " \"fabric\": {\"leaf_spine\": {\"leaves\": 3, \"spines\": 1}}, " TAIL(
          ONE),
      "s.json: /fabric/leaf_spine/leaves: 3 leaves; expected a divisor of the "
      "number of hosts" },
    { HEAD "\"hosts\": 4, \"rate\": \"50Mbit\","
           " \"fabric\": {\"leaf_spine\": {\"leaves\": 2, \"spines\": 1,"
           " \"over\": 0.5}}, " TAIL(ONE),
      "s.json: /fabric/leaf_spine/over: 0.5 is not a number from 1 to 100" },
    { HEAD
      "\"hosts\": 4, \"rate\": \"50Mbit\","
      " \"fabric\": {\"spine_leaf\": {\"leaves\": 2, \"spines\": 1}}, " TAIL(
          ONE),
      "s.json: /fabric/leaf_spine: required member is missing" },
    { HEAD "\"hosts\": 2, \"rate\": \"50Mbit\", \"hots\": 1, " TAIL(ONE),
      "s.json: /hots: unknown member" },
    { HEAD "\"hosts\": 2, \"rate\": \"50Mbit\", " TAIL(""),
      "s.json: /searches: 0 elements; expected 1 to 64" },
    { HEAD "\"hosts\": 2, \"rate\": \"50Mbit\", " TAIL(ONE ", " ONE),
      "s.json: /searches/1/search/name: \"a\" is the name of another "
      "search" },
    { HEAD "\"hosts\": 2, \"rate\": \"50Mbit\", " TAIL(
          "{\"start_s\": -1, \"search\": " SEARCH "}"),
      "s.json: /searches/0/start_s: -1 is not a number from 0 to 3600" },
    { HEAD "\"hosts\": 1, \"rate\": \"50Mbit\", " TAIL(ONE),
      "s.json: /searches/0/search/placements/0/servers/0: no such host "
      "\"h1\"" },
    { HEAD "\"hosts\": 2, \"slots\": 1, \"rate\": \"50Mbit\", " TAIL(
          ONE ", {\"search\": " SEARCH_B "}"),
      "s.json: /searches/1/search/placements: with the searches before it "
      "this makes 2 processes on h0; expected at most 1" },
    { HEAD "\"hosts\": 2, \"slots\": 2, \"rate\": \"50Mbit\", " TAIL(
          "{\"search\": " SEARCH_3 "}"),
      "s.json: /searches/0/search/placements/0/workers/0: needs 3 processes "
      "on h0; expected at most 2" },
    { COJOBS(COJOB_OF("c", UP_TO_5 ", " UP_TO_5, "\"h0\"", "\"a\"")),
      "s.json: /cojobs/0/stages/1/iterations: 5 is not an integer from 6 to "
      "1000000000" },
    { COJOBS(COJOB_OF("c", UP_TO_5, "\"h2\"", "\"a\"")),
      "s.json: /cojobs/0/jobs/0/hosts/0: no such host \"h2\"" },
    { COJOBS(COJOB_OF("c", UP_TO_5, "\"h0\"", "")),
      "s.json: /cojobs/0/jobs/0/command: 0 elements; expected 1 to 256" },
    { COJOBS(COJOB_OF("c", UP_TO_5, "\"h0\"", "\"a\", \"%%%runk\"")),
      "s.json: /cojobs/0/jobs/0/command/1: \"%runk\" does not begin with one "
      "of %rank, %world, %hosts, %master, %port, %scenario, %log, %%" },
    { COJOBS(LOGS("csv:%lag/a,iteration=n")),
      "s.json: /cojobs/0/jobs/0/log: \"%lag/a,iteration=n\" does not begin "
      "with one of %rank, %world, %hosts, %master, %port, %scenario, %log, "
      "%%" },
    { COJOBS(LOGS("cvs:%log/a,iteration=n")),
      "s.json: /cojobs/0/jobs/0/log: \"cvs:/log/a,iteration=n\" begins with "
      "no format; expected json-lines:PATH, csv:PATH, regex:PATH or "
      "mlflow:PATH" },
    { COJOBS(COJOB_OF("c", UP_TO_5, "\"h0\"",
                      "\"a\"") ", " COJOB_OF("c", UP_TO_5, "\"h1\"", "\"a\"")),
      "s.json: /cojobs/1/name: \"c\" is the name of another cojob" },
    { COJOBS(COJOB_OF("c", UP_TO_5, "\"h0\", \"h0\", \"h0\"", "\"a\"")),
      "s.json: /cojobs/0/jobs: with all before them these make 3 processes "
      "on h0; expected at most 2" },
    { HEAD "\"hosts\": 2, \"rate\": \"50Mbit\", \"cojobs\": [" COJOB_OF(
          "a", UP_TO_5, "\"h0\"", "\"a\"") "], " TAIL(ONE),
      "s.json: /cojobs/0/name: \"a\" is the name of a search" },
};

static void
assert_refused(const char *text, const char *message)
{
    struct scenario *s;

    assert_is(scenario_from_string("s.json", text, NULL, &s), message);
    assert_null(s);
}

UNIT_TEST(names_the_member_at_fault)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad_scenarios); i++) {
        assert_refused(bad_scenarios[i].text, bad_scenarios[i].error);
    }
}

UNIT_TEST(refuses_what_orders_no_traffic)
{
    assert_refused(HEAD "\"hosts\": 2, \"rate\": \"50Mbit\","
                        " \"actuator\": \"xdp\", " TAIL(ONE),
                   "s.json: /actuator: \"xdp\" is not one of \"shim\", "
                   "\"bpf\", \"observe\"");
    assert_refused(
        HEAD "\"hosts\": 2, \"rate\": \"50Mbit\","
             " \"actuator\": \"bpf\", \"cc\": true, " TAIL(ONE),
        "s.json: /cc: true is of shims; expected false with the actuator "
        "\"bpf\"");
    assert_refused(HEAD "\"hosts\": 2, \"rate\": \"50Mbit\","
                        " \"actuator\": [\"bpf\"], " TAIL(ONE),
                   "s.json: /actuator: 1 elements; expected 2 to 2");
    assert_refused(HEAD "\"hosts\": 2, \"rate\": \"50Mbit\","
                        " \"actuator\": [\"bpf\", \"xdp\"], " TAIL(ONE),
                   "s.json: /actuator/1: \"xdp\" is not one of \"shim\", "
                   "\"bpf\", \"observe\", \"none\"");
    assert_refused(HEAD "\"hosts\": 2, \"rate\": \"50Mbit\","
                        " \"actuator\": [\"none\", \"none\"], " TAIL(ONE),
                   "s.json: /actuator: no host has an agent, at least one "
                   "\"shim\" or \"bpf\" is needed");
}

UNIT_TEST(reads_an_actuator_of_each_host)
{
    struct scenario *s;
    char *text;

    assert_null(scenario_from_string(
        "s.json",
        HEAD "\"hosts\": 3, \"rate\": \"50Mbit\", \"cc\": true,"
             " \"actuator\": [\"none\", \"shim\", \"bpf\"], " TAIL(ONE),
        NULL, &s));
    assert_int_equal(s->actuators[0], ACTUATOR_NONE);
    assert_int_equal(s->actuators[1], ACTUATOR_SHIM);
    assert_int_equal(s->actuators[2], ACTUATOR_BPF);
    text = scenario_actuators_to_string(s);
    assert_is(text, ", 1 with shims, 1 with BPF, 1 with neither");
    scenario_destroy(s);

    assert_null(scenario_from_string("s.json",
                                     HEAD
                                     "\"hosts\": 2, \"rate\": \"50Mbit\","
                                     " \"actuator\": \"observe\", " TAIL(ONE),
                                     NULL, &s));
    assert_is(scenario_actuators_to_string(s), ", observed only");
    scenario_destroy(s);
}

UNIT_TEST(reads_a_complete_scenario)
{
    struct scenario *s;
    char *error;

    error = scenario_from_string(
        "s.json",
        "{\"name\": \"s\", \"description\": \"d\", \"hosts\": 2,"
        " \"slots\": 3, \"rate\": \"50Mbit\", \"mtu\": 1500, \"cc\": false,"
        " \"actuator\": \"bpf\", \"fabric\": \"bridge\","
        " \"policies\": [\"fair\", \"stage\"],"
        " \"timeout_s\": 12.5,"
        " \"searches\": [{\"start_s\": 2, \"search\": " SEARCH "}]}",
        NULL, &s);
    assert_null(error);
    assert_string_equal(s->name, "s");
    assert_int_equal(s->n_hosts, 2);
    assert_int_equal(s->slots, 3);
    assert_int_equal(s->rate_bps, 50000000);
    assert_int_equal(s->mtu, 1500);
    assert_int_equal(scenario_n_actuators(s, ACTUATOR_BPF), 2);
    assert_int_equal(s->cc, SCENARIO_CC_OFF);
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

UNIT_TEST(reads_a_fabric_with_racks)
{
    struct scenario *s;
    char *error, *fabric;

    error = scenario_from_string(
        "s.json", HEAD "\"hosts\": 4, \"rate\": \"50Mbit\","
        " \"fabric\": {\"leaf_spine\": {\"leaves\": 2, \"spines\": 3,"
        " \"over\": 1.5}}, \"datapath\": \"kernel\", " TAIL(ONE), NULL, &s);
    assert_null(error);
    assert_int_equal(s->fabric, FABRIC_LEAF_SPINE);
    assert_int_equal(scenario_n_actuators(s, ACTUATOR_SHIM), 4);
    assert_int_equal(s->cc, SCENARIO_CC_ORDERED);
    assert_int_equal(s->leaf_spine.leaves, 2);
    assert_int_equal(s->leaf_spine.spines, 3);
    fabric = scenario_fabric_to_string(s);
    assert_is(fabric, "leaf-spine 2 x 3, 1.5:1, kernel datapath");
    scenario_destroy(s);
}

UNIT_TEST(reads_cojobs_of_commands)
{
    const struct scenario_cojob *cojob;
    struct scenario *s;
    char *error;

    error = scenario_from_string(
        "dir/s.json",
        COJOBS("{\"name\": \"c\", \"start_s\": 1.5, \"weight\": 2,"
               " \"end\": \"iterations\","
               " \"stages\": [{\"iterations\": 5}, {\"iterations\": 9}],"
               " \"jobs\": [{\"name\": \"t0\","
               "  \"hosts\": [\"h1\", \"h0\", \"h1\"],"
               "  \"command\": [\"a\", \"%rank of %world\"],"
               "  \"log\": \"csv:%log/%rank.csv,iteration=n\"}]}"), NULL, &s);
    assert_null(error);
    assert_int_equal(s->n_searches, 0);
    assert_int_equal(s->n_cojobs, 1);
    assert_string_equal(s->dir, "dir");
    cojob = &s->cojobs[0];
    assert_string_equal(cojob->name, "c");
    assert_float_equal(cojob->start_s, 1.5, 1e-9);
    assert_float_equal(cojob->weight, 2, 1e-9);
    assert_false(cojob->until_exit);
    assert_int_equal(cojob->n_stages, 2);
    assert_int_equal(cojob->stages[1], 9);
    assert_int_equal(cojob->jobs[0].n_hosts, 3);
    assert_int_equal(cojob->jobs[0].hosts[2], 1);
    assert_int_equal(cojob->jobs[0].n_command, 2);
    assert_string_equal(cojob->jobs[0].log, "csv:%log/%rank.csv,iteration=n");
    assert_int_equal(scenario_processes(s, 1, 0, 1), 2);
    assert_int_equal(scenario_processes(s, 0, 0, 1), 1);
    scenario_destroy(s);
}

UNIT_TEST(replaces_words_of_a_command)
{
    static const char *const values[N_WORDS] = {
        [WORD_RANK] = "1", [WORD_WORLD] = "3", [WORD_HOSTS] = "a,b,c",
        [WORD_MASTER] = "a", [WORD_PORT] = "29500",
        [WORD_SCENARIO] = "dir", [WORD_LOG] = "log",
    };
    static const struct {
        const char *text, *result;
    } cases[] = {
        { "", "" },
        { "plain", "plain" },
        { "%rank", "1" },
        { "%scenario/x.py", "dir/x.py" },
        { "tcp://%master:%port", "tcp://a:29500" },
        { "%world%hosts%log", "3a,b,clog" },
        { "100%% of %%rank", "100% of %rank" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_is(scenario_substitute(cases[i].text, values), cases[i].result);
    }
}

UNIT_TEST(reads_the_scenarios_that_we_ship)
{
    static const char *const files[] = {
        "lab/scenarios/smoke.json",    "lab/scenarios/quickstart.json",
        "lab/scenarios/main.json",     "lab/scenarios/pytorch.json",
        "lab/scenarios/early.json",    "lab/scenarios/gossip.json",
        "lab/scenarios/localize.json", "lab/scenarios/racks.json",
    };

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        struct scenario *s;

        assert_no_error(scenario_from_file(files[i], NULL, &s));
        scenario_destroy(s);
    }
}
