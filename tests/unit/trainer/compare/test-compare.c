/* SPDX-License-Identifier: Apache-2.0 */

/* Comparisons: what is read, and a short real one. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reporting/report.h"
#include "tests/unit/unit-test.h"
#include "trainer/compare/compare.h"

static const struct {
    const char *text, *error;
} bad_specs[] = {
    { "{}", "c.json: /schemes: required member is missing" },
    { "{\"schemes\": [\"psb\"]}",
      "c.json: /schemes: \"psb\" is not a scheme" },
    { "{\"schemes\": [\"static,ratios=1:2\"]}",
      "c.json: /schemes: ratios: 2 for 8 workers" },
    { "{\"schemes\": [\"bsp\"], \"worker\": 3}",
      "c.json: /worker: unknown member, did you mean \"workers\"" },
    { "{\"schemes\": [\"bsp\"], \"workers\": 0}",
      "c.json: /workers: 0 is not an integer from 1 to 64" },
};

UNIT_TEST(names_the_member_at_fault)
{
    for (size_t i = 0; i < sizeof bad_specs / sizeof bad_specs[0]; i++) {
        struct compare_spec *spec;
        char *error = compare_spec_from_string("c.json", bad_specs[i].text,
                                               &spec);

        assert_is(error, bad_specs[i].error);
        assert_null(spec);
    }
}

UNIT_TEST(finds_profiles_beside_the_specification)
{
    struct compare_spec *spec;

    assert_null(compare_spec_from_string(
        "a/c.json", "{\"schemes\": [\"bsp\", \"asp\"], \"profile\": \"p\"}",
        &spec));
    assert_string_equal(spec->profile, "a/p");
    assert_int_equal(spec->n_schemes, 2);
    assert_int_equal(spec->n_workers, 8);
    assert_true(isnan(spec->target_loss));
    compare_spec_destroy(spec);
}

/* The trainer lies in the build folder, as this test does. */
static void
find_trainer(char path[4096])
{
    ssize_t n = readlink("/proc/self/exe", path, 4000);

    path[n > 0 ? n : 0] = '\0';
    strcpy(strrchr(path, '/'), "/../../trainer/stagecoach-trainer");
}

/* Trains by 'text', 60 iterations under each scheme.  Checks that each learns,
 * and that those of the first 'n_alike' schemes have one curve, but for
 * rounding. */
static void
check_curves(const char *text, size_t n_alike)
{
    struct compare_spec *spec;
    struct report *report;
    char program[4096];

    find_trainer(program);
    assert_null(compare_spec_from_string("c.json", text, &spec));
    assert_no_error(compare_run(spec, program, &report));
    assert_int_equal(report->n_policies, spec->n_schemes);
    for (size_t i = 0; i < spec->n_schemes; i++) {
        const struct report_job *end = report->policies[i]->jobs;
        const struct report_job *bsp = report->policies[0]->jobs;

        assert_int_equal(end->iteration, 60);
        assert_true(end->loss < 0.95 * log(4));
        assert_true(i >= n_alike || fabs(end->loss - bsp->loss) < 1e-4);
        assert_true(report->policies[i]->stages->end > 0);
    }
    report_destroy(report);
    compare_spec_destroy(spec);
}

/* Whatever the workers are given, all that wait for all make the same
 * updates. */
UNIT_TEST(schemes_that_wait_for_all_have_one_curve)
{
    check_curves("{\"schemes\": [\"bsp\", \"static,ratios=1:2:3\", "
                 "\"lbbsp-cpu\", \"lbbsp-gpu\", \"flexrr\"], "
                 "\"workers\": 3, \"servers\": 2, \"iterations\": 60, "
                 "\"arguments\": [\"--shape\", \"16,16,4\", "
                 "\"--eval-every\", \"60\", \"--batch\", \"24\", "
                 "\"--backend\", \"cpu\", \"--sample-cost-us\", "
                 "\"100\"]}",
                 5);
}

/* Two schemes without servers: models differ under one of them only. */
UNIT_TEST(peers_are_compared_with_workers)
{
    check_curves("{\"schemes\": [\"bsp\", \"allreduce\", "
                 "\"prague,group=2\"], \"workers\": 2, "
                 "\"iterations\": 60, \"arguments\": [\"--shape\", "
                 "\"16,16,4\", \"--eval-every\", \"60\", \"--batch\", "
                 "\"24\", \"--backend\", \"cpu\"]}",
                 2);
}

UNIT_TEST(says_which_scheme_failed)
{
    static const char *const cases[][2] = {
        { "asp", "worker" }, { "adpsgd", "peer" },
    };
    char program[4096];

    find_trainer(program);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct compare_spec *spec;
        struct report *report;
        char text[256], expected[256];

        snprintf(text, sizeof text, "{\"schemes\": [\"%s\"], \"workers\": 1, "
                 "\"arguments\": [\"--shape\", \"0\"]}", cases[i][0]);
        snprintf(expected, sizeof expected, "%s: %s 0 failed: --shape: \"0\" "
                 "is not 2 to 18 widths of 1 to 65536 with commas between "
                 "them", cases[i][0], cases[i][1]);
        assert_null(compare_spec_from_string("c.json", text, &spec));
        assert_is(compare_run(spec, program, &report), expected);
        assert_null(report);
        compare_spec_destroy(spec);
    }
}
