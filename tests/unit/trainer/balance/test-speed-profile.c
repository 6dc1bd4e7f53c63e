/* SPDX-License-Identifier: Apache-2.0 */

#include <glob.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "tests/unit/assert-near.h"
#include "trainer/balance/speed-profile.h"

#define DIR "tests/speed-profiles/"

static struct speed_profile *
profile(const char *members, uint64_t seed)
{
    struct speed_profile_set *set;
    struct speed_profile *sp;
    char text[1024];

    snprintf(text, sizeof text, "{\"name\": \"t\", \"workers\": [{%s}]}",
             members);
    assert_null(speed_profile_set_from_string("t", text, &set));
    sp = speed_profile_create(set, 0, seed);
    speed_profile_set_destroy(set);
    return sp;
}

/* Seconds of one batch of a worker that has had none. */
static double
seconds(const char *members, uint32_t n, double t)
{
    struct speed_profile *sp = profile(members, 1);
    double s = speed_profile_seconds(sp, n, t);

    speed_profile_destroy(sp);
    return s;
}

UNIT_TEST(a_batch_takes_its_samples_time)
{
    struct speed_profile *sp = speed_profile_create_constant(0.002);

    assert_near(speed_profile_seconds(sp, 50, 7), 0.1);
    assert_near(speed_profile_seconds(sp, 0, 7), 0);
    assert_int_equal(speed_profile_max_batch(sp), 0);
    speed_profile_destroy(sp);
    assert_near(seconds("\"samples_per_s\": 100, \"launch_s\": 0.5", 50, 7),
                1);
}

UNIT_TEST(below_saturation_a_batch_takes_as_long)
{
    const char *gpu = "\"samples_per_s\": 100, \"saturation\": 40";

    assert_near(seconds(gpu, 1, 0), 0.4);
    assert_near(seconds(gpu, 40, 0), 0.4);
    assert_near(seconds(gpu, 80, 0), 0.8);
}

UNIT_TEST(a_step_in_the_middle_counts_from_there)
{
    const char *steps = "\"samples_per_s\": 100, \"steps\": ["
                        "{\"at_s\": 10, \"factor\": 0.5},"
                        "{\"at_s\": 20, \"factor\": 0.25}]";

    assert_near(seconds(steps, 100, 0), 1);
    assert_near(seconds(steps, 100, 9.5), 1.5);
    assert_near(seconds(steps, 100, 12), 2);
    assert_near(seconds(steps, 100, 19), 3);
    assert_near(seconds(steps, 100, 1000), 4);
    assert_near(seconds(steps, 700, 9), 1 + 10 + 4);
}

UNIT_TEST(steps_repeat)
{
    const char *steps = "\"samples_per_s\": 1, \"repeat_s\": 4, \"steps\": ["
                        "{\"at_s\": 1, \"factor\": 0.5},"
                        "{\"at_s\": 3, \"factor\": 1}]";

    /* A period of 4 s does 3 s of work: 1, half of 2, 1. */
    assert_near(seconds(steps, 3, 0), 4);
    assert_near(seconds(steps, 3, 2), 4);
    assert_near(seconds(steps, 3000, 400), 4000);
    assert_near(seconds(steps, 1, 401), 2);
    assert_near(seconds(steps, 2, 403.5), 0.5 + 1 + 1);
}

UNIT_TEST(drift_sinks_and_rises)
{
    const char *drift = "\"samples_per_s\": 1,"
                        "\"drift\": {\"period_s\": 100, \"depth\": 0.5}";

    assert_near(seconds(drift, 1, 0), 1);
    assert_near(seconds(drift, 1, 50), 2);
    assert_near(seconds(drift, 1, 100), 1);
}

UNIT_TEST(use_shows_steps_and_drift)
{
    struct speed_profile *sp = profile(
        "\"samples_per_s\": 1, \"steps\":"
        "[{\"at_s\": 10, \"factor\": 0.25, \"memory\": 0.5}]", 1);
    double cpu, memory;

    speed_profile_use(sp, 8, 9, &cpu, &memory);
    assert_true(cpu >= 0 && cpu < 0.1 && memory >= 0 && memory < 0.1);
    speed_profile_use(sp, 9, 11, &cpu, &memory);
    assert_true(fabs(cpu - 0.375) < 0.15 && fabs(memory - 0.5) < 0.1);
    speed_profile_use(sp, 10, 11, &cpu, &memory);
    assert_true(fabs(cpu - 0.75) < 0.1 && fabs(memory - 0.5) < 0.1);
    speed_profile_destroy(sp);
}

/* Over many batches chance is as asked for, and the seed decides it. */
UNIT_TEST(chance_is_as_asked_for)
{
    const char *members = "\"samples_per_s\": 1, \"jitter\": 0.1,"
                          "\"spikes\": {\"probability\": 0.1,"
                          " \"factor\": 0.25}";
    struct speed_profile *a = profile(members, 1), *b = profile(members, 1),
                         *c = profile(members, 2);
    double sum = 0, squares = 0;
    int n_spikes = 0, n = 20000, n_differ = 0;

    for (int i = 0; i < n; i++) {
        double s = speed_profile_seconds(a, 1, i);

        assert_true(s == speed_profile_seconds(b, 1, i));
        n_differ += s != speed_profile_seconds(c, 1, i);
        if (s > 2) {
            n_spikes++;
        } else {
            sum += s;
            squares += s * s;
        }
    }
    sum /= n - n_spikes;
    squares = squares / (n - n_spikes) - sum * sum;
    assert_true(n_differ > n / 2);
    assert_true(fabs(n_spikes / (double) n - 0.1) < 0.01);
    assert_true(fabs(sum - 1) < 0.02 && fabs(sqrt(squares) - 0.1) < 0.01);
    speed_profile_destroy(a);
    speed_profile_destroy(b);
    speed_profile_destroy(c);
}

UNIT_TEST(good_files_are_read)
{
    struct speed_profile_set *set;
    struct speed_profile *sp;
    glob_t found;

    assert_int_equal(glob(DIR "good/*.json", 0, NULL, &found), 0);
    assert_int_equal(glob("trainer/balance/profiles/*.json", GLOB_APPEND,
                          NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        assert_null(speed_profile_set_from_file(found.gl_pathv[i], &set));
        speed_profile_set_destroy(set);
    }
    globfree(&found);

    assert_null(speed_profile_set_from_file(DIR "good/all.json", &set));
    assert_int_equal(speed_profile_set_n(set), 3);
    for (int rank = 0; rank < 6; rank++) {
        sp = speed_profile_create(set, rank, 1);
        assert_int_equal(speed_profile_max_batch(sp), rank % 3 < 2 ? 64 : 0);
        speed_profile_destroy(sp);
    }
    speed_profile_set_destroy(set);
}

/* The words for each are in NAME.err beside NAME.json. */
UNIT_TEST(bad_files_are_refused)
{
    glob_t found;

    assert_int_equal(glob(DIR "bad/*.json", 0, NULL, &found), 0);
    assert_true(found.gl_pathc >= 10);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *name = strrchr(found.gl_pathv[i], '/') + 1;
        char *text, *expected, *error, err[256];
        struct speed_profile_set *set;

        snprintf(err, sizeof err, DIR "bad/%.*s.err",
                 (int) strcspn(name, "."), name);
        assert_null(json_read_file(found.gl_pathv[i], &text));
        error = speed_profile_set_from_string(name, text, &set);
        assert_non_null(error);
        assert_null(set);
        assert_null(json_read_file(err, &expected));
        expected[strcspn(expected, "\n")] = '\0';
        assert_is(error, expected);
        free(text);
        free(expected);
    }
    globfree(&found);
}

UNIT_TEST(a_file_that_is_not_there_is_a_message)
{
    struct speed_profile_set *set;
    char *error = speed_profile_set_from_file("/nonexistent", &set);

    assert_non_null(error);
    assert_null(set);
    free(error);
}
