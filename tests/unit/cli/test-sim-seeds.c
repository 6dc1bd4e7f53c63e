/* SPDX-License-Identifier: Apache-2.0 */

/* Simulations with a range of seeds. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json-check.h"
#include "cli/simulate/sim-seeds.h"
#include "cli/simulate/sim-setting.h"
#include "policies/policy.h"
#include "reporting/placements.h"
#include "tests/unit/unit-test.h"

UNIT_TEST(a_range_is_two_numbers)
{
    static const struct {
        const char *text;
        uint64_t first;
        size_t n; /* 0 for a text that is refused. */
    } rows[] = {
        { "1-60", 1, 60 },       { "0-0", 0, 1 },     { "7-7", 7, 1 },
        { "1-10000", 1, 10000 }, { "1-10001", 0, 0 }, { "2-1", 0, 0 },
        { "5", 0, 0 },           { "", 0, 0 },        { "-5", 0, 0 },
        { "1-", 0, 0 },          { "1-+2", 0, 0 },    { "1- 2", 0, 0 },
        { "-1-2", 0, 0 },        { "1--2", 0, 0 },    { "1-2x", 0, 0 },
        { "1-2-3", 0, 0 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct seed_range range = { 0, 0 };
        char *error = seed_range_parse(rows[i].text, &range);

        assert_int_equal(range.first, rows[i].first);
        assert_int_equal(range.n, rows[i].n);
        assert_int_equal(!error, rows[i].n > 0);
        free(error);
    }
}

/* What a run has left. */
struct outcome {
    char *error, *json, *csv;
};

static struct policy *
open_policy(const char *file)
{
    struct policy *policy;

    assert_null(policy_from_file(file, &policy));
    return policy;
}

static struct outcome
run(const char *what, const char *range, size_t n_threads)
{
    struct policy *policies[] = { open_policy("policies/plain.json"),
                                  open_policy("policies/stage.json") };
    struct sim_setting setting = { .what = what };
    char file[] = "/tmp/test-sim-seeds-XXXXXX";
    struct sim_seeds args = { .setting = &setting,
                              .csv = file,
                              .n_threads = n_threads,
                              .policies =
                                  (const struct policy *const *) policies,
                              .n_policies = 2 };
    struct outcome o = { .json = NULL };
    struct placements *results;
    size_t n_done;
    int fd = mkstemp(file);

    assert_true(fd >= 0);
    close(fd);
    assert_null(seed_range_parse(range, &setting.seeds));
    o.error = sim_seeds_run(&args, &results, &n_done);
    if (results) {
        size_t size;
        FILE *stream = open_memstream(&o.json, &size);

        assert_int_equal(n_done, setting.seeds.n);
        placements_put_json(results, stream);
        fclose(stream);
        assert_null(json_read_file(file, &o.csv));
    }
    placements_destroy(results);
    unlink(file);
    for (size_t k = 0; k < 2; k++) {
        policy_destroy(policies[k]);
    }
    return o;
}

static void
outcome_free(struct outcome *o)
{
    free(o->error);
    free(o->json);
    free(o->csv);
}

UNIT_TEST(results_do_not_depend_on_the_number_of_threads)
{
    struct outcome one = run("generate:1,hosts=4,cojobs=3,jobs=2", "3-8", 1);
    struct outcome many = run("generate:1,hosts=4,cojobs=3,jobs=2", "3-8", 5);

    assert_null(one.error);
    assert_null(many.error);
    assert_non_null(strstr(one.csv, "\n8,stage,s2,"));
    assert_string_equal(one.csv, many.csv);
    assert_string_equal(one.json, many.json);
    outcome_free(&one);
    outcome_free(&many);
}

UNIT_TEST(an_error_names_the_first_seed)
{
    static const char expected[] =
        "with seed 3: sim/scenarios/rings.json: nothing in it is random";

    for (size_t n_threads = 1; n_threads < 4; n_threads++) {
        struct outcome o = run("sim/scenarios/rings.json", "3-8", n_threads);

        assert_non_null(o.error);
        assert_int_equal(strncmp(o.error, expected, strlen(expected)), 0);
        assert_null(o.json);
        outcome_free(&o);
    }
}
