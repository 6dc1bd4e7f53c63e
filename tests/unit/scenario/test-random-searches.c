/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "scenario/scenario.h"
#include "tests/unit/unit-test.h"
#include "trainer/search/spec.h"

#define SCENARIO(MEMBERS)                                                  \
    "{\"name\": \"s\", \"hosts\": 8, \"slots\": 64, \"rate\": \"50Mbit\"," \
    " \"policies\": [\"fair\"], " MEMBERS "}"
#define RANDOM(MEMBERS) SCENARIO("\"random_searches\": {" MEMBERS "}")

static struct scenario *
read_scenario(const char *text, int64_t seed)
{
    struct scenario *s;
    char *error = scenario_from_string("s.json", text, &seed, &s);

    if (error) {
        fail_msg("seed %d: %s", (int) seed, error);
    }
    return s;
}

/* Draws the same as when this was written: a change would change the searches
 * of every result that names a seed. */
UNIT_TEST(a_seed_gives_the_same_searches_for_ever)
{
    struct scenario *s = read_scenario(RANDOM(""), 1);
    char *drawn = strdup("");

    assert_int_equal(s->n_searches, 10);
    for (int i = 0; i < 3; i++) {
        const struct search_spec *spec = s->searches[i].spec;
        char *more;

        assert_true(asprintf(&more,
                             "%s%s at %.1f: %d trials, width %d, "
                             "%d workers, %d servers, %d us, to %d; ",
                             drawn, spec->name, s->searches[i].start_s,
                             (int) spec->n_trials, (int) spec->widths[0],
                             (int) spec->placements[0].n_workers,
                             (int) spec->placements[0].n_servers,
                             (int) spec->sample_cost_us,
                             (int) spec->rungs[2].iterations)
                    > 0);
        free(drawn);
        drawn = more;
    }
    assert_string_equal(
        drawn,
        "s0 at 0.0: 5 trials, width 224, 3 workers, 1 servers, 3311 us, to 45;"
        " s1 at 5.2: 5 trials, width 416, 3 workers, 1 servers, 3400 us, to "
        "68; s2 at 10.6: 3 trials, width 272, 3 workers, 1 servers, 564 us, "
        "to 120; ");
    free(drawn);
    scenario_destroy(s);
}

/* What 1,000 searches have in sum. */
struct sums {
    int trials[6], workers[5], servers[3];
    int rings, short_ones, fast, narrow;
};

static void
add_search(const struct scenario_search *ss, struct sums *sums)
{
    const struct search_spec *spec = ss->spec;
    const struct search_placement *p = &spec->placements[0];
    int workers = p->n_workers;
    double length = spec->rungs[2].iterations / 85.0;
    double iteration_ms = spec->sample_cost_us * 32.0 / workers / 1000;

    assert_in_range(spec->n_trials, 2, 5);
    assert_int_equal(spec->n_placements, spec->n_trials);
    assert_in_range(workers, 1, 4);
    assert_in_range(p->n_servers, 0, 2);
    assert_true(length > 0.49 && length < 2.02);
    assert_true(iteration_ms > 4.9 && iteration_ms < 80.2);
    assert_in_range(spec->widths[0], 160, 448);
    assert_int_equal(spec->widths[0] % 16, 0);
    assert_int_equal(spec->rungs[0].keep, (spec->n_trials + 1) / 2);
    assert_int_equal(spec->rungs[1].keep, (spec->rungs[0].keep + 1) / 2);
    sums->trials[spec->n_trials]++;
    sums->workers[workers]++;
    sums->servers[p->n_servers]++;
    sums->rings += !p->n_servers;
    sums->short_ones += length < 1;
    sums->fast += iteration_ms < 20;
    sums->narrow += spec->widths[0] < 268;
}

/* Medians of logarithmic ranges are geometric means.  The limits are four
 * standard deviations away. */
UNIT_TEST(a_thousand_searches_have_the_documented_distributions)
{
    struct sums sums = { .rings = 0 };

    for (int seed = 0; seed < 100; seed++) {
        struct scenario *s = read_scenario(RANDOM(""), seed);

        assert_float_equal(s->searches[0].start_s, 0, 0);
        assert_float_equal(s->searches[9].start_s, 60, 1e-9);
        for (size_t i = 0; i < s->n_searches; i++) {
            assert_true(
                !i || s->searches[i].start_s >= s->searches[i - 1].start_s);
            add_search(&s->searches[i], &sums);
        }
        scenario_destroy(s);
    }
    for (int trials = 2; trials <= 5; trials++) {
        assert_in_range(sums.trials[trials], 195, 305);
    }
    assert_in_range(sums.rings, 270, 390);
    assert_in_range(sums.workers[1], 165, 282);
    assert_in_range(sums.workers[4], 70, 150);
    assert_in_range(sums.servers[2], 275, 395);
    assert_in_range(sums.short_ones, 437, 563);
    assert_in_range(sums.fast, 437, 563);
    assert_in_range(sums.narrow, 420, 580);
}

/* Fewer searches, with other arrivals, are the first of more. */
UNIT_TEST(a_search_is_independent_of_the_number_of_searches)
{
    struct scenario *few = read_scenario(RANDOM("\"searches\": 3"), 9);
    struct scenario *more = read_scenario(RANDOM("\"searches\": 20"), 9);

    assert_int_equal(few->n_searches, 3);
    assert_int_equal(more->n_searches, 20);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(few->searches[i].text, more->searches[i].text);
    }
    scenario_destroy(few);
    scenario_destroy(more);
}

UNIT_TEST(members_replace_the_ranges)
{
    struct scenario *s = read_scenario(
        RANDOM("\"searches\": 5, \"span_s\": 8, \"rings\": 1,"
               " \"length\": [0.1, 0.1], \"iteration_ms\": [32, 32],"
               " \"width\": [64, 64]"),
        3);

    assert_true(s->random);
    assert_int_equal(s->seed, 3);
    assert_float_equal(s->searches[4].start_s, 8, 1e-9);
    for (size_t i = 0; i < s->n_searches; i++) {
        const struct search_spec *spec = s->searches[i].spec;

        assert_int_equal(spec->placements[0].n_servers, 0);
        assert_int_equal(spec->rungs[2].iterations, 2 + 3 + 5);
        assert_int_equal(spec->widths[0], 64);
        assert_int_equal(spec->sample_cost_us,
                         1000 * spec->placements[0].n_workers);
    }
    scenario_destroy(s);
}

/* Searches that the scenario names come first. */
UNIT_TEST(drawn_searches_follow_the_others)
{
    struct scenario *s = read_scenario(
        SCENARIO("\"random_searches\": {\"searches\": 2}, \"searches\": ["
                 "{\"search\": {\"name\": \"own\", \"trials\": 1, \"space\":"
                 " {\"learning_rate\": [0.1], \"width\": [16],"
                 "  \"batch\": [4]}, \"rungs\": [{\"iterations\": 5}],"
                 " \"model\": {\"inputs\": 8, \"hidden_layers\": 1,"
                 "  \"classes\": 2}, \"placements\": [{\"workers\": [\"h0\"],"
                 "  \"servers\": [\"h1\"]}],"
                 " \"data\": {\"kind\": \"generated\"}}}]"),
        1);

    assert_int_equal(s->n_searches, 3);
    assert_string_equal(s->searches[0].cojob, "own");
    assert_string_equal(s->searches[2].cojob, "s1");
    scenario_destroy(s);
}

/* Each row is one mistake and the line that it gets. */
static const struct {
    const char *text;
    const char *error;
} bad_scenarios[] = {
    { RANDOM("\"search\": 3"),
      "/random_searches/search: unknown member, did you mean "
      "\"searches\"" },
    { RANDOM("\"searches\": 0"),
      "/random_searches/searches: 0 is not an integer from 1 to 64" },
    { RANDOM("\"rings\": 1.5"),
      "/random_searches/rings: 1.5 is not a number from 0 to 1" },
    { RANDOM("\"length\": 2"), "/random_searches/length: 2 is not an array" },
    { RANDOM("\"length\": [1]"),
      "/random_searches/length: 1 elements; expected 2 to 2" },
    { RANDOM("\"width\": [64, 32]"),
      "/random_searches/width/1: 32 is not a number from 64 to 65536" },
    { "{\"name\": \"s\", \"hosts\": 4, \"rate\": \"50Mbit\","
      " \"policies\": [\"fair\"], \"random_searches\": {}}",
      "/random_searches: the scenario has 4 hosts, at least 5 are needed" },
    { SCENARIO("\"random_searches\": {}, \"searches\": 1"),
      "/searches: 1 is not an array" },
    { SCENARIO("\"random_searches\": {}, \"random_placements\":"
               " {\"workers\": 1, \"servers\": 1}"),
      "/random_placements: each search has \"placements\", at least one "
      "search without them is needed" },
};

UNIT_TEST(names_the_member_at_fault)
{
    for (size_t i = 0; i < sizeof bad_scenarios / sizeof *bad_scenarios; i++) {
        struct scenario *s;
        char *error =
            scenario_from_string("s.json", bad_scenarios[i].text, NULL, &s);

        assert_non_null(error);
        assert_string_equal(error + strlen("s.json: "),
                            bad_scenarios[i].error);
        assert_null(s);
        free(error);
    }
}
