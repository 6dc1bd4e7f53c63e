/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "scenario/random-placements.h"
#include "scenario/scenario.h"
#include "tests/unit/unit-test.h"
#include "trainer/search/spec.h"

#define SEARCH(NAME, TRIALS, MORE) \
    "{\"search\": {\"name\": \"" NAME "\", \"trials\": " TRIALS "," \
    " \"space\": {\"learning_rate\": [0.1], \"width\": [16]," \
    "  \"batch\": [4]}, \"rungs\": [{\"iterations\": 5}]," MORE \
    " \"model\": {\"inputs\": 8, \"hidden_layers\": 1, \"classes\": 2}," \
    " \"data\": {\"kind\": \"generated\"}}}"
#define PLACED "\"placements\": [{\"workers\": [\"h0\"]," \
               " \"servers\": [\"h1\"]}],"
#define SCENARIO(RANDOM, SEARCHES) \
    "{\"name\": \"s\", \"hosts\": 6, \"slots\": 8, \"rate\": \"50Mbit\"," \
    " " RANDOM " \"policies\": [\"fair\"], \"searches\": [" SEARCHES "]}"
#define RANDOM(MEMBERS) "\"random_placements\": {" MEMBERS "},"
#define TWO_AND_TWO RANDOM("\"workers\": 2, \"servers\": 2")

static struct scenario *
read_scenario(const char *text, const int64_t *seed)
{
    struct scenario *s;

    assert_no_error(scenario_from_string("s.json", text, seed, &s));
    return s;
}

/* Draws the same as a scenario with seed 1 did when this was written: a change
 * would change the hosts of every result that names a seed. */
UNIT_TEST(a_seed_gives_the_same_hosts_for_ever)
{
    static const int expected[2][2][4] = {
        { { 4, 3, 1, 2 }, { 4, 0, 2, 5 } },
        { { 1, 5, 2, 4 }, { 0, 2, 5, 4 } },
    };
    struct random_placements rp = { .seed = 1, .n_workers = 2,
                                    .n_servers = 2 };

    for (int search = 0; search < 2; search++) {
        for (int trial = 0; trial < 2; trial++) {
            int hosts[4];

            random_placements_draw(&rp, 6, search, trial, hosts);
            assert_memory_equal(hosts, expected[search][trial],
                                sizeof hosts);
        }
    }
}

/* Over many trials each host is drawn about equally often in each role. */
UNIT_TEST(hosts_differ_and_all_are_used)
{
    struct random_placements rp = { .n_workers = 3, .n_servers = 2 };
    int counts[5][7] = { { 0 } };

    for (rp.seed = 0; rp.seed < 100; rp.seed++) {
        for (int i = 0; i < 70; i++) {
            uint64_t seen = 0;
            int hosts[5];

            random_placements_draw(&rp, 7, i % 7, i / 7, hosts);
            for (int k = 0; k < 5; k++) {
                assert_in_range(hosts[k], 0, 6);
                assert_false(seen >> hosts[k] & 1);
                seen |= UINT64_C(1) << hosts[k];
                counts[k][hosts[k]]++;
            }
        }
    }
    /* 1,000 are expected, with a standard deviation of 29. */
    for (int k = 0; k < 5; k++) {
        for (int host = 0; host < 7; host++) {
            assert_in_range(counts[k][host], 870, 1130);
        }
    }
}

/* The number of different placements among those of 'n' draws. */
static int
count_different(const int (*hosts)[4], int n)
{
    int different = 0;

    for (int i = 0; i < n; i++) {
        int j = 0;

        while (j < i && memcmp(hosts[i], hosts[j], sizeof hosts[i])) {
            j++;
        }
        different += j == i;
    }
    return different;
}

UNIT_TEST(seeds_searches_and_trials_draw_independently)
{
    int hosts[3][50][4];

    for (int i = 0; i < 50; i++) {
        struct random_placements rp = { .seed = i, .n_workers = 2,
                                        .n_servers = 2 };

        random_placements_draw(&rp, 64, 0, 0, hosts[0][i]);
        rp.seed = 0;
        random_placements_draw(&rp, 64, i, 0, hosts[1][i]);
        random_placements_draw(&rp, 64, 0, i, hosts[2][i]);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(count_different(hosts[i], 50), 50);
    }
}

/* The specification that the simulator reads, the text that "search run" reads
 * and the draw have the same hosts. */
UNIT_TEST(every_reader_gets_the_drawn_hosts)
{
    static const char text[] = SCENARIO(
        TWO_AND_TWO, SEARCH("a", "1", PLACED) ", " SEARCH("b", "3", ""));
    const int64_t seed = 5;
    struct random_placements rp = { .seed = 5, .n_workers = 2,
                                    .n_servers = 2 };
    struct scenario *s = read_scenario(text, &seed);
    cJSON *top = cJSON_Parse(s->searches[1].text);
    const cJSON *array = cJSON_GetObjectItem(top, "placements");

    assert_true(s->random);
    assert_int_equal(s->seed, 5);
    assert_int_equal(s->searches[0].spec->n_placements, 1);
    assert_string_equal(s->searches[0].spec->placements[0].servers[0], "h1");
    assert_int_equal(s->searches[1].spec->n_placements, 3);
    assert_int_equal(cJSON_GetArraySize(array), 3);
    for (int trial = 0; trial < 3; trial++) {
        const struct search_placement *p =
            &s->searches[1].spec->placements[trial];
        const cJSON *servers = cJSON_GetObjectItem(
            cJSON_GetArrayItem(array, trial), "servers");
        int hosts[4];

        random_placements_draw(&rp, 6, 1, trial, hosts);
        assert_int_equal(p->n_workers, 2);
        assert_int_equal(p->n_servers, 2);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(atoi(p->workers[k] + 1), hosts[k]);
            assert_int_equal(atoi(p->servers[k] + 1), hosts[2 + k]);
            assert_string_equal(
                cJSON_GetStringValue(cJSON_GetArrayItem(servers, k)),
                p->servers[k]);
        }
    }
    cJSON_Delete(top);
    scenario_destroy(s);
}

UNIT_TEST(the_seed_of_the_text_is_1_or_its_own)
{
    struct scenario *s = read_scenario(
        SCENARIO(TWO_AND_TWO, SEARCH("a", "1", "")), NULL);

    assert_int_equal(s->seed, 1);
    scenario_destroy(s);
    s = read_scenario(SCENARIO(RANDOM("\"workers\": 1, \"seed\": 7,"
                                      " \"servers\": 1"),
                               SEARCH("a", "1", "")), NULL);
    assert_int_equal(s->seed, 7);
    scenario_destroy(s);
    s = read_scenario(SCENARIO("", SEARCH("a", "1", PLACED)), NULL);
    assert_false(s->random);
    scenario_destroy(s);
}

UNIT_TEST(peers_have_no_servers)
{
    struct scenario *s = read_scenario(
        SCENARIO(RANDOM("\"workers\": 3, \"servers\": 0"),
                 SEARCH("a", "2", "\"sync\": \"allreduce\",")), NULL);
    const struct search_placement *p = s->searches[0].spec->placements;

    assert_int_equal(p->n_workers, 3);
    assert_int_equal(p->n_servers, 0);
    scenario_destroy(s);
}

/* Each row is one mistake and the line that it gets. */
static const struct {
    const char *text;
    bool seed;                  /* With a seed of the command line. */
    const char *error;
} bad_scenarios[] = {
    { SCENARIO("", SEARCH("a", "1", "")), false,
      "/searches/0/search/placements: required member is missing" },
    { SCENARIO("", SEARCH("a", "1", PLACED)), true,
      "/random_searches: required member is missing, only it and "
      "\"random_placements\" depend on a seed" },
    { SCENARIO(RANDOM("\"workers\": 2"), SEARCH("a", "1", "")), false,
      "/random_placements/servers: required member is missing" },
    { SCENARIO(RANDOM("\"workers\": 0, \"servers\": 1"), SEARCH("a", "1", "")),
      false, "/random_placements/workers: 0 is not an integer from 1 to 64" },
    { SCENARIO(RANDOM("\"workers\": 1, \"servers\": 1, \"seed\": -1"),
               SEARCH("a", "1", "")),
      false,
      "/random_placements/seed: -1 is not an integer from 0 to "
      "1000000000000" },
    { SCENARIO(RANDOM("\"workers\": 4, \"servers\": 3"), SEARCH("a", "1", "")),
      false,
      "/random_placements: 4 workers and 3 servers on different hosts, at "
      "most 6 hosts are there" },
    { SCENARIO(RANDOM("\"workers\": 1, \"servers\": 1, \"sed\": 1"),
               SEARCH("a", "1", "")),
      false, "/random_placements/sed: unknown member, did you mean \"seed\"" },
    { SCENARIO(TWO_AND_TWO, SEARCH("a", "1", PLACED)), false,
      "/random_placements: each search has \"placements\", at least one "
      "search without them is needed" },
    { SCENARIO(TWO_AND_TWO, SEARCH("a", "0", "")), false,
      "/searches/0/search/trials: 0 is not an integer from 1 to 1024" },
    { SCENARIO(RANDOM("\"workers\": 3, \"servers\": 3"), SEARCH("a", "9", "")),
      false,
      "/searches/0/search/placements/0/workers/0: needs 9 processes on h4; "
      "expected at most 8" },
};

UNIT_TEST(names_the_member_at_fault)
{
    const int64_t seed = 3;

    for (size_t i = 0; i < sizeof bad_scenarios / sizeof *bad_scenarios;
         i++) {
        struct scenario *s;
        char *error = scenario_from_string(
            "s.json", bad_scenarios[i].text,
            bad_scenarios[i].seed ? &seed : NULL, &s);

        assert_non_null(error);
        assert_memory_equal(error, "s.json: ", 8);
        assert_string_equal(error + 8, bad_scenarios[i].error);
        assert_null(s);
        free(error);
    }
}
