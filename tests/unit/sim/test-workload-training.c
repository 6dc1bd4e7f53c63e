/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "scenario/scenario.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload-pattern.h"
#include "sim/workload/workload-survivors.h"
#include "sim/workload/workload-training.h"
#include "sim/workload/workload.h"
#include "tests/unit/assert-near.h"

/* A model of 8 x 2 weights and 2 biases, 72 bytes, over links that take 1 ms
 * for it. */
#define SCENARIO(SEARCHES) SCENARIO_OF("\"ovs\"", SEARCHES)
#define SCENARIO_OF(FABRIC, SEARCHES) \
    "{\"name\": \"s\", \"hosts\": 4, \"slots\": 8," \
    " \"rate\": \"576kbit\", \"fabric\": " FABRIC "," \
    " \"policies\": [\"fair\"], \"searches\": [" SEARCHES "]}"
#define SEARCH(NAME, START, PLACEMENT) \
    SEARCH_WITH(NAME, START, PLACEMENT, "")
#define SEARCH_WITH(NAME, START, PLACEMENT, MORE) \
    "{\"start_s\": " START ", \"search\": {" \
    " \"name\": \"" NAME "\", \"trials\": 2, \"weight\": 3," \
    " \"space\": {\"learning_rate\": {\"min\": 0.1, \"max\": 1," \
    "             \"scale\": \"log\"}, \"width\": [1], \"batch\": [3]}," \
    " \"rungs\": [{\"iterations\": 5, \"keep\": 1}, {\"iterations\": 8}]," \
    " \"placements\": [" PLACEMENT "]," \
    " \"model\": {\"inputs\": 8, \"hidden_layers\": 0, \"classes\": 2}," \
    " \"data\": {\"kind\": \"generated\"}," MORE \
    " \"sample_cost_us\": 1000}}"

static struct workload *
read_workload(const char *text)
{
    struct scenario *scenario;
    struct workload *w;

    assert_no_error(scenario_from_string("s.json", text, NULL, &scenario));
    w = workload_training_create(scenario);
    scenario_destroy(scenario);
    return w;
}

/* The first of two workers computes two of the three samples in 2 ms; the
 * server's link takes 2 ms for two pushes and 2 ms for two pulls.  In rung 0
 * two trials share it, 2 + 4 + 4 ms, in rung 1 one trial has it alone. */
UNIT_TEST(trains_as_computed_by_hand)
{
    struct workload *w = read_workload(SCENARIO(SEARCH("a", "1",
        "{\"workers\": [\"h0\", \"h1\"], \"servers\": [\"h2\"]}")));
    struct sim_options options = { .order = ORDER_OPTIONS_INIT(ORDER_PLAIN) };
    struct sim_result r;

    simulate(w, &options, &r);
    assert_int_equal(r.n_stages, 2);
    assert_near(r.stages[0].begin, 1);
    assert_near(r.stages[0].end, 1 + 5 * 0.010);
    assert_near(r.stages[1].end, 1 + 5 * 0.010 + 3 * 0.006);
    sim_result_uninit(&r);
    workload_destroy(w);
}

/* The same, but all pushes and pulls pass links between racks that take 2 ms
 * for the model. */
UNIT_TEST(racks_have_the_links_of_the_lab)
{
    struct workload *w = read_workload(SCENARIO_OF(
        "{\"leaf_spine\": {\"leaves\": 2, \"spines\": 2, \"over\": 4}}",
        SEARCH("a", "1",
               "{\"workers\": [\"h0\", \"h1\"], \"servers\": [\"h2\"]}")));
    struct sim_options options = { .order = ORDER_OPTIONS_INIT(ORDER_PLAIN) };
    struct sim_result r;

    simulate(w, &options, &r);
    assert_near(r.stages[0].end, 1 + 5 * 0.018);
    assert_near(r.stages[1].end, 1 + 5 * 0.018 + 3 * 0.010);
    sim_result_uninit(&r);
    workload_destroy(w);
}

/* Three servers with 24 bytes each on two hosts, one of them a worker's: what
 * that one would send itself is left out.  Pulls come from the host with the
 * higher number. */
UNIT_TEST(divides_the_model_among_servers)
{
    static const double expected[4][4] = {
        { 0, 24, 0, 48 }, { 24, 0, 0, 48 }, { 0 }, { 48, 48, 0, 0 },
    };
    struct workload *w = read_workload(SCENARIO(SEARCH("a", "0",
        "{\"workers\": [\"h0\", \"h1\"],"
        " \"servers\": [\"h1\", \"h3\", \"h3\"]}")));
    const struct workload_job *job = &w->cojobs[0].jobs[0];
    double bytes[4][4] = { { 0 } };

    assert_near(w->cojobs[0].weight, 3);
    assert_near(job->compute, 0.002);
    assert_int_equal(job->n_shards, 3);
    for (size_t i = 0; i < job->n_transfers; i++) {
        const struct workload_transfer *t = &job->transfers[i];

        assert_int_equal(t->phase, t->src > t->dst);
        bytes[t->src][t->dst] += t->bytes;
    }
    for (int src = 0; src < 4; src++) {
        for (int dst = 0; dst < 4; dst++) {
            assert_near(bytes[src][dst], expected[src][dst]);
        }
    }
    workload_destroy(w);
}

/* On one host an iteration is its 3 ms of computing. */
UNIT_TEST(lets_a_host_talk_to_itself_for_nothing)
{
    struct workload *w = read_workload(SCENARIO(
        SEARCH("a", "0", "{\"workers\": [\"h0\"], \"servers\": [\"h0\"]}") ","
        SEARCH("b", "0.5",
               "{\"workers\": [\"h0\"], \"servers\": [\"h1\"]}")));
    struct sim_options options = { .order = ORDER_OPTIONS_INIT(ORDER_PLAIN) };
    struct sim_result r;

    assert_int_equal(w->cojobs[0].jobs[1].n_transfers, 0);
    simulate(w, &options, &r);
    assert_int_equal(r.n_stages, 4);
    assert_near(r.stages[1].end, 8 * 0.003);
    assert_int_equal(r.stages[2].cojob, 1);
    assert_near(r.stages[2].begin, 0.5);
    sim_result_uninit(&r);
    workload_destroy(w);
}

/* The most similar one of two classes has a rate of 0.04.  It is recorded up
 * to 170 iterations. */
UNIT_TEST(learns_as_a_recorded_trial)
{
    struct workload *w = read_workload(SCENARIO(
        SEARCH("a", "0", "{\"workers\": [\"h0\"], \"servers\": [\"h1\"]}")));
    const struct workload_curve *curve = &w->cojobs[0].jobs[0].curve;

    assert_int_equal(curve->every, 10);
    assert_near(workload_curve_at(curve, 4), 0.76);
    assert_near(workload_curve_at(curve, 5), 0.80);
    assert_near(workload_curve_at(curve, 1000), 0.97);
    workload_destroy(w);
}

#define JOB(SEARCH, NAME, ITERATION)                                      \
    "{\"policy\": \"stage\", \"cojob\": \"" SEARCH "\", \"job\": \"" NAME \
    "\", \"iteration\": " ITERATION ", \"loss\": null}"

/* Returns the message for 'jobs' of a report, or NULL. */
static char *
keep_as(struct workload *w, const char *jobs)
{
    char name[] = "/tmp/test-survivors-XXXXXX", *error;
    FILE *f = fdopen(mkstemp(name), "w");

    fprintf(f, "{\"kind\": \"lab\", \"jobs\": [%s]}", jobs);
    fclose(f);
    error = workload_keep_as(w, name);
    unlink(name);
    return error;
}

/* The report has the later of two trials in the last rung. */
UNIT_TEST(keeps_the_jobs_of_a_report)
{
    static const char *const wrong[] = {
        "",
        JOB("b", "t0", "5"),
        JOB("a", "t2", "5"),
        JOB("a", "t0", "-1"),
        JOB("a", "t0", "5") "," JOB("a", "t0", "8"),
    };
    const char *search = SCENARIO(
        SEARCH("a", "0", "{\"workers\": [\"h0\"], \"servers\": [\"h1\"]}"));
    struct workload *w = read_workload(search);

    assert_no_error(keep_as(w, JOB("a", "t0", "5") "," JOB("a", "t1", "8")));
    assert_string_equal(w->cojobs[0].jobs[0].name, "t1");
    assert_string_equal(w->cojobs[0].jobs[1].name, "t0");
    assert_no_error(keep_as(w, JOB("a", "t0", "8") "," JOB("a", "t1", "5")));
    assert_string_equal(w->cojobs[0].jobs[0].name, "t0");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *error = keep_as(w, wrong[i]);

        assert_non_null(error);
        free(error);
    }
    workload_destroy(w);
}

/* Three peers with a model of 72 bytes, two of them on one host: each sends
 * the next one 4 / 3 of it. */
UNIT_TEST(peers_exchange_around_a_ring)
{
    struct workload *w = read_workload(SCENARIO(SEARCH_WITH("a", "0",
        "{\"workers\": [\"h0\", \"h1\", \"h1\"]}",
        "\"sync\": \"adpsgd\",")));
    const struct workload_job *job = &w->cojobs[0].jobs[0];

    assert_int_equal(job->n_transfers, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(job->transfers[i].src, i);
        assert_int_equal(job->transfers[i].dst, 1 - i);
        assert_near(job->transfers[i].bytes, 96);
    }
    workload_destroy(w);
}

/* One job with a model of 80,002 values: a part of 32,768 of them, and the
 * rest. */
#define ALONE \
    "{\"name\": \"s\", \"hosts\": 4, \"slots\": 8, \"rate\": \"400Mbit\"," \
    " \"policies\": [\"fair\"], \"searches\": [{\"search\": {" \
    " \"name\": \"a\", \"trials\": 1," \
    " \"space\": {\"learning_rate\": [0.1], \"width\": [1]," \
    "             \"batch\": [3]}," \
    " \"rungs\": [{\"iterations\": 5, \"keep\": 1}]," \
    " \"placements\": [{\"workers\": [\"h0\"], \"servers\": [\"h1\"]}]," \
    " \"model\": {\"inputs\": 40000, \"hidden_layers\": 0," \
    "             \"classes\": 2}," \
    " \"data\": {\"kind\": \"generated\"}, \"sample_cost_us\": 1000}}]}"

UNIT_TEST(sends_gradients_in_parts)
{
    static const double bytes[] = { 4 * 32768, 4 * 47234 };
    struct workload *w = read_workload(ALONE);
    const struct workload_job *job = &w->cojobs[0].jobs[0];

    assert_int_equal(job->n_phases, 3);
    assert_int_equal(job->n_transfers, 4);
    for (size_t i = 0; i < job->n_transfers; i++) {
        const struct workload_transfer *t = &job->transfers[i];

        assert_near(t->bytes, bytes[t->phase - t->src]);
    }
    workload_destroy(w);
}

/* Returns the end of the last stage with 'jitter_s' and 'seed'. */
static double
end_with_jitter(const struct workload *w, double jitter_s, uint64_t seed)
{
    struct sim_options options = {
        .order = ORDER_OPTIONS_INIT(ORDER_PLAIN),
        .start_s = 0.5,
        .jitter_s = jitter_s,
        .seed = seed,
    };
    struct sim_result r;
    double end;

    simulate(w, &options, &r);
    end = r.stages[r.n_stages - 1].end;
    sim_result_uninit(&r);
    return end;
}

UNIT_TEST(jitter_is_that_of_its_seed)
{
    struct workload *w = read_workload(ALONE);
    double none = end_with_jitter(w, 0, 1);
    double sum = 0;

    assert_near(end_with_jitter(w, 0.001, 1), end_with_jitter(w, 0.001, 1));
    assert_true(end_with_jitter(w, 0.001, 1) != end_with_jitter(w, 0.001, 2));
    for (int seed = 0; seed < 100; seed++) {
        sum += end_with_jitter(w, 0.001, seed) - none;
    }
    assert_true(sum / 100 > 0.004 && sum / 100 < 0.006);
    workload_destroy(w);
}
