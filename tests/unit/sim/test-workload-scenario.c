/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json-check.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload-scenario.h"
#include "sim/workload/workload.h"
#include "tests/unit/assert-near.h"

/* Links of 1 MB/s. */
#define SCENARIO(COJOBS)                                        \
    "{\"kind\": \"sim\", \"name\": \"s\","                      \
    " \"fabric\": {\"hosts\": 4, \"rate\": \"8Mbit\"},"         \
    " \"cojobs\": [" COJOBS "]}"
#define COJOB(NAME, RUNGS, JOBS)                                \
    "{\"name\": \"" NAME "\", \"rungs\": [" RUNGS "],"          \
    " \"jobs\": [" JOBS "]}"
#define JOB(NAME, EXCHANGE)                                     \
    "{\"name\": \"" NAME "\", \"compute_s\": 0.5, " EXCHANGE "}"
#define ONE_RUNG "{\"iterations\": 3}"
#define RING "\"ring\": {\"hosts\": [\"h0\", \"h1\"], \"bytes\": 1e6}"
#define ONE_JOB(EXCHANGE) \
    SCENARIO(COJOB("a", ONE_RUNG, JOB("t0", EXCHANGE)))

static struct workload *
read_workload(const char *text)
{
    struct workload *w;

    assert_no_error(workload_scenario_from_string("s.json", text, &w));
    return w;
}

/* Returns the end of the last stage. */
static double
run(const char *text)
{
    struct workload *w = read_workload(text);
    struct sim_options options = { .order = ORDER_OPTIONS_INIT(ORDER_PLAIN) };
    struct sim_result r;
    double end = 0;

    simulate(w, &options, &r);
    for (size_t i = 0; i < r.n_stages; i++) {
        end = fmax(end, r.stages[i].end);
    }
    sim_result_uninit(&r);
    workload_destroy(w);
    return end;
}

/* Three iterations of 0.5 s and an exchange.  Two hosts in a ring send
 * 2 / 2 of the megabyte each; two workers push it to a server and pull it,
 * 2 s each; two servers have half of it each; a pipeline of two phases takes
 * 1 s and 2 s. */
UNIT_TEST(takes_as_long_as_computed_by_hand)
{
    assert_near(run(ONE_JOB(RING)), 3 * (0.5 + 1));
    assert_near(run(ONE_JOB("\"ring\": {\"hosts\": [\"h0\", \"h1\", \"h2\","
                            " \"h3\"], \"bytes\": 1e6}")), 3 * (0.5 + 1.5));
    assert_near(run(ONE_JOB("\"ps\": {\"workers\": [\"h0\", \"h1\"],"
                            " \"servers\": [\"h2\"], \"bytes\": 1e6}")),
                3 * (0.5 + 4));
    assert_near(run(ONE_JOB("\"ps\": {\"workers\": [\"h0\", \"h1\"],"
                            " \"servers\": [\"h2\", \"h3\"],"
                            " \"bytes\": 1e6}")), 3 * (0.5 + 2));
    assert_near(run(ONE_JOB("\"transfers\": ["
                            "{\"from\": \"h0\", \"to\": \"h1\","
                            " \"bytes\": 1e6}, "
                            "{\"from\": \"h0\", \"to\": \"h2\","
                            " \"bytes\": 2e6, \"phase\": 1}]")),
                3 * (0.5 + 3));
}

/* Two leaves of two hosts, 2 MB/s each, have uplinks of a quarter of that, so
 * a megabyte takes 2 s between leaves and 1 s in one. */
UNIT_TEST(passes_leaves)
{
    static const char *const format =
        "{\"kind\": \"sim\", \"name\": \"s\", \"fabric\": {\"hosts\": 4,"
        " \"rate\": \"8Mbit\", \"leaf_spine\": {\"hosts_per_leaf\": 2,"
        " \"oversubscription\": 4}}, \"cojobs\": ["
        COJOB("a", ONE_RUNG, JOB("t", "\"ring\": {\"hosts\": [\"h0\","
                                 " \"h%d\"], \"bytes\": 1e6}")) "]}";
    char text[512];

    snprintf(text, sizeof text, format, 1);
    assert_near(run(text), 3 * (0.5 + 1));
    snprintf(text, sizeof text, format, 2);
    assert_near(run(text), 3 * (0.5 + 2));
}

UNIT_TEST(reads_all_members)
{
    struct workload *w = read_workload(
        "{\"$schema\": \"x\", \"description\": \"d\", \"kind\": \"sim\","
        " \"name\": \"s\", \"fabric\": {\"hosts\": 4, \"rate\": \"8Gbit\"},"
        " \"cojobs\": [{\"name\": \"a\", \"user\": \"ann\", \"weight\": 2,"
        " \"arrival_s\": 1.5, \"rungs\": [{\"iterations\": 2}],"
        " \"jobs\": [{\"name\": \"t0\", \"devices\": 16, " RING ","
        "   \"curve\": {\"final\": 0.9, \"span\": 0.8, \"exponent\": 0.5}},"
        "  {\"name\": \"t1\", " RING "}]}]}");
    const struct workload_cojob *cojob = &w->cojobs[0];

    assert_int_equal(w->fabric->n_hosts, 4);
    assert_near(w->fabric->capacity[7], 1e9);
    assert_string_equal(cojob->user, "ann");
    assert_near(cojob->weight, 2);
    assert_near(cojob->arrival, 1.5);
    assert_near(cojob->jobs[0].devices, 16);
    assert_near(cojob->jobs[0].curve.exponent, 0.5);
    assert_near(cojob->jobs[1].devices, 2);
    assert_near(cojob->jobs[1].curve.final, 0);
    assert_near(cojob->jobs[1].compute, 0);
    workload_destroy(w);
}

#define CURVE(FINAL) "\"curve\": {\"final\": " FINAL ", \"span\": 0.1," \
                     " \"exponent\": 1}"

/* The best two of four go on, then the best one, none without a curve. */
UNIT_TEST(keeps_those_with_the_best_curves)
{
    struct workload *w = read_workload(SCENARIO(COJOB("a",
        "{\"iterations\": 1, \"keep\": 2}, {\"iterations\": 2, \"keep\": 1},"
        " {\"iterations\": 4}",
        JOB("t0", RING) "," JOB("t1", RING ", " CURVE("0.5")) ","
        JOB("t2", RING ", " CURVE("0.7")) ","
        JOB("t3", RING ", " CURVE("0.6")))));
    const struct workload_cojob *cojob = &w->cojobs[0];

    assert_int_equal(cojob->rungs[0].n_jobs, 4);
    assert_int_equal(cojob->rungs[1].n_jobs, 2);
    assert_int_equal(cojob->rungs[2].n_jobs, 1);
    assert_string_equal(cojob->jobs[0].name, "t2");
    assert_string_equal(cojob->jobs[1].name, "t3");
    assert_string_equal(cojob->jobs[3].name, "t0");
    workload_destroy(w);
}

static const struct {
    const char *text, *error;
} mistakes[] = {
    { "{\"kind\": \"lab\"}", "s.json: /kind: \"lab\" is not one of \"sim\"" },
    { "{\"kind\": \"sim\", \"name\": \"s\", \"fabric\": {\"hosts\": 0,"
      " \"rate\": \"1Gbit\"}, \"cojobs\": []}",
      "s.json: /fabric/hosts: 0 is not an integer from 1 to 20000" },
    { SCENARIO(""), "s.json: /cojobs: 0 elements; expected 1 to 10000" },
    { SCENARIO(COJOB("a", ONE_RUNG, JOB("t0", RING)) "," COJOB(
          "a", ONE_RUNG, JOB("t0", RING))),
      "s.json: /cojobs/1/name: \"a\" is the name of another cojob" },
    { SCENARIO(COJOB("a", ONE_RUNG, JOB("t", RING) "," JOB("t", RING))),
      "s.json: /cojobs/0/jobs/1/name: \"t\" is the name of another job" },
    { SCENARIO(COJOB("a", "{\"iterations\": 3}, {\"iterations\": 4}",
                     JOB("t", RING))),
      "s.json: /cojobs/0/rungs/0/keep: required member is missing" },
    { SCENARIO(COJOB("a",
                     "{\"iterations\": 3, \"keep\": 2},"
                     " {\"iterations\": 4}",
                     JOB("t", RING))),
      "s.json: /cojobs/0/rungs/0/keep: 2 is not an integer from 1 to 1" },
    { SCENARIO(COJOB("a",
                     "{\"iterations\": 3, \"keep\": 1},"
                     " {\"iterations\": 3}",
                     JOB("t", RING))),
      "s.json: /cojobs/0/rungs/1/iterations: 3 is not an integer from 4 to "
      "1000000000" },
    { ONE_JOB("\"devices\": 1"),
      "s.json: /cojobs/0/jobs/0: 0 exchanges; expected one of \"ps\", "
      "\"ring\" and \"transfers\"" },
    { ONE_JOB(RING ", \"transfers\": [{}]"),
      "s.json: /cojobs/0/jobs/0: 2 exchanges; expected one of \"ps\", "
      "\"ring\" and \"transfers\"" },
    { ONE_JOB("\"ring\": {\"hosts\": [\"h0\", \"h4\"], \"bytes\": 1}"),
      "s.json: /cojobs/0/jobs/0/ring/hosts/1: \"h4\" is not a host; expected "
      "\"h0\" to \"h3\"" },
    { ONE_JOB("\"ring\": {\"hosts\": [\"h0\", \"h\\n1\"], \"bytes\": 1}"),
      "s.json: /cojobs/0/jobs/0/ring/hosts/1: \"h?1\" is not a host; expected "
      "\"h0\" to \"h3\"" },
    { ONE_JOB("\"ring\": {\"hosts\": [\"h0\", \"h01\"], \"bytes\": 1}"),
      "s.json: /cojobs/0/jobs/0/ring/hosts/1: \"h01\" is not a host; expected "
      "\"h0\" to \"h3\"" },
    { ONE_JOB("\"ring\": {\"hosts\": [\"h1\", \"h1\"], \"bytes\": 1}"),
      "s.json: /cojobs/0/jobs/0/ring/hosts/1: h1 is there already; expected "
      "each host once" },
    { ONE_JOB("\"transfers\": [{\"from\": \"h1\", \"to\": \"h1\","
              " \"bytes\": 1}]"),
      "s.json: /cojobs/0/jobs/0/transfers/0/to: h1 is the sender; expected "
      "another host" },
    { ONE_JOB("\"transfers\": [{\"from\": \"x\", \"to\": \"h1\","
              " \"bytes\": 1}]"),
      "s.json: /cojobs/0/jobs/0/transfers/0/from: \"x\" is not a host; "
      "expected \"h0\" to \"h3\"" },
    { ONE_JOB("\"ring\": {\"hosts\": [\"h0\", \"h1\"], \"bytes\": 0}"),
      "s.json: /cojobs/0/jobs/0/ring/bytes: 0 is not a number from 1 to "
      "1e+15" },
    { ONE_JOB(RING ", \"curve\": {\"final\": 1, \"span\": 1,"
                   " \"exponent\": 0}"),
      "s.json: /cojobs/0/jobs/0/curve/exponent: 0 is not a number from 0.01 "
      "to 10" },
    { ONE_JOB(RING ", \"computes\": 1"),
      "s.json: /cojobs/0/jobs/0/computes: unknown member" },
};

UNIT_TEST(names_the_member_at_fault)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct workload *w;
        char *error = workload_scenario_from_string("s.json",
                                                    mistakes[i].text, &w);

        assert_is(error, mistakes[i].error);
        assert_null(w);
    }
}

/* More transfers than there is memory for. */
UNIT_TEST(refuses_too_many_transfers)
{
    size_t size;
    char *text, *error;
    FILE *stream = open_memstream(&text, &size);
    struct workload *w;

    fprintf(stream, "{\"kind\": \"sim\", \"name\": \"s\", \"fabric\":"
            " {\"hosts\": 2, \"rate\": \"1Gbit\"}, \"cojobs\":"
            " [{\"name\": \"a\", \"rungs\": [{\"iterations\": 1}],"
            " \"jobs\": [");
    for (int job = 0; job < 11; job++) {
        fprintf(stream, "%s{\"name\": \"t%d\", \"ps\": {\"bytes\": 1e9,"
                " \"workers\": [\"h0\"", job ? ", " : "", job);
        for (int i = 1; i < 700; i++) {
            fputs(",\"h0\"", stream);
        }
        fputs("], \"servers\": [\"h1\"", stream);
        for (int i = 1; i < 700; i++) {
            fputs(",\"h1\"", stream);
        }
        fputs("]}}", stream);
    }
    fputs("]}]}", stream);
    fclose(stream);
    error = workload_scenario_from_string("s.json", text, &w);
    assert_is(error,
              "s.json: /cojobs/0/jobs/10/ps: with those "
              "before it 10780000 transfers; expected at most 10000000");
    free(text);
}

UNIT_TEST(examples_run)
{
    static const char *const files[] = {
        "sim/scenarios/two-searches.json", "sim/scenarios/rings.json",
        "sim/scenarios/peers.json", "sim/scenarios/localize.json",
    };

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct sim_options options = {
            .order = ORDER_OPTIONS_INIT(ORDER_STAGE),
        };
        struct workload *w;
        struct sim_result r;
        char *text;

        assert_null(json_read_file(files[i], &text));
        assert_null(workload_scenario_from_string(files[i], text, &w));
        free(text);
        simulate(w, &options, &r);
        assert_int_equal(r.n_stages, w->n_stages);
        assert_true(r.gap >= 1 - 1e-9);
        sim_result_uninit(&r);
        workload_destroy(w);
    }
}

#define ASYNCHRONOUS(MEMBERS, RUNGS)                                    \
    SCENARIO("{\"name\": \"a\", \"method\": \"asynchronous\", " MEMBERS \
             " \"rungs\": [" RUNGS                                      \
             "], \"jobs\": [" JOB("t0", RING) "," JOB("t1", RING) "]}")

UNIT_TEST(reads_how_a_search_judges)
{
    struct workload *w = read_workload(
        ASYNCHRONOUS("\"places\": 2, \"eta\": 4, \"brackets\": 2,",
                     ONE_RUNG ", {\"iterations\": 12}"));
    const struct workload_trials *t = &w->cojobs[0].trials;
    static const struct {
        const char *text, *error;
    } cases[] = {
        { ASYNCHRONOUS("\"places\": 0,", ONE_RUNG),
          "/cojobs/0/places: 0 is not" },
        { ASYNCHRONOUS("", ONE_RUNG), "/cojobs/0/places: required" },
        { ASYNCHRONOUS("\"places\": 1, \"brackets\": 2,", ONE_RUNG),
          "/cojobs/0/brackets: 2 is not" },
        { ASYNCHRONOUS("\"places\": 1,", "{\"iterations\": 1, \"keep\": 1}"),
          "/cojobs/0/rungs/0/keep: unknown member" },
        { SCENARIO("{\"name\": \"a\", \"places\": 1, \"rungs\": [" ONE_RUNG
                   "], \"jobs\": [" JOB("t0", RING) "]}"),
          "/cojobs/0/places: unknown member" },
    };

    assert_int_equal(t->places, 2);
    assert_near(t->eta, 4);
    assert_int_equal(t->n_brackets, 2);
    assert_int_equal(t->n_rungs, 2);
    assert_int_equal(t->rungs[1], 12);
    assert_int_equal(w->n_stages, 1);
    workload_destroy(w);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        assert_says(workload_scenario_from_string("s.json", cases[i].text, &w),
                    cases[i].error);
        assert_null(w);
    }
}
